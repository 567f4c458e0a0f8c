// Random operations on keys in Redis that lists of 40 policies share are decided as the guides say, to the millisecond.

import { test } from "node:test";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { aLittleBack, compareWithOracle, sequences } from "../lib/oracle-steps.mjs";
import fc from "../lib/properties.mjs";
import { withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();

/** Limiters on one prefix: one for each list of policies. */
class World {
  #time = new ControlledTime(setting.redis);
  #options = setting.options({ client: this.#time.client });
  #limiters = new Map();
  hitAll = hitAll;

  at(time) {
    this.#time.now = time;
    // Otherwise a limiter repeats denials for two seconds, whatever others do meanwhile.
    this.#time.forgetDenials();
    this.#time.forgetDenials();
  }

  limiterOf(policies) {
    const text = JSON.stringify(policies);
    if (!this.#limiters.has(text)) this.#limiters.set(text, new RedisLimiter(policies, this.#options));
    return this.#limiters.get(text);
  }

  [Symbol.dispose]() {
    for (const limiter of this.#limiters.values()) limiter[Symbol.dispose]();
    this.#time[Symbol.dispose]();
  }
}

const checked = (lists, more) =>
  fc.assert(
    fc.asyncProperty(sequences(lists), async (sequence) => {
      using world = Object.assign(new World(), more);
      await compareWithOracle(world, sequence);
    }),
    { numRuns: 100 },
  );

test("Redis decides as the guides say", () => checked(10));

// Under one list: what has ended by a call under another one may be gone when the clock steps back.
test("a key in Redis stands still while the clock steps back a little", () => checked(1, aLittleBack));
