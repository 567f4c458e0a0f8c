// Charging by the response: reserved before the handler, settled or given back after.

import assert from "node:assert/strict";
import { request } from "node:http";
import test, { describe, mock } from "node:test";
import { elapse } from "../lib/elapse.mjs";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, promised } from "./lib/limits.mjs";
import { RemoteReserving, ReservingLimiter } from "./lib/reserving.mjs";

mock.method(console, "warn", () => {});

const key = () => "user:42";

/** Resolves when nothing is open any more: a response is read by its client before it has ended on the server. */
async function closed(limiter) {
  const patience = performance.now() + 60_000;
  while (limiter.open > 0 && performance.now() < patience) await new Promise(setImmediate);
  assert.equal(limiter.open, 0);
}

for (const [name, framework] of Object.entries(frameworks)) {
  for (const Limiter of [ReservingLimiter, RemoteReserving]) {
    const isRemote = Limiter === RemoteReserving;
    const serve = async (t, charge, handler, more = {}) => {
      const limiter = new Limiter(policyOf(3));
      const guards = [{ limiter, key, charge, ...more }];
      return { limiter, url: await served(t, framework, { "/": { guards, handler } }) };
    };

    describe(`${name}${isRemote ? ", asynchronous" : ""}`, () => {
      for (const [charge, statuses] of [
        ["failures", { 200: 0, 204: 0, 304: 0, 400: 1, 401: 1, 500: 1 }],
        ["successes", { 200: 1, 204: 1, 304: 1, 400: 0, 401: 0, 500: 0 }],
      ])
        for (const [status, count] of Object.entries(statuses))
          test(`charge: ${charge} counts ${count} for a ${status}`, async (t) => {
            const body = ["204", "304"].includes(status) ? null : "text";
            const { limiter, url } = await serve(t, charge, () => ({ status: Number(status), body }));
            const response = await ask(url);
            assert.equal(response.status, Number(status));
            // What is open counts as used, and may be charged a minute from now, which starts a window of a minute.
            assert.equal(response.headers.ratelimit, '"api";r=2;t=120');
            await closed(limiter);
            assert.equal(limiter.get("user:42"), count);
            // Node tells of an end twice.
            await new Promise(setImmediate);
            assert.equal(limiter.closings, 1);
          });

      test("a handler that throws has failed", async (t) => {
        for (const [charge, count] of [
          ["failures", 1],
          ["successes", 0],
        ])
          for (const error of [new Error("broken"), "not even an error"]) {
            // A text that is thrown is no error to Hono, whose server then says 500 itself.
            const { limiter, url } = await serve(t, charge, async () => {
              throw error;
            });
            assert.equal((await ask(url)).status, 500);
            await closed(limiter);
            assert.equal(limiter.get("user:42"), count);
          }
      });

      const statusOf = (response) => response.statusCode ?? response.status;

      test("a function of the response: what it returns is charged instead of the cost", async (t) => {
        for (const [status, count] of [
          [200, 1],
          [404, 3],
          [503, 0],
        ]) {
          const charge = (response) => ({ 200: 1, 404: 3, 503: 0 })[statusOf(response)];
          const { limiter, url } = await serve(t, charge, () => ({ status }), { cost: 2 });
          const response = await ask(url);
          assert.deepEqual([response.status, response.headers.ratelimit], [status, '"api";r=1;t=120']);
          await closed(limiter);
          assert.equal(limiter.get("user:42"), count);
          await new Promise(setImmediate);
          assert.equal(limiter.closings, 1);
        }
      });

      test("a function of the response: by policy, and of a handler that throws", async (t) => {
        const statuses = [];
        const charge = (response) => {
          statuses.push(statusOf(response));
          return { api: 2 };
        };
        const { limiter, url } = await serve(t, charge, async () => {
          throw new Error("broken");
        });
        assert.equal((await ask(url)).status, 500);
        await closed(limiter);
        assert.deepEqual([statuses, limiter.get("user:42")], [[500], 2]);
      });

      test("a function of the response that fails: what was reserved is charged, and the response is as it was", async (t) => {
        const throwing = () => {
          throw new Error("broken");
        };
        for (const charge of [
          () => -1,
          () => 0.5,
          () => "1",
          () => {},
          async () => -1,
          () => ({}),
          throwing,
        ]) {
          const { limiter, url } = await serve(t, charge, () => ({ status: 200 }), { cost: 2 });
          assert.equal((await ask(url)).status, 200);
          await closed(limiter);
          assert.equal(limiter.get("user:42"), 2, String(charge));
        }
      });

      test("no burst has more tries than the limit, and a success is not charged", async (t) => {
        const asked = [];
        const gate = promised();
        const { limiter, url } = await serve(t, "failures", async () => {
          asked.push(1);
          await gate.promise;
          return { status: 401 };
        });
        const responses = Array.from({ length: 9 }, () => ask(url));
        const denied = await Promise.race(responses);
        assert.equal(denied.status, 429);
        gate.resolve();
        const statuses = (await Promise.all(responses)).map(({ status }) => status);
        assert.equal(statuses.filter((status) => status === 401).length, 3);
        assert.equal(asked.length, 3);
        await closed(limiter);
        assert.equal(limiter.get("user:42"), 3);
      });

      test("a denied request settles nothing", async (t) => {
        const { limiter, url } = await serve(t, "failures", undefined, { cost: 4 });
        assert.equal((await ask(url)).status, 429);
        assert.deepEqual([limiter.open, limiter.get("user:42")], [0, 0]);
      });

      test("a stream is settled once it has ended", async (t) => {
        const { limiter, url } = await serve(t, "successes", () => ({ body: ["a", "b", "c"] }));
        assert.equal((await ask(url)).body, "abc");
        await closed(limiter);
        assert.equal(limiter.get("user:42"), 1);
      });

      test("hanging up while the handler works does not pay", async (t) => {
        for (const charge of ["failures", "successes", () => 0]) {
          const asked = promised();
          const gate = promised();
          const { limiter, url } = await serve(t, charge, async () => {
            asked.resolve();
            await gate.promise;
            return { status: charge === "failures" ? 401 : 200 };
          });
          const sent = request(url).end();
          const gone = new Promise((resolve) => sent.on("error", resolve));
          await asked.promise;
          assert.equal(limiter.open, 1);
          sent.destroy();
          await gone;
          await closed(limiter);
          assert.equal(limiter.get("user:42"), 1);
          gate.resolve();
        }
      });

      test("a limiter that cannot settle breaks no response", async (t) => {
        for (const fail of [
          () => {
            throw new Error("gone");
          },
          async () => Promise.reject(new Error("gone")),
        ]) {
          const limiter = new Limiter(policyOf(3));
          limiter.settle = fail;
          limiter.cancel = fail;
          const guards = [{ limiter, key, charge: "failures" }];
          const url = await served(t, framework, { "/": { guards } });
          assert.equal((await ask(url)).status, 200);
          assert.equal((await ask(url)).status, 200);
        }
      });
    });
  }

  test(`${name}: a limiter without reservations is rejected when the guard is made`, () => {
    const { hit, policies } = limiterOf(policyOf(1));
    const handler = name === "fetch" ? [() => new Response()] : [];
    for (const options of [
      { limiter: { hit, policies } },
      { policy: policyOf(1), fallback: { hit, policies } },
    ])
      assert.throws(() => framework.rateLimit({ ...options, charge: "failures" }, ...handler), {
        code: "invalid_option",
        message: /^limiter is not accepted without reserve, settle and cancel; use charge: "all"/,
      });
  });

  test(`${name}: a concurrency limit holds its slot until the response has ended`, async (t) => {
    const gate = promised();
    const asked = [];
    const policy = [{ name: "running", algorithm: "concurrency", limit: 2 }, { ...policyOf(5, "rpm") }];
    const handler = async () => {
      asked.push(1);
      await gate.promise;
    };
    const url = await served(t, framework, { "/": { guards: [{ policy, key }], handler } });
    const early = promised();
    const denied = [];
    const responses = Array.from({ length: 6 }, async () => {
      const response = await ask(url);
      if (response.status === 429) denied.push(response);
      if (denied.length === 4) early.resolve();
      return response.status;
    });
    // All that are denied, before those that run have ended.
    await early.promise;
    for (const { body } of denied) assert.deepEqual(JSON.parse(body)["violated-policies"], ["running"]);
    gate.resolve();
    const statuses = await Promise.all(responses);
    assert.deepEqual([statuses.filter((status) => status === 200).length, asked.length], [2, 2]);
    // Both slots are free again, and both requests are charged for good.
    const later = [];
    for (let tries = 0; tries < 4; tries += 1) {
      later.push((await ask(url)).status);
      await new Promise(setImmediate);
    }
    assert.deepEqual(later, [200, 200, 200, 429]);
  });

  test(`${name}: a policy is all that is needed`, async (t) => {
    let status = 401;
    const guards = [{ policy: policyOf(2), key, charge: "failures" }];
    const url = await served(t, framework, { "/": { guards, handler: () => ({ status }) } });
    const tries = async (...statuses) => {
      for (const expected of statuses) {
        // Settled as soon as the response has ended, which its client may know first.
        let found;
        do ({ status: found } = await ask(url));
        while (expected === 200 && found === 429);
        assert.equal(found, expected);
      }
    };
    status = 200;
    await tries(200, 200, 200, 200);
    status = 401;
    await tries(401, 401, 429, 429);
  });

  test(`${name}: the reservation of a late limiter is cancelled`, async (t) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    t.after(() => mock.timers.reset());
    const limiter = new ReservingLimiter(policyOf(3));
    const asked = promised();
    const gate = promised();
    const late = {
      policies: limiter.policies,
      hit() {},
      async reserve(...args) {
        asked.resolve();
        await gate.promise;
        return limiter.reserve(...args);
      },
      settle: (id) => limiter.settle(id),
      cancel: (id) => limiter.cancel(id),
    };
    const guards = [{ limiter: late, key, charge: "failures", onError: "deny" }];
    const url = await served(t, framework, { "/": { guards } });
    const response = ask(url);
    await asked.promise;
    await elapse(mock.timers, 2_000);
    assert.equal((await response).status, 503);
    gate.resolve();
    await new Promise(setImmediate);
    await closed(limiter);
    assert.equal(limiter.get("user:42"), 0);
  });
}
