// `Limits` in a Worker in Rust: many policies on one key each admit exactly their limit, and a hit that is undone is given back.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { prepare, start } from "../../../scripts/lib/workerd.mjs";
import { after, before } from "../../lib/hooks.mjs";
import { counts, eachAlone, eachInLists, oneTooMany, policiesOf, usedBy } from "../../lib/many-policies.mjs";

const built = inProject("build/tests/rust-worker/limits/build");
let folder;
let workerd;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-limits-worker-"));
  await prepare(folder, join(built, "index.js"), { wasm: join(built, "index_bg.wasm") });
  workerd = await start(folder);
});

after(async () => {
  await workerd?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a connection for each call: workerd closes a kept one after five seconds, which may be just before its use. */
async function ask(call) {
  const body = JSON.stringify({ cost: 1, credit: false, ...call });
  const response = await fetch(workerd.url, { method: "POST", headers: { Connection: "close" }, body });
  const answer = await response.json();
  if (answer.code !== undefined) throw Object.assign(new Error(answer.code), answer);
  return answer;
}

/** A key under policies, as the tests of many policies hit it. */
function keyUnder(policies, key, credit) {
  const named = (name) => ({ ...policies[name], name });
  return {
    hit: async (names) => (await ask({ operation: "hit", key, policies: names.map(named), credit })).allowed,
    counted: async (name) =>
      usedBy(policies[name], (await ask({ operation: "get", key, policies: [named(name)], credit })).count),
  };
}

for (const credit of [false, true]) {
  const kind = credit ? "with credit" : "without credit";
  for (const count of counts) {
    const key = (what) => keyUnder(policiesOf(count), `${what} ${count} ${kind}`, credit);

    test(`${count} policies, one named by each call, each admit their limit ${kind}`, () =>
      eachAlone(count, key("alone").hit));

    test(`${count} policies in lists that share them each admit their limit ${kind}`, () =>
      eachInLists(count, key("in lists").hit));
  }

  test(`one row too many is an error that changes nothing ${kind}`, () =>
    oneTooMany(keyUnder(policiesOf(counts.at(-1)), `too many ${kind}`, credit)));
}

test("a hit is undone once, by its id", async () => {
  const key = "undone";
  const policies = [{ name: "api", algorithm: "fix_window_per_key", limit: 10, scale: "365d" }];
  const { allowed, id } = await ask({ operation: "hit_undoable", key, policies, cost: 6 });
  assert.equal(allowed, true);
  assert.deepEqual(await ask({ operation: "get", key, policies }), { count: 6 });
  assert.deepEqual(await ask({ operation: "hit_undoable", key, policies, cost: 5 }), {
    allowed: false,
    id: null,
  });
  const undo = () => ask({ operation: "undo", key, policies, cost: 6, id });
  assert.deepEqual([await undo(), await undo()], [{ undone: true }, { undone: false }]);
  assert.deepEqual(await ask({ operation: "get", key, policies }), { count: 0 });
  await assert.rejects(ask({ operation: "undo", key, policies, id: "lost" }), { code: "invalid_option" });
});

test("logged no panic", () => assert.doesNotMatch(workerd.said(), /panic|unreachable|Critical/));
