// Whatever callers do, in any order: every wait ends once and in time, in order, within the policy, and nothing is left.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Throttle } from "tollgate";
import fc from "../lib/properties.mjs";
import { FakeTime, settled } from "./lib/time.mjs";

const key = fc.constantFrom("a", "b");
const action = fc.oneof(
  {
    weight: 18,
    arbitrary: fc.record({
      does: fc.constant("acquire"),
      key,
      priority: fc.integer({ min: -1, max: 1 }),
      maxWait: fc.constantFrom(undefined, undefined, 0, 700, 1_000, 4_000),
      group: fc.constantFrom(undefined, 0, 1, 2),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("abort"), group: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("hold"), key, length: fc.constantFrom(0, 1, 900, 2_500) }),
  },
  { weight: 9, arbitrary: fc.record({ does: fc.constant("pass"), length: fc.constantFrom(1, 300, 1_000) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("clear") }) },
);

/** Two at once, and one a second. */
const policy = { algorithm: "token_bucket", capacity: 2, refillRate: 1 };

/** Does all that, and notes each wait: when it came, when it ended, and how. */
async function run(actions, options) {
  const time = new FakeTime();
  const throttle = new Throttle(policy, { clock: time.clock, timer: time.timer, ...options });
  const waits = [];
  const holds = [];
  let ends = 0;
  let groups = [0, 1, 2].map(() => new AbortController());
  const acquire = ({ key, priority, maxWait, group }) => {
    const wait = { key, priority, maxWait, came: time.now, order: waits.length, ended: undefined };
    const end = (how) => {
      assert.equal(wait.ended, undefined, "it ends once");
      ends += 1;
      Object.assign(wait, { how, ended: time.now, end: ends });
    };
    waits.push(wait);
    const signal = groups[group]?.signal;
    throttle.acquire({ key, priority, maxWait, signal }).then(
      () => end("passed"),
      (error) => end(error.code ?? error),
    );
  };
  for (const each of actions) {
    if (each.does === "acquire") acquire(each);
    if (each.does === "abort") {
      groups[each.group].abort("aborted");
      groups = groups.with(each.group, new AbortController());
    }
    if (each.does === "hold") {
      throttle.hold(each.key, each.length);
      holds.push({ key: each.key, from: time.now, until: time.now + each.length });
    }
    if (each.does === "clear") throttle.clear();
    await (each.does === "pass" ? time.pass(each.length) : settled());
    assert.equal(throttle.pending, waits.filter(({ ended }) => ended === undefined).length);
    assert.ok(time.timers <= 1);
  }
  await time.pass(200_000);
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
  return { waits, holds };
}

function check({ waits, holds }) {
  for (const wait of waits) {
    assert.notEqual(wait.ended, undefined, "every wait ends");
    if (wait.maxWait !== undefined) assert.ok(wait.ended <= wait.came + wait.maxWait, "in time");
    if (wait.how === "max_wait") assert.notEqual(wait.maxWait, undefined);
  }
  const passed = waits.filter(({ how }) => how === "passed");
  for (const one of passed) {
    for (const { key, from, until } of holds)
      assert.ok(
        one.key !== key || one.ended < from || one.ended >= until || one.ended === from,
        "none is let through while it is held",
      );
    // Whoever was there at that time and goes before it has ended before it.
    for (const other of waits) {
      const goesBefore =
        other.priority > one.priority || (other.priority === one.priority && other.order < one.order);
      const wasThere = other.key === one.key && other.came < one.ended && other.ended >= one.ended;
      if (goesBefore && wasThere) assert.ok(other.end < one.end, "in order");
    }
  }
  for (const key of ["a", "b"]) {
    const times = passed.filter((each) => each.key === key).map(({ ended }) => ended);
    times.sort((one, other) => one - other);
    for (let at = 2; at < times.length; at += 1)
      for (let from = 0; from + 2 <= at; from += 1)
        assert.ok(times[at] - times[from] >= (at - from - 1) * 1_000, "never more than the policy allows");
  }
}

test("any calls, aborts, holds and clears, one at a time", async () => {
  let passed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const seen = await run(actions);
      check(seen);
      passed += seen.waits.filter(({ how }) => how === "passed").length;
    }),
    { numRuns: 500 },
  );
  assert.ok(passed > 500, `only ${passed} were let through`);
});

test("the same over a store whose decisions come later", async () => {
  // Without IndexedDB a shared budget is the page's own, by the same way.
  const { warn } = console;
  console.warn = () => {};
  try {
    // Its code is loaded: until then no time may pass, since calls wait a second for it at the most.
    await new Throttle(policy, { shared: "budget" }).acquire();
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
        check(await run(actions, { shared: "budget" }));
      }),
      { numRuns: 300 },
    );
  } finally {
    console.warn = warn;
  }
});
