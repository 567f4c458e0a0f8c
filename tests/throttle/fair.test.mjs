// Tenants take turns: many calls of one do not delay the first of another, whatever else decides the order.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Throttle } from "tollgate";
import { Throttle as SmallThrottle } from "tollgate/throttle";
import fc from "../lib/properties.mjs";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

function start(policies = onePerSecond, options = {}, Class = Throttle) {
  const time = new FakeTime();
  const throttle = new Class(policies, { clock: time.clock, timer: time.timer, ...options });
  const done = [];
  const began = time.now;
  const wait = (name, asked) =>
    throttle.acquire(asked).then(
      () => done.push(`${name} ${time.now - began}`),
      (error) => done.push(`${name} ${error.code ?? error}`),
    );
  return { time, throttle, done, wait };
}

for (const [entry, Class] of [
  ["tollgate", Throttle],
  ["tollgate/throttle", SmallThrottle],
])
  test(`the first call of another tenant goes after one of the first, by ${entry}`, async () => {
    const { time, done, wait } = start(onePerSecond, {}, Class);
    for (let count = 0; count < 1_000; count += 1) wait(`a${count}`, { tenant: "a" });
    wait("b0", { tenant: "b" });
    wait("b1", { tenant: "b" });
    await time.pass(6_000);
    assert.deepEqual(done, ["a0 0", "a1 1000", "b0 2000", "a2 3000", "b1 4000", "a3 5000", "a4 6000"]);
  });

test("tenants take turns in the order in which they came", async () => {
  const { time, done, wait } = start();
  wait("now");
  for (const name of ["a1", "a2", "a3", "b1", "c1", "c2"]) wait(name, { tenant: name[0] });
  await time.pass(2_000);
  // One that comes back is behind those that wait.
  wait("b2", { tenant: "b" });
  await time.pass(9_000);
  assert.deepEqual(
    done.map((each) => each.split(" ")[0]),
    ["now", "a1", "b1", "c1", "a2", "b2", "c2", "a3"],
  );
});

test("calls without a tenant are one tenant", async () => {
  const { time, done, wait } = start();
  for (const name of ["1", "2", "3"]) wait(name);
  wait("a1", { tenant: "a" });
  wait("number", { tenant: 0 });
  wait("text", { tenant: "0" });
  await time.pass(9_000);
  assert.deepEqual(
    done.map((each) => each.split(" ")[0]),
    ["1", "2", "a1", "number", "text", "3"],
  );
});

test("a higher priority goes first, and tenants take turns within each", async () => {
  const { time, done, wait } = start();
  wait("now");
  for (const name of ["a1", "a2", "b1"]) wait(name, { tenant: name[0] });
  for (const name of ["A1", "A2", "B1"]) wait(name, { tenant: name[0].toLowerCase(), priority: 1 });
  await time.pass(9_000);
  assert.deepEqual(
    done.map((each) => each.split(" ")[0]),
    ["now", "A1", "B1", "A2", "a1", "b1", "a2"],
  );
});

test("signals, maxWait and maxQueue end a wait, and a tenant keeps its turn", async () => {
  const { time, throttle, done, wait } = start(onePerSecond, { maxQueue: 6 });
  const leaving = new AbortController();
  wait("now");
  wait("a1", { tenant: "a", signal: leaving.signal });
  wait("a2", { tenant: "a" });
  wait("b1", { tenant: "b" });
  wait("a3", { tenant: "a", maxWait: 500 });
  wait("b2", { tenant: "b", maxWait: 2_500 });
  wait("c1", { tenant: "c" });
  wait("d1", { tenant: "d" });
  leaving.abort("left");
  await time.pass(9_000);
  assert.deepEqual(done, [
    "now 0",
    "d1 queue_full",
    "a1 left",
    "a3 max_wait",
    "a2 1000",
    "b1 2000",
    "b2 max_wait",
    "c1 3000",
  ]);
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
});

test("`fair` names the tenant of a call, or of a request", async () => {
  const { time, throttle, done, wait } = start(onePerSecond, {
    keyOf: () => "api",
    fair: ({ key, tenant, request }) => request?.headers.get("x-tenant") ?? tenant ?? key,
    fetch: async (request) => new Response(request.headers.get("x-tenant")),
  });
  const ask = async (name, tenant) => {
    await throttle.fetch("https://api.example.com/", { headers: { "x-tenant": tenant } });
    done.push(name);
  };
  ask("now", "a");
  for (const name of ["a1", "a2", "b1"]) ask(name, name[0]);
  await settled();
  wait("c1", { key: "api", tenant: "c" });
  wait("b2", { key: "api", tenant: "b" });
  await time.pass(9_000);
  assert.deepEqual(done, ["now", "a1", "b1", "c1 3000", "a2", "b2 5000"]);
});

