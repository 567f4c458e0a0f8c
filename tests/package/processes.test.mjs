// A process ends when its throttles are idle, and not before every waiting call has run: Node, Bun and Deno, from the
// packed tarball.

import assert from "node:assert/strict";
import test, { before } from "node:test";
import { freshFixture, run } from "./lib/project.mjs";
import { runtimes } from "./lib/runtimes.mjs";

/** How long a process may take on a busy machine, in milliseconds. */
const timeout = 300_000;

const five = ["ran 1", "ran 2", "ran 3", "ran 4", "ran 5"];
const scripts = {
  "wrap.js": five,
  "wrap.cjs": five,
  "top-level-await.js": five,
  "fetch.js": five,
  "run.js": five,
  "shared.js": five,
  "idle.js": ["ran rejected,rejected", "ran rejected,rejected"],
};

let project;
before(async () => {
  project = await freshFixture("processes");
});

for (const { name, program, args, skip } of runtimes) {
  test(name, { skip }, async (t) => {
    for (const [script, expected] of Object.entries(scripts))
      await t.test(script, async () => {
        const said = await run(program, [...args, script], { cwd: project, timeout });
        assert.deepEqual(said.trim().split("\n").sort(), expected);
      });
  });
}
