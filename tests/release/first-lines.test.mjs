// Every test file begins with a line that says what it proves.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { inProject, root } from "../../scripts/lib/paths.mjs";

const files = execFileSync("git", ["ls-files", "tests"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((file) => /\.test\.(mjs|ts)$/.test(file) || /^tests\/(\w+\/)?\w+\.rs$/.test(file));

test("every test file begins with its purpose", () => {
  assert.ok(files.length > 100, `only ${files.length} files were found`);
  const without = files.filter((file) => !/^\/\/!? .{20,}\n/.test(readFileSync(inProject(file), "utf8")));
  assert.deepEqual(without, []);
});
