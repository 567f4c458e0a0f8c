import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const child = fileURLToPath(new URL("child.mjs", import.meta.url));

/**
 * Runs a replay in a process of its own. `feed` writes to its standard input, if it reads that. Returns the time, the
 * most memory it took, and its summary. `flags` are Node's.
 */
export async function measured(folder, args, { feed, flags = [] } = {}) {
  const report = join(folder, "report.json");
  const started = spawn(process.execPath, [...flags, child, report, "replay", ...args, "--json"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(started, "exit");
  let output = "";
  started.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  await feed?.(started.stdin);
  started.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`replay ended with exit code ${code}`);
  return { ...JSON.parse(readFileSync(report, "utf8")), summary: JSON.parse(output) };
}
