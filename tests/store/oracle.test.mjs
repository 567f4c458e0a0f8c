// Random operations on keys in an own store that lists of 40 policies share are decided as the guides say, to the millisecond.

import { test } from "node:test";
import { hitAll, StoreLimiter } from "tollgate/store";
import { aLittleBack, compareWithOracle, sequences } from "../lib/oracle-steps.mjs";
import fc from "../lib/properties.mjs";
import { memoryStore } from "./lib/stores.mjs";

/** Limiters over one store: one for each list of policies. */
function world(more = {}) {
  let now = 0;
  const clock = () => now;
  const store = memoryStore(clock);
  const limiters = new Map();
  return {
    ...more,
    hitAll,
    at(time) {
      now = time;
    },
    limiterOf(policies) {
      const text = JSON.stringify(policies);
      if (!limiters.has(text)) limiters.set(text, new StoreLimiter(policies, { store, clock }));
      return limiters.get(text);
    },
  };
}

const checked = (lists, more) =>
  fc.assert(
    fc.asyncProperty(sequences(lists), (sequence) => compareWithOracle(world(more), sequence)),
    { numRuns: 150 },
  );

test("a store decides as the guides say", () => checked(10));

// Under one list: what has ended by a call under another one may be gone when the clock steps back.
test("a key in a store stands still while the clock steps back a little", () => checked(1, aLittleBack));
