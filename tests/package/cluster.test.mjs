// The example for `cluster` admits the limit, and never more than each process alone would.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import test, { before } from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { edit, freshExamples, run } from "./lib/project.mjs";
import { served } from "./lib/served.mjs";

let folder;
before(async () => {
  folder = (await freshExamples("clusters"))("cluster");
});

/**
 * A process lets a hit through when those that it knows of are fewer than the limit. When the last one of all passes,
 * the only ones that its process does not know of are on their way to it, so no more pass than limit + on their way.
 */
test("cluster: what passes beyond the limit was on its way to who let the last one through", async () => {
  cpSync(inProject("tests/package/fixtures/cluster/rounds.mjs"), join(folder, "rounds.mjs"));
  const [processes, limit] = [4, 9];
  assert.deepEqual(JSON.parse(await run(process.execPath, ["rounds.mjs"], { cwd: folder })), {
    oneAfterAnother: limit,
    // Eight have passed and are known to all: each of the four lets one more through, and three are on their way to it.
    oneEachAtOnce: limit + (processes - 1),
    // Six have passed: each lets three more through, and nine are on their way to it.
    threeEachAtOnce: limit + 3 * (processes - 1),
    // The most there can be: none hears of another.
    allAtOnce: limit * processes,
  });
});

test("cluster: the server lets through the limit, and no more than each process alone would", async (t) => {
  // No window ends meanwhile.
  edit(join(folder, "server.mjs"), ['scale: "1d"', 'scale: "365d"']);
  const url = await served(t, folder);
  const statuses = async (count) =>
    (await Promise.all(Array.from({ length: count }, () => fetch(url)))).map(({ status }) => status);
  const first = (await statuses(60)).filter((status) => status === 200).length;
  assert.ok(first >= 10 && first <= 40, `${first} passed`);
});
