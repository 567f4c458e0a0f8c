// The small core of `tollgate/throttle`, as wasm and as JavaScript, decides as the package does: on every trace, and on random
// operations.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "../lib/properties.mjs";
import { smallCore } from "../lib/small-core.mjs";
import { files, tracesIn } from "../lib/traces.mjs";
import { atEveryDepth } from "./lib/depths.mjs";

const most = Number.MAX_SAFE_INTEGER;
const limits = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 12 }), weight: 8 },
  { arbitrary: fc.constantFrom(1_000, 2 ** 31, most), weight: 1 },
);
const storedLimits = fc.integer({ min: 1, max: 40 });
const durations = fc.constantFrom(1, 7, 250, "1s", "1m");
const windows = fc.record({
  algorithm: fc.constantFrom("fix_window", "fix_window_per_key", "sliding_counter"),
  limit: limits,
  scale: durations,
});
const logs = fc.record({ algorithm: fc.constant("sliding_window"), limit: storedLimits, scale: durations });
const calendars = fc.record({
  algorithm: fc.constant("fix_window"),
  limit: limits,
  scale: fc.constantFrom("day", "week", "month"),
  utcOffset: fc.constantFrom("Z", "+05:30", "-11:00"),
});
const buckets = (algorithm, rate) =>
  fc.record({
    algorithm: fc.constant(algorithm),
    capacity: fc.integer({ min: 1, max: 1_000 }),
    [rate]: fc.integer({ min: 1, max: 40 }),
    per: durations,
  });
const policies = fc.oneof(
  windows,
  logs,
  calendars,
  buckets("token_bucket", "refillRate"),
  buckets("leaky_bucket", "leakRate"),
);

/** Up to three policies under one of three names each, so that versions of a list share some. */
const lists = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 }),
    policies,
    policies,
    policies,
  )
  .map(([names, ...all]) => names.map((name, position) => ({ name, ...all[position] })));
const counted = fc
  .tuple(fc.oneof(windows, logs), fc.constantFrom("a", "b"))
  .map(([policy, name]) => [{ name, ...policy, denied: "count" }]);

const amounts = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 6 }), weight: 8 },
  { arbitrary: fc.constantFrom(1_100, 2 ** 31, most), weight: 1 },
);

const operations = fc.record({
  does: fc.oneof(
    { arbitrary: fc.constantFrom("hit", "peek"), weight: 8 },
    { arbitrary: fc.constantFrom("inc", "set", "reset"), weight: 1 },
  ),
  /** Which of the versions of the policies. */
  version: fc.nat(2),
  amount: amounts,
  passes: fc.oneof(fc.constantFrom(0, 1, 250, 1_000), fc.integer({ min: 0, max: 200_000 })),
  behind: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, { arbitrary: fc.nat(3_000), weight: 1 }),
});

const runs = fc.record({
  versions: fc.array(fc.oneof(lists, counted), { minLength: 3, maxLength: 3 }),
  list: fc.array(operations, { minLength: 1, maxLength: 40, size: "max" }),
});

/** Returns what a call comes to: its result, or the code and the message of its error. */
function outcome(call) {
  try {
    return call();
  } catch ({ code, message }) {
    return { code, message };
  }
}

/** How many runs there are of each property. */
const numRuns = 300;

for (const kind of ["wasm", "js"]) {
  const core = await smallCore(kind);

  describe(kind, () => {
    for (const file of files)
      test(`the traces of ${file}`, () => {
        const { hits, found } = core.differences(tracesIn(file));
        assert.deepEqual(found.slice(0, 3), []);
        assert.ok(hits > 100, `${hits} hits`);
      });

    test("steps on stored states return what the package's do, under policies that change", () => {
      const property = fc.property(runs, ({ versions, list }) => {
        let [state, time] = [null, 1_767_227_321_853];
        for (const [position, { does, version, amount, passes, behind }] of list.entries()) {
          time += passes;
          const now = time - behind;
          const own = versions[version];
          const isHit = does === "hit" || does === "peek";
          const name = isHit || does === "reset" ? undefined : own[0].name;
          const full = outcome(() => core.step(own, state, does, amount, now, name));
          if (isHit)
            assert.deepEqual(
              outcome(() => core.smallStep(own, state, does, amount, now)),
              full,
              `operation ${position}: ${does} at ${now}`,
            );
          if (full.state !== undefined) state = JSON.parse(JSON.stringify(full.state));
        }
      });
      fc.assert(property, { numRuns });
    });

    test("whatever the depth of the stack, no allowed hit is forgotten", () => {
      const policy = { algorithm: "sliding_window", limit: 1_000_000, scale: "1h" };
      const limits = new core.KeyLimits(policy, () => 1_767_227_321_853);
      limits.hit("still", 3);
      let allowed = 0;
      const thrown = atEveryDepth(() => {
        allowed += Number(limits.hit("deep", 1).allowed);
      });
      assert.ok(thrown > 0);
      const counted = limits.peek("deep", 0).count;
      assert.ok(counted >= allowed && counted <= allowed + thrown, `${allowed} <= ${counted}`);
      assert.equal(limits.peek("still", 0).count, 3);
    });

    test("limits with states of many keys decide as a limiter does", () => {
      const keys = fc.constantFrom(1, "1", 1n, "", "user:42");
      const hits = fc.array(fc.record({ key: keys, operation: operations }), { maxLength: 60, size: "max" });
      const property = fc.property(lists, hits, (list, hits) => {
        let now = 1_767_227_321_853;
        const clock = () => now;
        const free = list.map((policy) => ({ ...policy, denied: "free" }));
        const own = "scale" in free[0] || free.length > 1 ? free : list;
        const limiter = new core.RateLimiter(own, { clock });
        const limits = new core.KeyLimits(own, clock);
        for (const { key, operation } of hits) {
          now += operation.passes;
          const does = operation.does === "hit" ? "hit" : "peek";
          const { amount } = operation;
          assert.deepEqual(limits[does](key, amount), limiter[does](key, amount), `${does} at ${now}`);
          if (operation.does !== "set") continue;
          // A copy that runs ahead changes nothing here.
          const ahead = limits.ahead(key, () => now + 500);
          const restored = core.RateLimiter.restore(limiter.snapshot(key), { clock: () => now + 500 });
          for (const cost of [1, amount]) assert.deepEqual(ahead.hit(key, cost), restored.hit(key, cost));
        }
      });
      fc.assert(property, { numRuns });
    });
  });
}
