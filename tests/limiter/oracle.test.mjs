// Random operations on a limiter of up to 8 policies are decided as the guides say, to the millisecond, also after deploys.

import { test } from "node:test";
import { hitAll, RateLimiter } from "tollgate";
import { aLittleBack, compareWithOracle, sequences } from "../lib/oracle-steps.mjs";
import fc from "../lib/properties.mjs";

// That a policy starts unused is a warning of `restore`.
console.warn = () => {};

/** A limiter in memory, which is restored under other policies when they change. */
function world(more) {
  let now = 0;
  let limiter;
  let text;
  return {
    isAtomic: true,
    ...more,
    hitAll,
    at(time) {
      now = time;
    },
    limiterOf(policies) {
      const given = JSON.stringify(policies);
      if (limiter === undefined) limiter = new RateLimiter(policies, { clock: () => now });
      else if (given !== text)
        limiter = RateLimiter.restore(JSON.parse(JSON.stringify(limiter.snapshot())), {
          policies,
          clock: () => now,
        });
      text = given;
      return limiter;
    },
  };
}

const checked = (more) =>
  fc.assert(
    fc.asyncProperty(sequences(1), (sequence) => compareWithOracle(world(more), sequence)),
    { numRuns: 150 },
  );

test("a limiter in memory decides as the guides say", () => checked());

test("a key in memory stands still while the clock steps back a little", () => checked(aLittleBack));
