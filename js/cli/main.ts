import { readFileSync } from "node:fs";
import { UnknownFormat } from "../access-log/log.ts";
import { check } from "./check.ts";
import { type Command, helpOf } from "./command.ts";
import { exit, isCommandError, isTooDeep, tooDeep, UsageError } from "./errors.ts";
import { except } from "./except.ts";
import { exceptions } from "./exceptions.ts";
import { init } from "./init.ts";
import { ban, get, reset, unban, why } from "./key-commands.ts";
import { nearest } from "./near.ts";
import { readOptions } from "./options.ts";
import { print, printError } from "./output.ts";
import { replay } from "./replay.ts";
import { top } from "./top/top.ts";

const commands: readonly Command[] = [
  replay,
  check,
  init,
  get,
  reset,
  ban,
  unban,
  except,
  exceptions,
  why,
  top,
];

/** Runs the command of a command line. Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined)
      throw new UsageError(`name a command: ${commands.map(({ name }) => name).join(", ")}`);
    if (["--help", "-h", "help"].includes(name)) return help(rest[0]);
    if (["--version", "-v"].includes(name)) return say(`${version()}\n`);
    const command = named(name);
    // Even if the rest of the command line is invalid.
    if (rest.includes("--help") || rest.includes("-h")) return say(helpOf(command));
    return await command.run(readOptions(rest, command.options));
  } catch (error) {
    return failed(error, name);
  }
}

function help(name: string | undefined): number {
  if (name !== undefined) return say(helpOf(named(name)));
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  return say(
    `tollgate <command> [options]\n\nCommands:\n${lines.join("\n")}\n\ntollgate <command> --help lists the options of a command.\n`,
  );
}

function named(name: string): Command {
  const command = commands.find((each) => each.name === name);
  if (command !== undefined) return command;
  const names = commands.map((each) => each.name);
  const meant = nearest(name, names);
  const hint = meant === undefined ? `there are ${names.join(", ")}` : `did you mean ${meant}?`;
  throw new UsageError(`${name} is not a command; ${hint}`);
}

function version(): string {
  return JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version;
}

function say(text: string): number {
  print(text);
  return exit.ok;
}

/** Prints a known error in one line, and returns the exit code. Any other is thrown again, with its stack. */
function failed(error: unknown, name = ""): number {
  const isUsage = isCommandError(error) && error.name === "UsageError";
  const isKnown =
    isCommandError(error) ||
    error instanceof UnknownFormat ||
    isTollgateError(error) ||
    isSystemError(error) ||
    isTooDeep(error);
  if (!isKnown) throw error;
  const command = commands.some((each) => each.name === name) ? `tollgate ${name}` : "tollgate";
  const remedy = isUsage ? ` (${command} --help)` : error instanceof UnknownFormat ? formatHint : "";
  const message = isTooDeep(error)
    ? `the input cannot be read: ${tooDeep}`
    : isSystemError(error)
      ? systemMessage(error)
      : (error as Error).message;
  printError(`${command}: ${message}${remedy}`);
  return isUsage ? exit.usage : exit.failed;
}

const formatHint = "; use --format, and --time with the name of the field";

const isTollgateError = (error: unknown) => error instanceof Error && error.name === "TollgateError";

/** Returns whether an error is Node's, such as that of a missing file. */
const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && "code" in error && "errno" in error;

/** Returns Node's message without the names of error codes and system calls: `a.log: permission denied`. */
function systemMessage({ code, path, message }: NodeJS.ErrnoException): string {
  if (path === undefined) return message;
  const [, reason = message] = /^[A-Z]+: (.*), \w+(?: '.*)?$/s.exec(message) ?? [];
  return code === "ENOENT" ? `${path} does not exist` : `${path}: ${reason}`;
}

// A closed pipe, such as that to `head`, is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(exit.ok);
});

process.exitCode = await main(process.argv.slice(2));
