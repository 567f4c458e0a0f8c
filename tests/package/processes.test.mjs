// A process ends when its throttles are idle, and not before every waiting call has run: Node, Bun and Deno, from the
// packed tarball.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import test, { before } from "node:test";
import { bin } from "../../scripts/lib/paths.mjs";
import { freshFixture, run } from "./lib/project.mjs";

/** How long a process may take on a busy machine, in milliseconds. */
const timeout = 300_000;

/** The package's own Node, and that of this machine if it is another. */
const nodes = new Map([[process.version, process.execPath]]);
for (const folder of process.env.PATH.split(delimiter)) {
  const program = join(folder, "node");
  if (!existsSync(program)) continue;
  const version = execFileSync(program, ["--version"], { encoding: "utf8" }).trim();
  if (Number.parseInt(version.slice(1), 10) >= 20) nodes.set(version, program);
}

const runtimes = [
  ...[...nodes].map(([version, program]) => ({ name: `Node ${version}`, program, args: [] })),
  { name: "Bun", program: bin("bun"), args: [] },
  // Without permissions: a throttle needs none.
  { name: "Deno", program: bin("deno"), args: ["run", "--no-prompt", "--cached-only"] },
];

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

for (const { name, program, args } of runtimes) {
  test(name, async (t) => {
    for (const [script, expected] of Object.entries(scripts))
      await t.test(script, async () => {
        const said = await run(program, [...args, script], { cwd: project, timeout });
        assert.deepEqual(said.trim().split("\n").sort(), expected);
      });
  });
}
