// Hits of decisions over several keys: a fleet over Redis charges and gives back as one over another store does.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { hitAll as hitAllStored, StoreLimiter } from "tollgate/store";
import { named, policyLists } from "../lib/operations.mjs";
import fc from "../lib/properties.mjs";
import { memoryStore } from "../store/lib/stores.mjs";
import { withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();

const steps = fc.array(
  fc.record({
    after: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 4_000 })),
    who: fc.nat(2),
    kind: fc.constantFrom("hit", "hit", "hitUndoable", "hitUndoable", "undo", "undo", "inc", "get"),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 9 })),
    which: fc.nat(4),
  }),
  { minLength: 1, maxLength: 40 },
);

/** Does a step, and returns its result or the code of its error. `made` are the undos of this side. */
async function perform(limiter, { kind, cost, which }, made) {
  try {
    switch (kind) {
      case "hitUndoable": {
        const { decision, undo } = await limiter.hitUndoable("key", cost);
        made.push(undo);
        return [decision, undo !== undefined];
      }
      case "undo":
        return await made.at(-1 - which)?.();
      case "get":
        return await limiter.get("key", "p0");
      case "inc":
        return await limiter.inc("key", cost, "p0");
      default:
        return await limiter.hit("key", cost);
    }
  } catch (error) {
    return error.code;
  }
}

describe("a hit and its undo", () => {
  test("are the same in Redis and in another store", () => {
    let round = 0;
    return fc.assert(
      fc.asyncProperty(policyLists, steps, async (policies, all) => {
        using time = new ControlledTime(setting.redis);
        const options = { client: time.client, prefix: `undo:${++round}:`, maxKeys: 2 };
        const fleet = Array.from({ length: 3 }, () => new RedisLimiter(named(policies), options));
        const clock = () => time.now;
        const stored = new StoreLimiter(named(policies), { store: memoryStore(clock), clock });
        const [inStore, inRedis] = [[], []];
        for (const step of all) {
          time.now += step.after;
          time.forgetDenials();
          const expected = await perform(stored, step, inStore);
          assert.deepEqual(await perform(fleet[step.who], step, inRedis), expected);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("several keys", () => {
  /** Hits two keys from so many limiters, a third of them in each millisecond. Returns how many were admitted. */
  async function admitted(isolates, limiterOf, hitAll, time, several) {
    const limiters = Array.from({ length: isolates }, () => [
      limiterOf(150, "shared"),
      limiterOf(1_000, "own"),
    ]);
    let count = 0;
    for (let second = 0; second < 4; second += 1) {
      for (let part = 0; part < 10; part += 1) {
        const answers = Array.from({ length: 15 }, async (_, at) => {
          const [shared, own] = limiters[(at + 15 * part) % isolates];
          if (!several) return (await shared.hit("shared")).allowed;
          const hits = [
            { limiter: shared, key: "shared" },
            { limiter: own, key: `own ${at}` },
          ];
          return (await hitAll(hits)).allowed;
        });
        for (const allowed of await Promise.all(answers)) count += Number(allowed);
        time.now += 100;
      }
    }
    return count;
  }

  const policy = (limit, name) => ({ algorithm: "fix_window", limit, scale: "1s", name });

  for (const isolates of [1, 8, 24])
    test(`at exactly the limit admit as many as one does: ${isolates} processes`, async () => {
      let round = 0;
      const inRedis = (time) => {
        const options = { client: time.client, prefix: `rate:${isolates}:${++round}:` };
        return (limit, name) => new RedisLimiter(policy(limit, name), { ...options, name });
      };
      const inStore = (time) => {
        const stores = { shared: memoryStore(() => time.now), own: memoryStore(() => time.now) };
        return (limit, name) =>
          new StoreLimiter(policy(limit, name), {
            store: stores[name],
            clock: () => time.now,
            maxTries: 1_000,
          });
      };
      for (const [make, all] of [
        [inRedis, hitAll],
        [inStore, hitAllStored],
      ]) {
        using time = new ControlledTime(setting.redis);
        time.now = Math.ceil(time.now / 1_000) * 1_000;
        const plain = await admitted(isolates, make(time), all, time, false);
        time.now = Math.ceil(time.now / 1_000 + 1) * 1_000;
        const several = await admitted(isolates, make(time), all, time, true);
        assert.equal(plain, 600);
        assert.ok(several >= 0.95 * plain, `${several} of ${plain}`);
      }
    });
});
