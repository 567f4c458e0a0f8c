// Every waiting call knows its place and its exact wait, and a throttle the state of its queue.

import assert from "node:assert/strict";
import test, { describe, mock } from "node:test";
import { Throttle } from "tollgate";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

function start(policies, options = {}) {
  const time = new FakeTime();
  const throttle = new Throttle(policies, { clock: time.clock, timer: time.timer, ...options });
  const told = [];
  const passed = {};
  const began = time.now;
  /** Waits under a name, and notes each place it is told, and when it is let through. */
  const wait = (name, asked = {}) => {
    const onChange = ({ position, wait }) => told.push(`${name} is ${position}, ${wait} ms`);
    return throttle.acquire({ ...asked, onChange }).then(
      () => {
        passed[name] = time.now - began;
      },
      () => {},
    );
  };
  const taken = () => told.splice(0);
  return { time, throttle, wait, taken, passed };
}

describe("onChange of a call gets its place", () => {
  test("at first, and whenever it changes", async () => {
    const { time, wait, taken } = start(onePerSecond);
    for (const name of ["a", "b", "c"]) wait(name);
    assert.deepEqual(taken(), []);
    await settled();
    // "a" never waited.
    assert.deepEqual(taken(), ["b is 1, 1000 ms", "c is 2, 2000 ms"]);
    await time.pass(400);
    assert.deepEqual(taken(), []);
    wait("d");
    await settled();
    assert.deepEqual(taken(), ["d is 3, 2600 ms"]);
    await time.pass(600);
    assert.deepEqual(taken(), ["c is 1, 1000 ms", "d is 2, 2000 ms"]);
    await time.pass(5_000);
    assert.deepEqual(taken(), ["d is 1, 1000 ms"]);
  });

  test("by priority, and again when one goes before it or leaves", async () => {
    const { wait, taken } = start(onePerSecond);
    const leaving = new AbortController();
    for (const name of ["a", "b", "c"]) wait(name);
    await settled();
    taken();
    wait("first", { priority: 1, signal: leaving.signal });
    await settled();
    assert.deepEqual(taken(), ["first is 1, 1000 ms", "b is 2, 2000 ms", "c is 3, 3000 ms"]);
    leaving.abort();
    await settled();
    assert.deepEqual(taken(), ["b is 1, 1000 ms", "c is 2, 2000 ms"]);
  });

  test("when the key is held", async () => {
    const { throttle, wait, taken } = start(onePerSecond);
    for (const name of ["a", "b"]) wait(name);
    await settled();
    taken();
    throttle.hold("", 7_000);
    await settled();
    assert.deepEqual(taken(), ["b is 1, 7000 ms"]);
  });

  test("keys have lines of their own", async () => {
    const { wait, taken } = start(onePerSecond);
    for (const key of ["x", "y"]) for (const name of ["1", "2"]) wait(`${key}${name}`, { key });
    await settled();
    assert.deepEqual(taken(), ["x2 is 1, 1000 ms", "y2 is 1, 1000 ms"]);
  });

  const policies = [
    { algorithm: "fix_window", limit: 2, scale: "1s" },
    { algorithm: "fix_window_per_key", limit: 2, scale: "1s" },
    { algorithm: "sliding_window", limit: 3, scale: 1_700 },
    { algorithm: "sliding_counter", limit: 4, scale: "1s" },
    { algorithm: "token_bucket", capacity: 5, refillRate: 3 },
    { algorithm: "leaky_bucket", capacity: 4, leakRate: 3, per: 700 },
  ];
  for (const policy of policies) {
    test(`the expected wait is the actual wait: ${policy.algorithm}`, async () => {
      const { time, wait, taken, passed } = start([policy, { ...onePerSecond, capacity: 9, refillRate: 5 }]);
      const names = Array.from({ length: 20 }, (_, at) => `${at}`);
      for (const [at, name] of names.entries()) wait(name, { cost: 1 + (at % 2) });
      await settled();
      const expected = Object.fromEntries(
        taken().map((text) => {
          const [, name, milliseconds] = text.match(/^(\d+) is \d+, (\d+) ms$/);
          return [name, Number(milliseconds)];
        }),
      );
      assert.ok(Object.keys(expected).length > 10);
      await time.pass(60_000);
      assert.equal(Object.keys(passed).length, 20);
      for (const [name, milliseconds] of Object.entries(expected))
        assert.equal(passed[name], milliseconds, name);
    });
  }

  test("calls that ran or were rejected get no more reports, and leave no memory", async () => {
    const { time, throttle, wait, taken } = start(onePerSecond);
    for (const name of ["a", "b", "c"]) wait(name);
    throttle.clear();
    await settled();
    assert.deepEqual(taken(), []);
    await time.pass(9_000);
    assert.deepEqual(taken(), []);
  });

  test("a listener that throws is warned of, and a listener may use the throttle", async () => {
    const { mock: warned } = mock.method(console, "warn", () => {});
    const { time, throttle, wait, passed } = start(onePerSecond);
    wait("a");
    throttle.acquire({
      onChange() {
        throw new Error("mine");
      },
    });
    let isFirst = true;
    throttle.acquire({
      onChange: () => {
        if (isFirst) wait("nested");
        isFirst = false;
      },
    });
    await time.pass(10_000);
    assert.equal(passed.nested, 3_000);
    assert.equal(warned.callCount(), 1);
    warned.restore();
  });

  test("it must be a function", async () => {
    const { throttle } = start(onePerSecond);
    await assert.rejects(throttle.acquire({ onChange: "log" }), {
      code: "invalid_option",
      message: /^onChange: /,
    });
    assert.throws(() => new Throttle(onePerSecond, { onChange: 1 }), { code: "invalid_option" });
  });
});

