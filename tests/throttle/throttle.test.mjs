// Calls wait their turn: in order, exactly as long as the policy says, and leave no timer or memory behind.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Throttle } from "tollgate";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };
const twoPerSecond = { algorithm: "fix_window", limit: 2, scale: "1s" };

function start(policies, options = {}) {
  const time = new FakeTime();
  const throttle = new Throttle(policies, { clock: time.clock, timer: time.timer, ...options });
  const done = [];
  const began = time.now;
  /** Waits under a name, and notes when it was let through or why not. */
  const wait = (name, asked) =>
    throttle.acquire(asked).then(
      () => done.push(`${name} ${time.now - began}`),
      (error) => done.push(`${name} ${error.code ?? error}`),
    );
  return { time, throttle, done, wait };
}

describe("waiting", () => {
  test("in order of arrival, each exactly when the policy allows it", async () => {
    const { time, throttle, done, wait } = start(onePerSecond);
    for (const name of ["a", "b", "c"]) wait(name);
    await settled();
    assert.deepEqual(done, ["a 0"]);
    assert.equal(throttle.pending, 2);
    await time.pass(999);
    assert.deepEqual(done, ["a 0"]);
    await time.pass(2_000);
    assert.deepEqual(done, ["a 0", "b 1000", "c 2000"]);
    assert.equal(throttle.pending, 0);
    assert.equal(time.timers, 0);
  });

  test("one timer at a time, set for exactly the wait that the core gives", async () => {
    const { time, wait } = start({ algorithm: "fix_window_per_key", limit: 1, scale: 12_345 });
    for (let count = 0; count < 50; count += 1) wait(count);
    await settled();
    assert.equal(time.timers, 1);
    assert.deepEqual(time.asked, [12_345]);
    await time.pass(12_345);
    assert.equal(time.timers, 1);
    assert.deepEqual(time.asked, [12_345, 12_345]);
  });

  test("one timer for many keys, for the soonest of them", async () => {
    const { time, done, wait } = start(onePerSecond);
    for (const key of ["x", "y"]) wait(key, { key });
    await time.pass(300);
    for (const key of ["x", "y", "z", "z"]) wait(`${key}2`, { key });
    await settled();
    assert.equal(time.timers, 1);
    await time.pass(1_000);
    assert.deepEqual(done, ["x 0", "y 0", "z2 300", "x2 1000", "y2 1000", "z2 1300"]);
  });

  test("the higher priority first, and in order within one", async () => {
    const { time, done, wait } = start(onePerSecond);
    wait("first");
    wait("low", { priority: -1 });
    wait("a");
    wait("high", { priority: 5 });
    wait("b");
    await time.pass(4_000);
    assert.deepEqual(done, ["first 0", "high 1000", "a 2000", "b 3000", "low 4000"]);
  });

  test("a call of a higher cost is not overtaken by cheaper ones", async () => {
    const { time, done, wait } = start({ algorithm: "token_bucket", capacity: 5, refillRate: 1 });
    wait("five", { cost: 5 });
    wait("four", { cost: 4 });
    wait("one", { cost: 1 });
    await time.pass(5_000);
    assert.deepEqual(done, ["five 0", "four 4000", "one 5000"]);
  });

  test("a denied wait is free: it does not push its own turn away", async () => {
    const { time, done, wait } = start({
      algorithm: "sliding_window",
      limit: 1,
      scale: "1s",
      denied: "count",
    });
    wait("a");
    await time.pass(900);
    wait("b");
    await time.pass(100);
    assert.deepEqual(done, ["a 0", "b 1000"]);
  });

  test("several policies are one decision", async () => {
    const { time, done, wait } = start([
      { name: "burst", algorithm: "token_bucket", capacity: 2, refillRate: 2 },
      { name: "long", algorithm: "fix_window_per_key", limit: 3, scale: "10s" },
    ]);
    for (const name of "abcd") wait(name);
    await time.pass(10_000);
    assert.deepEqual(done, ["a 0", "b 0", "c 500", "d 10000"]);
  });
});

