// Every test file is run by exactly one suite of `npm test`, and every folder that a suite names has tests.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import test from "node:test";
import { root } from "../../scripts/lib/paths.mjs";
import { suites } from "../../scripts/test/suites.mjs";

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "tests"], {
  cwd: root,
  encoding: "utf8",
}).split("\n");

test("every folder with a *.test.mjs belongs to one suite", () => {
  const named = suites.flatMap(({ folders = [] }) => folders.map((folder) => `tests/${folder}`));
  const found = new Set(files.filter((file) => file.endsWith(".test.mjs")).map(dirname));
  assert.ok(found.size > 10, `only ${found.size} folders were found`);
  assert.deepEqual(named.toSorted(), [...found].toSorted());
});
