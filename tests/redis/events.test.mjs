// A limiter over Redis publishes each decision and each error once, and how the decision was made.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { heard } from "../events/lib/heard.mjs";
import { withServer } from "./lib/setting.mjs";

const { options } = withServer();
const policy = { name: "api", algorithm: "fix_window", limit: 2, scale: "365d" };
const down = { send: async () => assert.fail("no connection") };

const summary = ({ limiter, operation, key, cost, allowed, by }) => [
  limiter,
  operation,
  key,
  cost,
  allowed,
  by,
];

describe("decisions", () => {
  test("by Redis, and from the cached states", async (t) => {
    const published = heard(t);
    const own = [];
    const onDecision = (decision, message) => own.push([decision, message]);
    const limiter = new RedisLimiter(policy, options({ onDecision }));
    await limiter.hit("a", 2);
    await limiter.hit("a");
    await limiter.peek("a");
    await (await limiter.reserve("b")).cancel();
    await hitAll([
      { limiter, key: "b", cost: 2 },
      { limiter, key: "c" },
    ]);
    const expected = [
      ["redis", "hit", "a", 2, true, "limiter"],
      ["redis", "hit", "a", 1, false, "cache"],
      ["redis", "reserve", "b", 1, true, "limiter"],
      ["redis", "hitAll", "b", 2, true, "limiter"],
      ["redis", "hitAll", "c", 1, true, "limiter"],
    ];
    assert.deepEqual(published.map(summary), expected);
    assert.deepEqual(
      own.map(([decision, message]) => [decision === message.decision, ...summary(message)]),
      expected.map((each) => [true, ...each]),
    );
  });

  test("from a lease", async (t) => {
    const published = heard(t);
    const limiter = new RedisLimiter({ ...policy, limit: 100_000 }, options({ leases: { ttl: "10s" } }));
    for (let hit = 0; hit < 200; hit++) await limiter.hit("hot");
    const leased = published.filter(({ by }) => by === "lease").length;
    assert.equal(published.length, 200);
    // A hit that waited for a renewal under way may be from the lease as well.
    assert.ok(leased > 100 && leased <= limiter.stats.leased, `${leased} of ${limiter.stats.leased}`);
    limiter[Symbol.dispose]();
  });

  test("without Redis, with the error and what decided instead", async (t) => {
    const [published, errors] = [heard(t), heard(t, "tollgate:error")];
    const limiter = (more) => new RedisLimiter(policy, { client: down, ...more });
    await assert.rejects(limiter({}).hit("a"), { code: "unanswered" });
    await limiter({ onError: "deny" }).hit("b");
    await limiter({ onError: "allow" }).reserve("c");
    await limiter({ fallback: { share: 0.5 } }).hit("d");
    await limiter({ fallback: new RateLimiter(policy) }).reserve("e");
    await limiter({ fallback: { hit: async () => new RateLimiter(policy).peek("f"), peek() {} } }).hit("f");
    assert.deepEqual(published.map(summary), [
      ["redis", "hit", "b", 1, false, "onError"],
      ["redis", "reserve", "c", 1, true, "onError"],
      ["redis", "hit", "d", 1, true, "fallback"],
      ["redis", "reserve", "e", 1, true, "fallback"],
      ["redis", "hit", "f", 1, true, "fallback"],
    ]);
    assert.deepEqual(
      errors.map(({ operation, key, verdict, error }) => [operation, key, verdict, error.code]),
      [
        ["hit", "a", "throw", "unanswered"],
        ["hit", "b", "deny", "unanswered"],
        ["reserve", "c", "allow", "unanswered"],
        ["hit", "d", "fallback", "unanswered"],
        ["reserve", "e", "fallback", "unanswered"],
        ["hit", "f", "fallback", "unanswered"],
      ],
    );
  });
});
