// The numbers in the README are those of bench/RESULTS.md.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { numbers, shown } from "../../bench/summary.mjs";
import { inProject } from "../../scripts/lib/paths.mjs";

test("the README's numbers are those of bench/RESULTS.md", () => {
  assert.equal(shown(readFileSync(inProject("README.md"), "utf8")), numbers());
});

test("a number that is not in the results is missed", () => {
  assert.throws(
    () => numbers("## Node and the browser\n"),
    /there is no "tollgate fix_window", "65,536 keys"/,
  );
  assert.throws(() => shown("# Tollgate\n"), /there is no <!-- numbers/);
});
