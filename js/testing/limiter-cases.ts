import type { Policy } from "../store/index.ts";
import { StoreLimiter } from "../store/index.ts";
import { check, checkIs } from "./checks.ts";
import type { Setting, SettingCase } from "./setting.ts";

/** Returns a limiter for each client, as several processes have. No window ends meanwhile: the clock stands still. */
const fleet = ({ clients, prefix }: Setting, policies: Policy | readonly Policy[]): StoreLimiter[] =>
  clients.map(
    ({ store }) =>
      new StoreLimiter(policies, { store, prefix, timeout: "30s", maxTries: 50, clock: () => now }),
  );

const now = 1_700_000_000_000;

const policies: readonly Policy[] = [
  { algorithm: "fix_window", limit: 20, scale: "1h" },
  { algorithm: "sliding_window", limit: 20, scale: "1h" },
  { algorithm: "token_bucket", capacity: 20, refillRate: 1, per: "1h" },
];

/** The cases of limiters over the store. */
export const limiterCases: readonly SettingCase[] = [
  ...policies.map(
    (policy): SettingCase => ({
      name: `exactly the limit among parallel hits: ${policy.algorithm}`,
      async run(setting) {
        const limiters = fleet(setting, policy);
        const hits = limiters.flatMap((limiter) => Array.from({ length: 10 }, () => limiter.hit("hot")));
        const allowed = (await Promise.all(hits)).filter((decision) => decision.allowed);
        checkIs(allowed.length, 20, "of 40 hits at once under a limit of 20, 20 are allowed");
        const { remaining } = await (limiters[0] as StoreLimiter).peek("hot");
        checkIs(remaining, 0, "every process sees the hits of the others");
      },
    }),
  ),
  {
    name: "exactly the limit among hits one after the other",
    async run(setting) {
      const limiters = fleet(setting, { algorithm: "fix_window", limit: 10, scale: "1h" });
      let allowed = 0;
      await Promise.all(
        limiters.map(async (limiter) => {
          for (let turn = 0; turn < 5; turn++) if ((await limiter.hit("hot")).allowed) allowed++;
        }),
      );
      checkIs(allowed, 10, "of 20 hits under a limit of 10, 10 are allowed");
    },
  },
  {
    name: "denied hits and reads write nothing",
    async run(setting) {
      const [limiter] = fleet(setting, { algorithm: "fix_window", limit: 1, scale: "1h" }) as [StoreLimiter];
      await limiter.hit("key");
      const before = await setting.client.get("key");
      for (const read of ["hit", "peek", "get", "expiresAt"] as const) await limiter[read]("key");
      await setting.client.has("key", before, "a value does not change by itself");
      checkIs(limiter.stats.swaps, 1, "a denied hit and reads swap nothing");
    },
  },
  {
    name: "an exception that one process sets and another lifts",
    async run(setting) {
      const limiters = fleet(setting, { algorithm: "fix_window", limit: 1, scale: "1h", name: "api" });
      const [first, second] = limiters as [StoreLimiter, StoreLimiter];
      const until = await first.except("key", { api: { limit: 3 } }, { for: "1d" });
      checkIs(until, now + 86_400_000, "an exception ends when it is to end");
      const hits = Array.from({ length: 5 }, (_, turn) => (limiters[turn % 2] as StoreLimiter).hit("key"));
      const allowed = (await Promise.all(hits)).filter((decision) => decision.allowed);
      checkIs(allowed.length, 3, "every process decides under the exception");
      const { policies } = (await second.exceptions("key")) ?? {};
      checkIs(policies?.["api"]?.limit, 3, "every process returns the exception");
      checkIs(await second.except("key", null), until, "any process lifts it");
      checkIs(await first.exceptions("key"), null, "an exception that was lifted is gone");
      checkIs((await first.peek("key")).limit, 1, "the policy's own numbers apply again");
    },
  },
  {
    name: "a ban that one process sets and another lifts",
    async run(setting) {
      const policies = [
        { algorithm: "fix_window", limit: 9, scale: "1h" },
        { algorithm: "ban", after: 5, scale: "1h", for: "1h" },
      ] as const;
      const [first, second] = fleet(setting, policies) as [StoreLimiter, StoreLimiter];
      checkIs(await first.ban("key", "1h"), now + 3_600_000, "a ban ends when it is to end");
      checkIs((await second.hit("key")).reason, "banned", "every process sees the ban");
      checkIs(await second.unban("key"), true, "any process lifts it");
      checkIs((await first.hit("key")).allowed, true, "a ban that was lifted is gone");
    },
  },
  {
    name: "reservations that one process makes and another settles",
    async run(setting) {
      const policies = [
        { algorithm: "concurrency", limit: 3, name: "running" },
        { algorithm: "fix_window", limit: 100, scale: "1h", name: "tokens" },
      ] as const;
      const limiters = fleet(setting, policies);
      const [first, second] = limiters as [StoreLimiter, StoreLimiter];
      const all = await Promise.all(
        limiters.flatMap((limiter) => [1, 2].map(() => limiter.reserve("key", { tokens: 10 }))),
      );
      const granted = all.filter((reservation) => reservation.allowed);
      checkIs(granted.length, 3, "of 8 reservations at once, as many are granted as may run");
      const [a, b, c] = granted.map(({ id }) => id) as [string, string, string];
      checkIs(await second.settle(a, { tokens: 4 }), "settled", "any process settles a reservation");
      checkIs(await first.settle(a), "closed", "a reservation is settled once");
      checkIs(await second.extend(b, "10m"), "extended", "any process extends a reservation");
      checkIs(await first.cancel(b), "settled", "any process cancels a reservation");
      checkIs(await second.settle(c), "settled", "any process settles a reservation");
      checkIs(await first.get("key", "tokens"), 14, "what was used is charged, and nothing else");
      checkIs((await first.reserve("key")).allowed, true, "places that are free can be reserved");
    },
  },
  {
    name: "denials that reservations alone cause count nothing",
    async run(setting) {
      const policies = [
        { algorithm: "fix_window", limit: 5, scale: "1h" },
        { algorithm: "ban", after: 3, scale: "1h", for: "1h" },
      ] as const;
      const [first, second] = fleet(setting, policies) as [StoreLimiter, StoreLimiter];
      const all = await Promise.all(Array.from({ length: 20 }, () => first.reserve("key")));
      const denied = all.filter(({ allowed }) => !allowed);
      checkIs(denied.length, 15, "of 20 reservations at once under a limit of 5, 5 are granted");
      checkIs(
        denied.every(({ decision }) => decision.reason === "reserved"),
        true,
        "the others say that reservations alone are in the way",
      );
      checkIs(await second.get("key", "ban"), 0, "none of them counts toward the ban");
      for (const { allowed, id } of all) if (allowed) await second.cancel(id as string);
      checkIs((await second.hit("key", 5)).allowed, true, "what was not used is free");
      checkIs((await second.hit("key")).reason, undefined, "what is used has no reason");
      checkIs(await first.get("key", "ban"), 1, "and counts");
    },
  },
  {
    name: "parallel denials count once each toward a ban",
    async run(setting) {
      const policies = [
        { algorithm: "fix_window", limit: 5, scale: "1h" },
        { algorithm: "ban", after: 9, scale: "1h", for: "1h" },
      ] as const;
      const limiters = fleet(setting, policies);
      const hits = (times: number) =>
        Promise.all(limiters.flatMap((limiter) => Array.from({ length: times }, () => limiter.hit("key"))));
      // Of 12 hits, 5 are allowed and 7 are denied.
      checkIs((await hits(3)).filter(({ allowed }) => allowed).length, 5, "the limit is that of one process");
      const [first, second] = limiters as [StoreLimiter, StoreLimiter];
      checkIs(await second.get("key", "ban"), 7, "each denial counts once, whichever process decides it");
      checkIs((await first.hit("key")).reason, undefined, "no ban begins early");
      checkIs((await second.hit("key")).reason, "banned", "the denial that is one too many begins a ban");
      const before = await setting.client.get("key");
      checkIs(
        (await hits(2)).every(({ reason }) => reason === "banned"),
        true,
        "every process sees the ban",
      );
      await setting.client.has("key", before, "a hit on a banned key writes nothing");
      checkIs(await second.unban("key"), true, "any process lifts a ban");
      checkIs((await first.hit("key")).reason, undefined, "a ban that was lifted has ended for all");
    },
  },
  {
    name: "two operators at once set an exception as a whole",
    async run(setting) {
      const policies = [
        { algorithm: "fix_window", limit: 2, scale: "1h", name: "api" },
        { algorithm: "token_bucket", capacity: 2, refillRate: 1, per: "1h", name: "tokens" },
      ] as const;
      const limiters = fleet(setting, policies);
      const [first, second] = limiters as [StoreLimiter, StoreLimiter];
      const until = now + 3_600_000;
      await Promise.all(
        [first, second].flatMap((operator, number) => {
          const limit = 20 + number;
          const exception = { api: { limit }, tokens: { capacity: limit } };
          return [1, 2].map(() => operator.except("key", exception, { until }));
        }),
      );
      const set = await second.exceptions("key");
      const limit = set?.policies?.["api"]?.limit ?? 0;
      checkIs(set?.policies?.["tokens"]?.capacity, limit, "an exception has no parts of another");
      const hits = limiters.flatMap((limiter) => Array.from({ length: 10 }, () => limiter.hit("key")));
      const allowed = (await Promise.all(hits)).filter((decision) => decision.allowed).length;
      checkIs(allowed, limit, "all processes decide by the numbers of the exception");
      await first.except("key", { deny: true }, { until });
      const before = await setting.client.get("key");
      checkIs((await second.hit("key")).reason, "denied", "every process sees the exception");
      await setting.client.has("key", before, "a hit on a key that is denied writes nothing");
      checkIs(await second.reset("key"), true, "a reset finds the state");
      checkIs((await first.hit("key")).reason, "denied", "a reset leaves the exception");
      checkIs(await second.except("key", null), until, "any process lifts an exception");
      checkIs((await first.hit("key")).allowed, true, "an exception that was lifted has ended for all");
    },
  },
  {
    name: "a reset deletes the value",
    async run(setting) {
      const [limiter, other] = fleet(setting, { algorithm: "fix_window", limit: 1, scale: "1h" }) as [
        StoreLimiter,
        StoreLimiter,
      ];
      await limiter.hit("key");
      checkIs(await other.reset("key"), true, "a reset finds the state");
      await setting.client.has("key", null, "a reset deletes the value");
      checkIs((await limiter.hit("key")).allowed, true, "after a reset a key is as if never used");
    },
  },
  {
    name: "a value that no limiter wrote fails its own key alone",
    async run(setting) {
      const [limiter] = fleet(setting, { algorithm: "fix_window", limit: 1, scale: "1h" }) as [StoreLimiter];
      await setting.client.swaps("broken", null, '{"version":4,"rows":[7]}', "any text is stored");
      const error = await limiter.hit("broken").then(
        () => undefined,
        (error: unknown) => error as { readonly code?: unknown },
      );
      checkIs(error?.code, "invalid_state", "get returns the text that was stored");
      check((await limiter.hit("whole")).allowed, "another key is not affected");
    },
  },
];