describe("onChange of a throttle gets the number of waiting calls", () => {
  test("once for changes of one turn, and not if nothing changed", async () => {
    const seen = [];
    const { time, throttle, wait } = start(onePerSecond, { onChange: ({ pending }) => seen.push(pending) });
    wait("a");
    await settled();
    assert.deepEqual(seen, []);
    for (const name of ["b", "c", "d"]) wait(name);
    await settled();
    assert.deepEqual(seen, [3]);
    await time.pass(1_000);
    assert.deepEqual(seen, [3, 2]);
    throttle[Symbol.dispose]();
    await settled();
    assert.deepEqual(seen, [3, 2, 0]);
  });
});

describe("a wrapped function takes a signal", () => {
  for (const edge of [undefined, "trailing"]) {
    test(`and its calls are rejected when that is aborted: ${edge ?? "every call"}`, async () => {
      const { time, throttle } = start(onePerSecond);
      const leaving = new AbortController();
      const ran = [];
      const work = throttle.wrap((name) => ran.push(name), { edge, signal: leaving.signal });
      await work("a");
      const waiting = [work("b"), work("c")].map((call) => call.catch((reason) => reason));
      await settled();
      leaving.abort("enough");
      assert.deepEqual(await Promise.all(waiting), ["enough", "enough"]);
      assert.equal(throttle.pending, 0);
      await time.pass(5_000);
      assert.deepEqual(ran, ["a"]);
      await assert.rejects(work("d"), (reason) => reason === "enough");
    });
  }

  test("and reports the place of each call", async () => {
    const { throttle } = start(onePerSecond);
    const seen = [];
    const work = throttle.wrap(() => {}, { onChange: ({ position }) => seen.push(position) });
    for (let count = 0; count < 3; count += 1) work();
    await settled();
    assert.deepEqual(seen, [1, 2]);
  });
});

describe("a subscriber gets the state of the queue", () => {
  const states = (throttle) => {
    const seen = [];
    const unsubscribe = throttle.subscribe(({ pending, position, wait }) =>
      seen.push([pending, position, wait]),
    );
    return { seen, unsubscribe };
  };

  test("soon, then at each change, until it unsubscribes", async () => {
    const { time, throttle } = start(onePerSecond);
    const all = [1, 2, 3].map(() => throttle.acquire());
    const { seen, unsubscribe } = states(throttle);
    await settled();
    assert.deepEqual(seen, [[2, 2, 2_000]]);
    await time.pass(1_000);
    assert.deepEqual(seen.slice(1), [[1, 1, 1_000]]);
    await time.pass(1_000);
    assert.deepEqual(seen.slice(2), [[0, 0, 0]]);
    await Promise.all(all);
    unsubscribe();
    throttle.acquire();
    throttle.acquire();
    await settled();
    assert.equal(seen.length, 3);
  });

  test("by the key whose last call waits longest", async () => {
    const { time, throttle } = start(onePerSecond);
    const { seen } = states(throttle);
    for (const key of ["a", "a", "b", "b", "b"]) throttle.acquire({ key });
    await settled();
    assert.deepEqual(seen.at(-1), [3, 2, 2_000]);
    throttle.hold("a", 10_000);
    await settled();
    assert.deepEqual(seen.at(-1), [3, 1, 10_000]);
    await time.pass(2_000);
    assert.deepEqual(seen.at(-1), [1, 1, 8_000]);
  });

  test("without a wait where none can be known", async () => {
    const { throttle } = start({ algorithm: "concurrency", limit: 1 });
    const { seen } = states(throttle);
    for (let count = 0; count < 3; count += 1) throttle.run(() => new Promise(() => {}));
    await settled();
    assert.deepEqual(seen.at(-1), [2, 2, undefined]);
  });

  test("one that throws does not keep it from others, nor from the queue", async () => {
    const { time, throttle } = start(onePerSecond);
    const warned = mock.method(console, "warn", () => {});
    throttle.subscribe(() => {
      throw new Error("broken");
    });
    const { seen } = states(throttle);
    const both = [throttle.acquire(), throttle.acquire()];
    await time.pass(1_000);
    await Promise.all(both);
    assert.deepEqual(seen, [
      [1, 1, 1_000],
      [0, 0, 0],
    ]);
    assert.equal(warned.mock.callCount(), 2);
    warned.mock.restore();
  });
});
