import { spawn, spawnSync } from "node:child_process";
import { setPriority } from "node:os";
import { collected } from "./output.mjs";
import { root } from "./paths.mjs";
import { Failure, ticking } from "./say.mjs";

const children = new Set();

/** Ends all children. What they have started may go on for a moment: cargo does not forward signals. */
export function stopChildren(signal = "SIGTERM") {
  for (const child of children) child.kill(signal);
}

/** Ends all children, and then this process. */
function stop(signal) {
  stopChildren(signal);
  process.exitCode = 130;
  // A child that ignores the signal must not keep this process alive.
  setTimeout(() => process.exit(130), 3_000).unref();
  if (children.size === 0) process.exit(130);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);

// npm runs scripts in a shell, which does not forward the signal that ends npm.
if (process.env.npm_lifecycle_event) {
  const shell = process.ppid;
  setInterval(() => process.ppid !== shell && stop("SIGTERM"), 500).unref();
}

function start(command, args, options) {
  // Not detached: Linux compares priorities only within a session.
  const child = spawn(command, args, { cwd: root, ...options });
  children.add(child);
  if (collected()?.niceness && child.pid) setNiceness(child.pid, collected().niceness);
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: -1, error }));
    child.once("close", (code, signal) => resolve({ code: code ?? -1, signal }));
  }).finally(() => children.delete(child));
  return { child, ended };
}

/** Lowers the priority of a process and of those that it will start. */
function setNiceness(pid, niceness) {
  try {
    setPriority(pid, niceness);
  } catch {
    // It has ended, or the system has no priorities.
  }
}

const line = (command, args) => [command, ...args].join(" ");

/** Runs a command and shows its output. */
export async function show(command, args, options = {}) {
  const output = collected();
  const stdio = output ? ["ignore", "pipe", "pipe"] : "inherit";
  const { child, ended } = start(command, args, { stdio, ...options });
  if (output)
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", output.write);
  const { code, signal, error } = await ended;
  if (code !== 0) {
    const how = error ? error.message : signal ? `ended by ${signal}` : `exit code ${code}`;
    throw new Failure(`${line(command, args)} (${how})`);
  }
}

/** Runs a long command with a line every few seconds, and shows its whole output only if it fails. */
export async function quiet(name, command, args, { remedy, ...options } = {}) {
  const { child, ended } = start(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let output = "";
  const keep = (chunk) => {
    output += chunk;
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const stop = ticking(name, () => lastLine(output));
  const { code, error } = await ended;
  stop();
  if (code !== 0) {
    throw new Failure(line(command, args), { remedy, output: output || error?.message });
  }
  return output;
}

/** Starts a command that keeps running, with its output as a stream. */
export const serve = (command, args, options) => start(command, args, options);

/** Returns the output of a short command; null if it cannot be run or fails. */
export function outputOf(command, args, options = {}) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: "utf8", ...options });
  return status === 0 ? stdout.trim() : null;
}

function lastLine(text) {
  const lines = text.split(/[\r\n]+/).filter((each) => each.trim());
  return (lines.at(-1) ?? "").trim().slice(0, 70);
}