describe("a tenant that is none", () => {
  for (const tenant of [{}, null, Number.NaN, true, Symbol("a"), Promise.resolve("a")])
    test(String(Object(tenant)[Symbol.toStringTag] ?? tenant?.toString()), async () => {
      const { throttle } = start(onePerSecond, { fair: () => tenant });
      const error = await throttle.acquire().catch((error) => error);
      assert.equal(error.code, "invalid_option");
      assert.match(error.message, /^tenant: .* is not a string, finite number or bigint$/);
      assert.equal(throttle.pending, 0);
    });

  test("an error of `fair` rejects only its call", async () => {
    const { throttle } = start(onePerSecond, {
      fair: ({ tenant }) => {
        if (tenant === "broken") throw new Error("broken");
        return tenant;
      },
    });
    await assert.rejects(throttle.acquire({ tenant: "broken" }), /^Error: broken$/);
    assert.equal((await throttle.acquire({ tenant: "a" })).allowed, true);
    assert.throws(() => start(onePerSecond, { fair: "tenant" }), { code: "invalid_option" });
  });
});

test("each call knows its place in the order of the turns, and when it comes", async () => {
  const { time, throttle } = start();
  await throttle.acquire();
  const places = new Map();
  const passed = new Map();
  const order = ["a1", "a2", "a3", "b1", "c1", "b2"];
  const began = time.now;
  for (const name of order) {
    const onChange = ({ position, wait }) => places.set(name, [position, time.now - began + wait]);
    throttle.acquire({ tenant: name[0], onChange }).then(() => passed.set(name, time.now - began));
  }
  const states = [];
  throttle.subscribe((state) => states.push(state));
  await settled();
  assert.deepEqual(Object.fromEntries(places), {
    a1: [1, 1_000],
    b1: [2, 2_000],
    c1: [3, 3_000],
    a2: [4, 4_000],
    b2: [5, 5_000],
    a3: [6, 6_000],
  });
  assert.deepEqual(states.at(-1), { pending: 6, position: 6, wait: 6_000 });
  const expected = new Map([...places].map(([name, [, at]]) => [name, at]));
  await time.pass(10_000);
  assert.deepEqual(passed, new Map([...expected].sort((one, other) => one[1] - other[1])));
});

test("any calls: in turns within a priority, in order within a tenant, all of them", async () => {
  const call = fc.record({ tenant: fc.nat(3), priority: fc.nat(1) });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
      const { time, throttle } = start();
      await throttle.acquire();
      const served = [];
      const places = [];
      for (const [number, asked] of calls.entries()) {
        const onChange = ({ position }) => {
          places[number] ??= position;
        };
        throttle.acquire({ ...asked, onChange }).then(() => served.push(number));
      }
      await time.pass(30_000);
      // A model: the rounds of each priority.
      const expected = [];
      for (const level of [1, 0]) {
        const queues = new Map();
        for (const [number, { tenant, priority }] of calls.entries())
          if (priority === level) queues.set(tenant, [...(queues.get(tenant) ?? []), number]);
        while (queues.size > 0)
          for (const [tenant, [first, ...rest]] of [...queues]) {
            expected.push(first);
            if (rest.length > 0) queues.set(tenant, rest);
            else queues.delete(tenant);
          }
      }
      assert.deepEqual(served, expected);
      assert.deepEqual(
        expected.map((number) => places[number]),
        expected.map((_, at) => at + 1),
      );
    }),
    { numRuns: 300 },
  );
});

test("100,000 calls of as many tenants, of ten and of one are all served", async () => {
  for (const tenantOf of [(number) => number, () => "one", (number) => number % 10]) {
    const { time, throttle } = start({ algorithm: "fix_window_per_key", limit: 50_000, scale: "1h" });
    let served = 0;
    const all = Array.from({ length: 100_000 }, (_, number) =>
      throttle.acquire({ tenant: tenantOf(number) }).then(() => {
        served += 1;
      }),
    );
    await settled();
    assert.equal(served, 50_000);
    await time.pass(3_600_000);
    await Promise.all(all);
    assert.deepEqual([served, throttle.pending, time.timers], [100_000, 0, 0]);
  }
});
