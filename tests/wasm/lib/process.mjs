import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs a program of tests/wasm/programs in a process of its own, with flags for V8. Returns what it printed as JSON. */
export function inFreshProcess(program, { flags = [], args = [] } = {}) {
  const file = fileURLToPath(new URL(`../programs/${program}.mjs`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, file, ...args], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}
