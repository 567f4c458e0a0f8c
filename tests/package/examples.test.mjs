// Every example says what it is, asks for versions that were tried, and has a test.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { adapters } from "../../scripts/package.mjs";

const text = (...path) => readFileSync(inProject(...path), "utf8");
const manifest = (...path) => JSON.parse(text(...path, "package.json"));
const examples = readdirSync(inProject("examples"));
const tests = ["tests/package", "tests/cloudflare/rust-worker", "tests/metrics"]
  .flatMap((folder) => readdirSync(inProject(folder)).map((name) => [folder, name]))
  .filter(([, name]) => name.endsWith(".test.mjs"))
  .map((path) => text(...path))
  .join("");

for (const name of examples) {
  test(`example ${name} says in three lines what it is, and a test runs it`, () => {
    const lines = text("examples", name, "README.md").split("\n");
    assert.equal(lines.filter((line) => line !== "").length, 3);
    // The servers of all adapters are run by one test.
    if (!adapters.includes(name)) assert.match(tests, new RegExp(`"(examples/)?${name}[/"]`));
  });

  if (!existsSync(inProject("examples", name, "package.json"))) continue;
  test(`example ${name} requires the versions it was tested with`, () => {
    const { version, devDependencies } = manifest(".");
    const tried = { ...devDependencies, tollgate: version };
    for (const [dependency, wanted] of Object.entries(manifest("examples", name).dependencies))
      assert.equal(wanted, tried[dependency], dependency);
  });
}