describe("giving up", () => {
  test("an aborted wait frees its place at once", async () => {
    const { time, throttle, done, wait } = start({ algorithm: "token_bucket", capacity: 3, refillRate: 1 });
    wait("two", { cost: 2 });
    const controller = new AbortController();
    wait("three", { cost: 3, signal: controller.signal });
    wait("one", { cost: 1 });
    await settled();
    assert.deepEqual(done, ["two 0"]);
    controller.abort("changed my mind");
    await settled();
    assert.deepEqual(done, ["two 0", "three changed my mind", "one 0"]);
    assert.equal(throttle.pending, 0);
    assert.equal(time.timers, 0);
  });

  test("a signal that is aborted already", async () => {
    const { throttle, done, wait } = start(onePerSecond);
    wait("a", { signal: AbortSignal.abort("too late") });
    wait("b");
    await settled();
    assert.deepEqual(done, ["a too late", "b 0"]);
    assert.equal(throttle.pending, 0);
  });

  test("aborting in the middle of the line keeps the order of the others", async () => {
    const { time, done, wait } = start(onePerSecond);
    const controllers = [0, 1, 2, 3].map(() => new AbortController());
    controllers.forEach(({ signal }, name) => {
      wait(name, { signal });
    });
    controllers[2].abort("no");
    await time.pass(3_000);
    assert.deepEqual(done, ["0 0", "2 no", "1 1000", "3 2000"]);
  });

  test("maxWait rejects a longer wait at once", async () => {
    const { done, wait } = start(onePerSecond);
    wait("a");
    wait("b", { maxWait: 999 });
    await settled();
    assert.deepEqual(done, ["a 0", "b max_wait"]);
  });

  test("maxWait lets a call through that fits to the millisecond", async () => {
    const { time, done, wait } = start(onePerSecond);
    wait("a");
    wait("b", { maxWait: 1_000 });
    wait("c", { maxWait: 1_500 });
    await time.pass(1_500);
    assert.deepEqual(done, ["a 0", "b 1000", "c max_wait"]);
    await time.pass(1_000);
  });

  test("maxWait further back in the line runs out there", async () => {
    const { time, throttle, done, wait } = start(onePerSecond);
    for (const name of "abc") wait(name);
    wait("d", { maxWait: 1_500 });
    await time.pass(1_499);
    assert.equal(throttle.pending, 2);
    await time.pass(1);
    assert.deepEqual(done, ["a 0", "b 1000", "d max_wait"]);
  });

  test("maxQueue", async () => {
    const { done, throttle, wait } = start(onePerSecond, { maxQueue: 2 });
    for (const name of "abcd") wait(name);
    await settled();
    assert.deepEqual(done, ["a 0", "d queue_full"]);
    assert.equal(throttle.pending, 2);
  });

  test("a call that finds no place in the queue does not delay those that have one", async () => {
    const { time, done, wait } = start(
      { algorithm: "token_bucket", capacity: 5, refillRate: 1 },
      { maxQueue: 1 },
    );
    wait("a", { cost: 5 });
    wait("b");
    wait("c", { cost: 5, priority: 1 });
    await time.pass(1_000);
    assert.deepEqual(done, ["a 0", "c queue_full", "b 1000"]);
  });

  test("clear rejects all waiting calls, and the next one waits as before", async () => {
    const { time, throttle, done, wait } = start(onePerSecond);
    for (const name of "abc") wait(name);
    throttle.clear();
    await settled();
    assert.deepEqual(done, ["a 0", "b cleared", "c cleared"]);
    assert.equal(throttle.pending, 0);
    assert.equal(time.timers, 0);
    wait("d");
    await time.pass(1_000);
    assert.equal(done.at(-1), "d 1000");
  });

  test("clear keeps the wait that a server sent", async () => {
    const { time, throttle, done, wait } = start(onePerSecond);
    throttle.hold("", 5_000);
    throttle.clear();
    wait("a");
    await time.pass(5_000);
    assert.deepEqual(done, ["a 5000"]);
  });

  test("a cost that can never fit is rejected at once, also behind others", async () => {
    const { done, wait } = start({ algorithm: "token_bucket", capacity: 3, refillRate: 1 });
    wait("a", { cost: 3 });
    wait("b");
    wait("c", { cost: 4 });
    wait("d", { cost: -1 });
    wait("e", { cost: 1.5 });
    await settled();
    assert.deepEqual(done.sort(), ["a 0", "c invalid_cost", "d invalid_cost", "e invalid_cost"]);
  });

  test("a hold that lasts longer than maxWait rejects at once", async () => {
    const { throttle, done, wait } = start(onePerSecond);
    throttle.hold("", 5_000);
    wait("a", { maxWait: 4_999 });
    await settled();
    assert.deepEqual(done, ["a max_wait"]);
  });

  test("an error names the invalid input", async () => {
    const throttle = new Throttle(onePerSecond);
    for (const asked of [{ maxWait: -1 }, { maxWait: "1s" }, { priority: Number.NaN }])
      await assert.rejects(throttle.acquire(asked), { code: "invalid_option" });
    await assert.rejects(throttle.acquire({ key: {} }), { code: "invalid_key" });
    assert.throws(() => new Throttle(onePerSecond, { maxQueue: -1 }), { code: "invalid_option" });
    assert.throws(() => new Throttle(onePerSecond, null), { code: "invalid_option" });
    assert.throws(() => throttle.wrap(() => 1, { edge: "middle" }), { code: "invalid_option" });
  });
});

