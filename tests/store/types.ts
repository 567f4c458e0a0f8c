// Stores and results have the types that are asked for. Only the types are checked.

import { test } from "node:test";
import { type Decision, Ledger, RateLimiter, type State } from "tollgate";
import type { RemoteLimiter } from "tollgate/client";
import { rateLimit } from "tollgate/fetch";
import type { RedisLimiter } from "tollgate/redis";
import {
  type AsyncLimiter,
  type AsyncReservation,
  type Extension,
  hitAll,
  type Settlement,
  type Store,
  StoreLimiter,
  type StoreStats,
} from "tollgate/store";
import { type StoreCase, storeCases } from "tollgate/testing";

const policy = { algorithm: "fix_window", limit: 5, scale: "1m" } as const;

const texts = new Map<string, string>();

/** At once or later, with null or undefined for what is not there. */
const stores: Store[] = [
  {
    get: (key) => texts.get(key),
    swap: (key, before, after, ttl) => before === after && key !== "" && ttl > 0,
  },
  { get: async () => null, swap: async () => true },
];

export async function use(redis: RedisLimiter, remote: RemoteLimiter): Promise<void> {
  for (const store of stores) {
    const limiter = new StoreLimiter([policy, { ...policy, name: "other" }], {
      store,
      clock: () => Date.now(),
      prefix: "app:",
      timeout: "1s",
      maxTries: 10,
      onError: "deny",
      fallback: new RateLimiter(policy),
    });
    const decisions: Decision[] = [await limiter.hit("a"), await limiter.peek("a", 2, policy)];
    const counts: number[] = [
      await limiter.inc("a", 2, "other"),
      await limiter.set("a", 2, "other"),
      await limiter.get("a", "other"),
      await limiter.expiresAt("a", "other"),
    ];
    const reset: boolean = await limiter.reset("a", { reservations: true });
    await using reservation: AsyncReservation = await limiter.reserve("a", { other: 2 }, { ttl: "1m" });
    const words: (Settlement | Extension)[] = [
      await reservation.settle({ other: 1 }),
      await limiter.settle(reservation.id, 1),
      await limiter.cancel(reservation.id),
      await limiter.extend(reservation.id, "1m"),
    ];
    const stats: StoreStats = limiter.stats;
    console.log(decisions, counts, reset, words, stats.conflicts);
    const { allowed } = await hitAll([{ limiter, key: "a", cost: 2 }]);
    const limiters: AsyncLimiter[] = [limiter, redis, remote];
    console.log(allowed, limiters, rateLimit({ limiter }));
    // @ts-expect-error Keys that leave the process are strings.
    await limiter.hit(7);
  }
  // @ts-expect-error A store is required.
  new StoreLimiter(policy, {});
  // @ts-expect-error A store has both methods.
  new StoreLimiter(policy, { store: { get: () => null } });
  // @ts-expect-error A store keeps texts.
  new StoreLimiter(policy, { store: { get: () => 7, swap: () => true } });
  // @ts-expect-error A swap is true or false.
  new StoreLimiter(policy, { store: { get: () => null, swap: () => 1 } });
}

const cases: StoreCase[] = storeCases(() => stores[0] as Store, { passTime: (ms: number) => ms });
for (const { name, run } of cases) test(name, run);

const ledger = new Ledger(policy);
const afresh: string[] = ledger.load(0, null);
const { state, expiresAt, changed }: { state: State | null; expiresAt: number; changed: boolean } =
  ledger.save(0);
console.log(afresh, state, expiresAt, changed, ledger.reserve(0).id);
