// The traces recorded from Hammer, over stores that forget a value at the end of its ttl, and over a file of SQLite.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StoreLimiter } from "tollgate/store";
import { SqliteStore } from "../../examples/store-sqlite/store.mjs";
import { answer, files, inWordsOf, tracesIn } from "../lib/traces.mjs";
import { memoryStore } from "./lib/stores.mjs";

let now = 0;
const clock = () => now;

/** A store for each trace. */
const kinds = {
  "in memory": () => memoryStore(clock),
  SQLite: () => new SqliteStore(":memory:", clock),
};

for (const file of files) {
  const traces = tracesIn(file);

  describe(file, () => {
    for (const [name, storeOf] of Object.entries(kinds))
      for (const processes of [1, 3])
        test(`${name}, ${processes} of a fleet by turns`, async () => {
          assert.equal(traces.length, 24);
          for (const [number, { policy, ops }] of traces.entries()) {
            const store = storeOf();
            const fleet = Array.from({ length: processes }, () => new StoreLimiter(policy, { store, clock }));
            for (const [position, op] of ops.entries()) {
              now = op.at;
              const context = `trace ${number}, operation ${position} (${op.op} at ${op.at})`;
              const found = await answer(fleet[position % processes], op);
              assert.deepEqual(inWordsOf(op.expect, found), op.expect, context);
            }
          }
        });
  });
}

test("there is a file for every algorithm that Hammer has", () => assert.equal(files.length, 5));