describe("clocks that step", () => {
  test("forward: calls that are due run when the timer rings, and no more", async () => {
    const { time, done, wait } = start(onePerSecond);
    for (const name of "abcd") wait(name);
    await settled();
    time.jump(60_000);
    await time.pass(1_000);
    assert.deepEqual(done, ["a 0", "b 61000"]);
    await time.pass(1_000);
    assert.equal(done.at(-1), "c 62000");
  });

  test("forward: the next call runs those before it, without the timer", async () => {
    const { time, done, wait } = start({ algorithm: "fix_window", limit: 1, scale: "1h" });
    wait("a");
    wait("b");
    await settled();
    time.jump(3_600_000);
    wait("c");
    await settled();
    assert.deepEqual(done, ["a 0", "b 3600000"]);
  });

  test("back: no more calls run than the policy allows, and none waits for ever", async () => {
    const { time, done, wait, throttle } = start(twoPerSecond);
    for (const name of "abcdef") wait(name);
    await settled();
    time.jump(-500);
    await time.pass(3_000);
    assert.equal(throttle.pending, 0);
    assert.deepEqual(
      done.map((each) => each.split(" ")[0]),
      ["a", "b", "c", "d", "e", "f"],
    );
  });

  test("far back: one wrong reading does not freeze the line", async () => {
    const { time, wait, throttle } = start(twoPerSecond);
    for (const name of "abcd") wait(name);
    await settled();
    time.jump(-86_400_000);
    await time.pass(3_000);
    assert.equal(throttle.pending, 0);
  });

  test("a timer that rings early lets no call through early", async () => {
    const { time, done, wait } = start(onePerSecond);
    wait("a");
    wait("b");
    await settled();
    time.jump(-3);
    await time.pass(1_000);
    assert.deepEqual(done, ["a 0"]);
    await time.pass(3);
    assert.deepEqual(done, ["a 0", "b 1000"]);
  });

  test("a wait longer than a timer can be set for", async () => {
    const { time, done, wait } = start({ algorithm: "fix_window_per_key", limit: 1, scale: "60d" });
    wait("a");
    wait("b");
    await settled();
    assert.ok(time.asked.every((milliseconds) => milliseconds < 2 ** 31));
    await time.pass(60 * 86_400_000);
    assert.deepEqual(done, ["a 0", `b ${60 * 86_400_000}`]);
  });
});

