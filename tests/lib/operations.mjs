// Random policies and operations, for limiters outside the process that are compared with one in memory.

import fc from "./properties.mjs";

const limits = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom(30, 1_000));
const durations = fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.constantFrom("1s", "1m"));
const rates = fc.integer({ min: 1, max: 40 });
const windows = fc.record({
  algorithm: fc.constantFrom("fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"),
  limit: limits,
  scale: durations,
});
const tokenBuckets = fc.record({
  algorithm: fc.constant("token_bucket"),
  capacity: limits,
  refillRate: rates,
  per: durations,
});
const leakyBuckets = fc.record({
  algorithm: fc.constant("leaky_bucket"),
  capacity: limits,
  leakRate: rates,
  per: durations,
});
const calendars = fc.record({
  algorithm: fc.constant("fix_window"),
  limit: limits,
  scale: fc.constantFrom("day", "week", "month"),
  utcOffset: fc.constantFrom("Z", "+05:30", "-11:00"),
});
const anyPolicy = fc.oneof(windows, tokenBuckets, leakyBuckets, calendars);
const concurrency = fc.record({ algorithm: fc.constant("concurrency"), limit: limits, ttl: durations });
const lengths = fc.integer({ min: 1, max: 5_000 });
const bans = fc.oneof(
  fc.record({
    algorithm: fc.constant("ban"),
    after: fc.integer({ min: 1, max: 4 }),
    scale: durations,
    for: lengths,
  }),
  fc.record({
    algorithm: fc.constant("ban"),
    after: fc.constant(1),
    scale: durations,
    for: fc.integer({ min: 1, max: 300 }),
    factor: fc.integer({ min: 2, max: 4 }),
    most: fc.integer({ min: 300, max: 5_000 }),
  }),
);
/** Lists of policies that go together. */
export const policyLists = fc.oneof(
  anyPolicy.map((policy) => [{ ...policy, denied: "free" }]),
  windows.map((policy) => [{ ...policy, denied: "count" }]),
  fc.array(anyPolicy, { minLength: 2, maxLength: 3 }),
  fc.tuple(concurrency, anyPolicy),
  fc.tuple(anyPolicy, bans),
  fc.tuple(bans, anyPolicy, bans),
  fc.tuple(bans),
);

const costs = fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 9 }));
const costsByPolicy = fc.oneof(
  { arbitrary: costs, weight: 3 },
  { arbitrary: fc.record({ p0: costs }), weight: 1 },
  { arbitrary: fc.record({ p0: costs, p1: costs }), weight: 1 },
);
/** Operations, each some time after the last one. */
export const operations = fc.record({
  after: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 4_000 })),
  who: fc.nat(2),
  key: fc.constantFrom("a", "b", "ключ {a}"),
  op: fc.oneof(
    { arbitrary: fc.record({ kind: fc.constantFrom("hit", "peek"), amount: costsByPolicy }), weight: 6 },
    {
      arbitrary: fc.record({
        kind: fc.constantFrom("inc", "set", "get", "expiresAt", "reset"),
        amount: fc.oneof(costs, fc.integer({ min: -9, max: -1 })),
      }),
      weight: 3,
    },
    {
      arbitrary: fc.record({
        kind: fc.constantFrom("ban", "unban"),
        ttl: fc.integer({ min: 1, max: 5_000 }),
      }),
      weight: 1,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant("reserve"),
        amount: costsByPolicy,
        ttl: fc.option(fc.integer({ min: 1, max: 5_000 }), { nil: undefined }),
      }),
      weight: 4,
    },
    {
      arbitrary: fc.record({
        kind: fc.constantFrom("settle", "cancel", "extend"),
        amount: fc.option(costsByPolicy, { nil: undefined }),
        ttl: fc.integer({ min: 1, max: 5_000 }),
        which: fc.nat(5),
      }),
      weight: 3,
    },
  ),
  policy: fc.nat(2),
});

/** Does an operation, and returns its result or the code of its error. `made` are the reservations of this side. */
export async function perform(limiter, { key, op: { kind, amount, ttl, which }, policy }, made) {
  const name = `p${policy % limiter.policies.length}`;
  try {
    switch (kind) {
      case "hit":
      case "peek":
        return await limiter[kind](key, amount);
      case "inc":
      case "set":
        return await limiter[kind](key, amount, name);
      case "ban":
        return await limiter.ban(key, ttl, name);
      case "reset":
        return (await limiter.reset(key, { reservations: amount > 5 })) && undefined;
      case "reserve": {
        const reservation = await limiter.reserve(key, amount, { ttl });
        made.push(reservation.id);
        return [reservation.decision, reservation.expiresAt];
      }
      case "settle":
        return await limiter.settle(made.at(-1 - which) ?? "", amount);
      case "cancel":
        return await limiter.cancel(made.at(-1 - which) ?? "");
      case "extend":
        return await limiter.extend(made.at(-1 - which) ?? "", ttl);
      default:
        return await limiter[kind](key, name);
    }
  } catch (error) {
    return error.code;
  }
}

/** Names policies by their positions, as `perform` does. */
export const named = (policies) => policies.map((policy, position) => ({ ...policy, name: `p${position}` }));
