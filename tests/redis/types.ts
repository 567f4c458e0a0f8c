// Every client has the type that is asked for, and results have theirs. Only the types are checked.

import { Cluster, Redis } from "ioredis";
import { Redis as Valkey, Cluster as ValkeyCluster } from "iovalkey";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { RateLimiter } from "tollgate";
import {
  type AsyncReservation,
  type Decision,
  type Extension,
  type RedisClient,
  RedisLimiter,
  type RedisStats,
  type Settlement,
} from "tollgate/redis";

const policy = { algorithm: "fix_window", limit: 5, scale: "1m" } as const;

const clients: RedisClient[] = [
  new Redis(),
  new Redis({ sentinels: [{ host: "127.0.0.1", port: 26379 }], name: "main" }),
  new Cluster([]),
  new Valkey(),
  new ValkeyCluster([]),
  createClient(),
  createClientPool(),
  createCluster({ rootNodes: [] }),
  createSentinel({ name: "main", sentinelRootNodes: [] }),
  { send: async (key: string, args: string[]) => `${key}${args.length}` },
];

export async function use(): Promise<void> {
  for (const client of clients) {
    const limiter = new RedisLimiter([policy, { ...policy, name: "other" }], {
      client,
      prefix: "app:",
      name: "api",
      timeout: "1s",
      onError: "deny",
      leases: { ttl: "2s" },
      fallback: new RateLimiter(policy),
      maxKeys: 10,
      restore: false,
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
    console.log(words);
    const stats: RedisStats = limiter.stats;
    console.log(decisions, counts, reset, stats.calls);
  }
  new RedisLimiter(policy, { client: new Redis(), fallback: { share: 0.5 } });
  // @ts-expect-error A client is required.
  new RedisLimiter(policy, {});
  // @ts-expect-error That is no client.
  new RedisLimiter(policy, { client: {} });
  // @ts-expect-error Keys that leave the process are strings.
  await new RedisLimiter(policy, { client: new Redis() }).hit(7);
}
