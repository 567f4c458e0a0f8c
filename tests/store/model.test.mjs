// Random operations on a fleet of limiters over a store and on one in memory: all answer the same, one by one or at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { StoreLimiter } from "tollgate/store";
import { named, operations, perform, policyLists } from "../lib/operations.mjs";
import fc from "../lib/properties.mjs";
import { memoryStore } from "./lib/stores.mjs";

/** Compares so many limiters over a store, used by turns, with one in memory. */
function compared(processes, numRuns) {
  const property = fc.asyncProperty(
    policyLists,
    fc.array(operations, { minLength: 1, maxLength: 40 }),
    async (policies, all) => {
      let now = 1_800_000_000_000;
      const clock = () => now;
      const store = memoryStore(clock);
      const fleet = Array.from(
        { length: processes },
        () => new StoreLimiter(named(policies), { store, clock }),
      );
      const memory = new RateLimiter(named(policies), { clock });
      const [inMemory, inStore] = [[], []];
      for (const step of all) {
        now += step.after;
        const expected = await perform(memory, step, inMemory);
        const found = await perform(fleet[step.who % processes], step, inStore);
        // A reset tells whether there was anything, which in memory is until it is swept.
        if (step.op.kind !== "reset") assert.deepEqual(found, expected);
      }
    },
  );
  return fc.assert(property, { numRuns });
}

test("a limiter decides as one in memory does", () => compared(1, 400));

test("a fleet decides as one limiter in memory does", () => compared(3, 400));

/** Only operations that need no result of an earlier one can begin at once. */
const atOnce = operations.filter(
  ({ op: { kind }, key }) => key === "a" && !["settle", "cancel", "extend", "reserve"].includes(kind),
);

test("operations of one tick share a swap, and are decided in their order", () =>
  fc.assert(
    fc.asyncProperty(
      policyLists,
      fc.array(atOnce, { minLength: 1, maxLength: 40 }),
      async (policies, all) => {
        const clock = () => 1_800_000_000_000;
        const store = memoryStore(clock);
        const limiter = new StoreLimiter(named(policies), { store, clock });
        const memory = new RateLimiter(named(policies), { clock });
        const found = await Promise.all(all.map((step) => perform(limiter, step, [])));
        for (const [position, step] of all.entries()) {
          const expected = await perform(memory, step, []);
          if (step.op.kind !== "reset") assert.deepEqual(found[position], expected);
        }
        const swaps = store.calls.filter(([method]) => method === "swap");
        assert.ok(swaps.length <= 1, `${swaps.length} swaps`);
      },
    ),
    { numRuns: 400 },
  ));
