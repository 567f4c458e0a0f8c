import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inProject } from "../../../scripts/lib/paths.mjs";

const program = inProject("dist/command.js");

/** Runs the command. Returns what it wrote and its exit code, whatever that is. */
export function tollgate(args, { input, node = [], ...options } = {}) {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...node, program, ...args],
      { maxBuffer: 1 << 26, ...options },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
    // A command that needs no input may end before it has read it.
    child.stdin.on("error", () => {});
    child.stdin.end(input ?? "");
  });
}

/** Replays what it is given, and returns the summary. */
export async function replay(args, options) {
  const { code, stdout, stderr } = await tollgate(["replay", ...args, "--json"], options);
  if (code !== 0 || stderr !== "") throw new Error(`exit code ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A folder that is removed after a test, with these files in it. Returns where each is. */
export function folderWith(t, files) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-command-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const at = (name) => join(folder, name);
  for (const [name, content] of Object.entries(files)) writeFileSync(at(name), content);
  return at;
}