describe("wrap", () => {
  test("each call waits its turn, with its arguments, result and this", async () => {
    const { time, throttle } = start(onePerSecond);
    const counter = {
      total: 0,
      add: throttle.wrap(function (by) {
        this.total += by;
        return this.total;
      }),
    };
    const answers = Promise.all([counter.add(1), counter.add(2)]);
    await time.pass(1_000);
    assert.deepEqual(await answers, [1, 3]);
  });

  test("the call rejects with the function's error", async () => {
    const { throttle } = start(onePerSecond);
    await assert.rejects(throttle.wrap(() => Promise.reject(new Error("mine")))(), /mine/);
  });

  test("leading: at once or not at all", async () => {
    const { time, throttle } = start(onePerSecond);
    const press = throttle.wrap((name) => name, { edge: "leading" });
    assert.deepEqual(await Promise.all([press("a"), press("b"), press("c")]), ["a", undefined, undefined]);
    assert.equal(throttle.pending, 0);
    await time.pass(1_000);
    assert.equal(await press("d"), "d");
  });

  test("trailing: at once, then the last of those that had to wait", async () => {
    const { time, throttle } = start(onePerSecond);
    const seen = [];
    const scroll = throttle.wrap((place) => seen.push(place), { edge: "trailing" });
    scroll(1);
    await settled();
    for (const place of [2, 3, 4]) scroll(place);
    assert.equal(throttle.pending, 1);
    await time.pass(5_000);
    assert.deepEqual(seen, [1, 4]);
  });
});

describe("many", () => {
  test("100,000 waiting calls: in order, exactly on time, and all memory freed", async () => {
    const { time, throttle } = start({ algorithm: "token_bucket", capacity: 1, refillRate: 1_000 });
    const began = time.now;
    const [passed, wrong] = [[], []];
    for (let number = 0; number < 100_000; number += 1) {
      throttle.acquire().then(() => {
        if (number !== passed.length || time.now - began !== number) wrong.push(number);
        passed.push(number);
      });
    }
    assert.equal(throttle.pending, 99_999);
    await settled();
    while (throttle.pending > 0) {
      time.now += 1;
      time.ring();
      await null;
    }
    await settled();
    assert.deepEqual(wrong, []);
    assert.equal(passed.length, 100_000);
    assert.equal(time.timers, 0);
  });

  test("100,000 of different priorities go by priority, then by arrival", async () => {
    const { time, throttle } = start({ algorithm: "token_bucket", capacity: 1, refillRate: 1_000 });
    await throttle.acquire();
    const passed = [];
    // Each priority comes twice, in an order that is neither rising nor falling.
    for (let number = 0; number < 100_000; number += 1) {
      const priority = (number * 30_103) % 50_000;
      throttle.acquire({ priority }).then(() => passed.push({ priority, number }));
    }
    while (throttle.pending > 0) {
      time.now += 1;
      time.ring();
    }
    await settled();
    const expected = passed.toSorted(
      (one, other) => other.priority - one.priority || one.number - other.number,
    );
    assert.equal(passed.length, 100_000);
    assert.deepEqual(passed, expected);
  });

  test("100,000 aborted", async () => {
    const { time, throttle, wait } = start(onePerSecond);
    wait("a");
    const all = Array.from({ length: 100_000 }, () => new AbortController());
    const gone = all.map(({ signal }) => throttle.acquire({ signal }).catch((reason) => reason));
    for (const controller of all) controller.abort("no");
    assert.ok((await Promise.all(gone)).every((reason) => reason === "no"));
    assert.equal(throttle.pending, 0);
    assert.equal(time.timers, 0);
  });
});

/** What stays of some work once all garbage is collected, in bytes. */
async function kept(work) {
  assert.ok(globalThis.gc, "run with --expose-gc");
  const used = async () => {
    // What a rejection left behind goes in a turn of its own.
    for (let pass = 0; pass < 3; pass += 1) {
      await settled();
      globalThis.gc();
    }
    return process.memoryUsage().heapUsed;
  };
  // The first round compiles, and makes the room that is used again.
  await work();
  const before = await used();
  await work();
  return (await used()) - before;
}

