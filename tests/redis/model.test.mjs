// Random operations on a fleet of limiters over Redis and on one in memory: all answer the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { named, operations, perform, policyLists } from "../lib/operations.mjs";
import fc from "../lib/properties.mjs";
import { withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();

/** Compares so many limiters over Redis, used by turns, with one in memory. */
function compared(processes, { numRuns, forgets }) {
  let round = 0;
  const property = fc.asyncProperty(
    policyLists,
    fc.array(operations, { minLength: 1, maxLength: 40 }),
    async (policies, all) => {
      using time = new ControlledTime(setting.redis);
      const options = { client: time.client, prefix: `${processes}:${++round}:`, maxKeys: 2 };
      const fleet = Array.from({ length: processes }, () => new RedisLimiter(named(policies), options));
      const memory = new RateLimiter(named(policies), { clock: () => time.now });
      const [inMemory, inRedis] = [[], []];
      for (const step of all) {
        time.now += step.after;
        if (forgets) time.forgetDenials();
        const expected = await perform(memory, step, inMemory);
        const found = await perform(fleet[step.who % processes], step, inRedis);
        // A reset tells whether there was anything, which in memory is until it is swept.
        if (step.op.kind !== "reset") assert.deepEqual(found, expected);
      }
    },
  );
  return fc.assert(property, { numRuns });
}

test("a limiter decides as one in memory does, also where it does not ask Redis", () =>
  compared(1, { numRuns: 400, forgets: false }));

test("a fleet decides as one limiter in memory does", () => compared(3, { numRuns: 400, forgets: true }));
