// Random operations on objects that lists of 40 policies share are decided as the guides say, to the millisecond.

import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import type { Costs, Duration, Exception, ExceptionEnd, Policy } from "../../../js/types.ts";
import { compareWithOracle, sequences } from "../../lib/oracle-steps.mjs";
import { logged } from "../lib.ts";

let worlds = 0;

/** The objects of two keys, with the methods of a limiter under a list of policies. */
function world() {
  worlds += 1;
  const of = worlds;
  const objectOf = (key: string) => env.LIMITERS.getByName(`oracle ${of} ${key}`);
  /** The keys of reservations: an id alone does not name its object. */
  const keys = new Map<string, string>();
  const made = (id: string) => objectOf(keys.get(id) as string);
  return {
    leaveOut: ["hitAll"],
    // Denied hits that count are counted in memory only.
    isFree: true,
    objects: () => ["a", "b"].map(objectOf),
    at: (time: number) => {
      vi.setSystemTime(time);
    },
    limiterOf: (policies: readonly Policy[]) => ({
      hit: (key: string, cost: Costs, call = policies) => objectOf(key).hit(call, cost),
      peek: (key: string, cost: Costs) => objectOf(key).peek(policies, cost),
      async reserve(key: string, cost: Costs, options: { ttl: Duration }) {
        const reserved = await objectOf(key).reserve(policies, cost, options);
        keys.set(reserved.id, key);
        return reserved;
      },
      settle: (id: string, used?: Costs) => made(id).settle(policies, id, used),
      extend: (id: string, ttl: Duration) => made(id).extend(policies, id, ttl),
      inc: (key: string, cost: number, name: string) => objectOf(key).inc(policies, cost, name),
      set: (key: string, count: number, name: string) => objectOf(key).set(policies, count, name),
      reset: (key: string, options: { reservations: boolean }) => objectOf(key).reset(policies, options),
      ban: (key: string, length: Duration, name: string) => objectOf(key).ban(policies, length, name),
      unban: (key: string, name: string) => objectOf(key).unban(policies, name),
      except: (key: string, exception: Exception | null, end: ExceptionEnd) =>
        objectOf(key).except(policies, exception, end),
    }),
  };
}

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it.each([
  ["stay in memory", 0],
  ["are evicted now and then", 7],
])("objects that %s decide as the guides say", async (_, every) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  logged();
  let steps = 0;
  const property = fc.asyncProperty(sequences(10), async (sequence) => {
    const { objects, limiterOf, ...own } = world();
    const evicting = async (policies: readonly Policy[]) => {
      steps += 1;
      // One that was not called yet cannot be evicted.
      if (every > 0 && steps % every === 0)
        for (const object of objects()) await evictDurableObject(object).catch(() => {});
      return limiterOf(policies);
    };
    await compareWithOracle({ ...own, limiterOf: evicting }, sequence);
  });
  await fc.assert(property, { numRuns: 60, seed: 20_260_101 });
  expect(steps).toBeGreaterThan(1_000);
});