describe("memory that is left", () => {
  test("by calls that were aborted behind a long wait: none", async () => {
    const { time, throttle, wait } = start({ algorithm: "fix_window_per_key", limit: 1, scale: "1h" });
    wait("first");
    wait("second");
    const bytes = await kept(async () => {
      const controllers = Array.from({ length: 20_000 }, () => new AbortController());
      const gone = controllers.map(({ signal }, number) =>
        throttle.acquire({ signal, maxWait: 7_200_000, priority: number % 7 }).catch(() => {}),
      );
      for (const controller of controllers) controller.abort("no");
      await Promise.all(gone);
    });
    assert.deepEqual([throttle.pending, time.timers], [1, 1]);
    assert.ok(bytes < 200_000, `${bytes} bytes, ${bytes / 20_000} for each`);
  });

  test("by calls that were aborted while a slow store decides: none", async () => {
    // Without IndexedDB a shared budget is this page's own, and its answers come a moment later.
    const { throttle } = start(
      { algorithm: "fix_window_per_key", limit: 1, scale: "1h" },
      { shared: "slow" },
    );
    const { warn } = console;
    console.warn = () => {};
    await throttle.acquire();
    console.warn = warn;
    const bytes = await kept(async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const gone = Array.from({ length: 5_000 }, () =>
        throttle.acquire({ signal, maxWait: 0 }).catch(() => {}),
      );
      controller.abort("no");
      await Promise.all(gone);
    });
    assert.equal(throttle.pending, 0);
    assert.ok(bytes < 200_000, `${bytes} bytes`);
  });

  test("by repeated holds: one time for each key", async () => {
    const { time, throttle, done, wait } = start(onePerSecond);
    const bytes = await kept(() => {
      for (let count = 0; count < 200_000; count += 1) {
        time.now += 1;
        throttle.hold("", 3_600_000);
      }
      time.asked.length = 0;
    });
    assert.equal(time.timers, 0, "nobody waits, so no timer runs");
    // Of less, compiled code and the collector take some at any time.
    assert.ok(bytes < 400_000, `${bytes} bytes`);
    wait("a");
    assert.equal(time.timers, 1);
    await time.pass(3_600_000);
    assert.deepEqual([done.length, time.timers], [1, 0]);
  });

  test("by keys that a server had held, once the hold is over: none", async () => {
    let next = 0;
    const { time, throttle } = start(onePerSecond, {
      keyOf: () => (next += 1),
      retries: 0,
      fetch: async () => new Response(null, { status: 429, headers: { "Retry-After": "999999999" } }),
    });
    const bytes = await kept(async () => {
      for (let count = 0; count < 5_000; count += 1)
        assert.equal((await throttle.fetch("https://api.example.com/", { method: "POST" })).status, 429);
      await time.pass(3_600_000);
      // The next call removes them: no timer runs while nobody waits.
      await throttle.acquire();
    });
    assert.equal(time.timers, 0);
    assert.ok(bytes < 300_000, `${bytes} bytes, ${bytes / 5_000} for each`);
  });
});

test("100,000 under one signal: one listener, and all go together", async () => {
  const { time, throttle, wait } = start(onePerSecond);
  wait("a");
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => {
    listeners += 1;
    return addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args) => {
    listeners -= 1;
    return removeEventListener.apply(signal, args);
  };
  const gone = Array.from({ length: 100_000 }, () => throttle.acquire({ signal }).catch((reason) => reason));
  assert.equal(listeners, 1);
  await time.pass(1_000);
  controller.abort("no");
  const reasons = await Promise.all(gone);
  assert.equal(reasons.filter((reason) => reason === "no").length, 99_999);
  assert.equal(throttle.pending, 0);
  assert.equal(time.timers, 0);
  await time.pass(1_000);
  await throttle.acquire({ signal: new AbortController().signal });
});

test("a signal is let go of when the wait is over", async () => {
  const { time, throttle } = start(onePerSecond);
  const { signal } = new AbortController();
  let listeners = 0;
  signal.addEventListener = () => {
    listeners += 1;
  };
  signal.removeEventListener = () => {
    listeners -= 1;
  };
  const all = [1, 2, 3].map(() => throttle.acquire({ signal }));
  assert.equal(listeners, 1);
  await time.pass(2_000);
  await Promise.all(all);
  assert.equal(listeners, 0);
});

test("a signal that throws affects only its own call", async () => {
  const { time, throttle, done, wait } = start(onePerSecond);
  const broken = (name) => {
    const { signal } = new AbortController();
    signal[name] = () => {
      throw new Error(name);
    };
    return signal;
  };
  wait("first");
  wait("a", { signal: broken("addEventListener") });
  wait("b", { signal: broken("removeEventListener") });
  wait("c");
  await settled();
  assert.deepEqual(done, ["first 0", "a Error: addEventListener"]);
  assert.equal(throttle.pending, 2);
  await time.pass(2_000);
  assert.deepEqual(done.slice(2), ["b 1000", "c 2000"]);
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
});

test("a clock that is set back while no call waits does not make a hold longer", async () => {
  const { time, throttle, done, wait } = start(onePerSecond);
  throttle.hold("", 5_000);
  await time.pass(4_000);
  time.now -= 86_400_000;
  wait("a");
  await time.pass(4_999);
  assert.deepEqual(done, []);
  await time.pass(1);
  assert.equal(done.length, 1);
});

describe("invalid input", () => {
  const { throttle } = start(onePerSecond);
  const refusal = (work) => {
    try {
      work();
    } catch (error) {
      return `${error.code} ${error.message}`;
    }
    return "none";
  };

  test("an error names a misspelt or invalid option, with what is accepted", () => {
    const known =
      "use one of clock, timer, maxQueue, shared, keyOf, retries, retry, retryBudget, learn, random, fair, maxWait, maxHold, fetch, offline, onChange";
    for (const [options, message] of [
      [{ maxqueue: 1 }, `options: "maxqueue" is not an option; ${known}`],
      [{ maxQueue: -1 }, "maxQueue: -1 is not a number of calls, 0 or more"],
      [{ maxWait: "1s" }, 'maxWait: "1s" is not a number of milliseconds, 0 or more'],
      [{ maxHold: -1 }, "maxHold: -1 is not a number of milliseconds, 0 or more"],
      [{ retries: "no" }, 'retries: "no" is not a number of times, 0 or more'],
      [{ shared: true }, "shared: true is not a string"],
      [{ offline: true }, 'offline: true is not "wait" or "fail"'],
      [{ retry: true }, 'retry: true is not "any" or "safe"'],
      [{ learn: 1 }, "learn: 1 is not a boolean"],
      [
        { learn: true, shared: "tabs" },
        "learn: true is not accepted with shared: other tabs use the same limits",
      ],
      [{ random: 4 }, "random: 4 is not a function"],
      [{ timer: 5 }, "timer: 5 is not a function"],
      [{ keyOf: "origin" }, 'keyOf: "origin" is not a function'],
      ["api", 'options: "api" is not an object'],
    ]) {
      const refused = refusal(() => new Throttle(onePerSecond, options));
      assert.equal(refused, `invalid_option ${message}`);
    }
  });

  test("and an invalid argument of acquire, wrap and hold", async () => {
    for (const [asked, message] of [
      ["search", 'options: "search" is not an object'],
      [null, "options: null is not an object"],
      [
        { maxwait: 1 },
        'options: "maxwait" is not an option; use one of key, cost, signal, maxWait, priority, tenant, onChange',
      ],
      [{ signal: {} }, "signal: an object is not an AbortSignal"],
      [{ signal: { throwIfAborted() {} } }, "signal: an object is not an AbortSignal"],
      [{ signal: null }, "signal: null is not an AbortSignal"],
    ])
      await assert.rejects(throttle.acquire(asked), { code: "invalid_option", message });
    assert.match(
      refusal(() => throttle.wrap(5)),
      /^invalid_option work: 5 is not a function$/,
    );
    assert.match(
      refusal(() => throttle.wrap(() => {}, { signal: "stop" })),
      /^invalid_option signal: "stop" is not an AbortSignal$/,
    );
    assert.match(
      refusal(() => throttle.hold({}, 1)),
      /^invalid_key/,
    );
    assert.match(
      refusal(() => throttle.hold("a", Number.NaN)),
      /^invalid_option milliseconds: NaN/,
    );
    assert.equal(throttle.pending, 0);
  });
});

test("disposed of, it rejects all waiting and later calls, and stops its timer", async () => {
  const { time, throttle, done, wait } = start(onePerSecond);
  for (const name of ["a", "b"]) wait(name);
  throttle.hold("elsewhere", 5_000);
  await settled();
  throttle[Symbol.dispose]();
  throttle[Symbol.dispose]();
  await settled();
  assert.deepEqual(done, ["a 0", "b cleared"]);
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
  await assert.rejects(throttle.acquire(), { code: "disposed" });
});
