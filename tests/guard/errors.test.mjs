// A limiter that fails or is late follows `onError`, and invalid input never passes.

import assert from "node:assert/strict";
import test, { describe, mock } from "node:test";
import { TollgateError } from "tollgate";
import { elapse } from "../lib/elapse.mjs";
import { ask, limitFields } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, promised } from "./lib/limits.mjs";

mock.method(console, "warn", () => {});

const policies = [policyOf(1)];
const failure = new Error("no connection");

/** Limiters that fail, each in its own way. */
const broken = {
  "that throws": {
    policies,
    hit() {
      throw failure;
    },
  },
  "that rejects": { policies, hit: async () => Promise.reject(failure) },
  "that rejects with a typed error": {
    policies,
    hit: async () => {
      throw new TollgateError("unanswered", "no answer");
    },
  },
};

for (const [name, framework] of Object.entries(frameworks)) {
  const serve = (t, options, handler) =>
    served(t, framework, { "/": { guards: [options].flat(), ...(handler && { handler }) } });

  describe(name, () => {
    for (const [kind, limiter] of Object.entries(broken)) {
      test(`a limiter ${kind}: by default the request passes, without headers`, async (t) => {
        const response = await ask(await serve(t, { limiter }));
        assert.deepEqual([response.status, response.body, limitFields(response)], [200, "Hello\n", {}]);
      });

      test(`a limiter ${kind}: onError as a word`, async (t) => {
        const allowed = await ask(await serve(t, { limiter, onError: "allow" }));
        assert.equal(allowed.status, 200);
        const denied = await ask(await serve(t, { limiter, onError: "deny" }));
        assert.deepEqual([denied.status, limitFields(denied)], [503, { "retry-after": "1" }]);
        assert.match(denied.headers["content-type"], /^application\/problem\+json\b/);
        assert.equal(JSON.parse(denied.body).reason, "error");
        let reached = false;
        const handler = () => {
          reached = true;
        };
        const thrown = await ask(await serve(t, { limiter, onError: "throw" }, handler));
        assert.deepEqual([thrown.status, reached], [500, false]);
      });

      test(`a limiter ${kind}: onError as a function of the error and the request`, async (t) => {
        for (const make of [(value) => value, async (value) => value]) {
          const seen = [];
          const onError = (error, request) => {
            seen.push(error instanceof Error);
            return make(framework.header(request, "X-Then"));
          };
          const url = await serve(t, { limiter, onError });
          assert.equal((await ask(url, { headers: { "X-Then": "allow" } })).status, 200);
          assert.equal((await ask(url, { headers: { "X-Then": "deny" } })).status, 503);
          assert.equal((await ask(url, { headers: { "X-Then": "throw" } })).status, 500);
          assert.deepEqual(seen, [true, true, true]);
        }
      });

      test(`a limiter ${kind}: the fallback decides, by its own policy`, async (t) => {
        for (const fallback of [policyOf(2, "share"), limiterOf(policyOf(2, "share"))]) {
          const url = await serve(t, { limiter, fallback, onError: "throw" });
          const first = await ask(url);
          assert.deepEqual([first.status, first.headers["ratelimit-policy"]], [200, '"share";q=2;w=60']);
          assert.equal((await ask(url)).status, 200);
          assert.equal((await ask(url)).status, 429);
        }
      });
    }

    test("a fallback that fails leaves it to onError", async (t) => {
      for (const fallback of [broken["that throws"], broken["that rejects"]]) {
        const url = await serve(t, { limiter: broken["that rejects"], fallback, onError: "deny" });
        assert.equal((await ask(url)).status, 503);
      }
    });

    test("a limiter that never responds is abandoned after the timeout", async (t) => {
      mock.timers.enable({ apis: ["setTimeout"] });
      t.after(() => mock.timers.reset());
      for (const [timeout, time] of [
        [undefined, 2_000],
        [50, 50],
      ]) {
        const asked = promised();
        const limiter = {
          policies,
          hit: () => {
            asked.resolve();
            return new Promise(() => {});
          },
        };
        const url = await serve(t, { limiter, timeout, onError: "deny" });
        let status;
        const response = ask(url).then((response) => {
          ({ status } = response);
        });
        await asked.promise;
        await elapse(mock.timers, time - 1);
        assert.equal(status, undefined);
        // The last tick may end a little later.
        await elapse(mock.timers, 4);
        await response;
        assert.equal(status, 503);
      }
    });

    test("a fallback that never responds is abandoned, too", async (t) => {
      mock.timers.enable({ apis: ["setTimeout"] });
      t.after(() => mock.timers.reset());
      const asked = promised();
      const fallback = {
        policies,
        hit: () => {
          asked.resolve();
          return new Promise(() => {});
        },
      };
      const url = await serve(t, { limiter: broken["that throws"], fallback, onError: "deny" });
      const response = ask(url);
      await asked.promise;
      await elapse(mock.timers, 2_000);
      assert.equal((await response).status, 503);
    });

    test("a limiter that decided without its store: as it said, without numbers", async (t) => {
      const decided = (allowed) => ({
        policies,
        hit: async () => ({ allowed, limit: 0, remaining: 0, policy: "", violated: [], reason: "error" }),
      });
      const allowed = await ask(await serve(t, { limiter: decided(true) }));
      assert.deepEqual([allowed.status, limitFields(allowed)], [200, {}]);
      assert.equal((await ask(await serve(t, { limiter: decided(false) }))).status, 503);
    });

    test("invalid input never passes, whatever onError is", async (t) => {
      const limiter = limiterOf(policyOf(1));
      const fallback = limiterOf(policyOf(1));
      let reached = 0;
      const handler = () => {
        reached += 1;
      };
      for (const key of [undefined, null, {}, [], Number.NaN, true]) {
        const url = await serve(t, { limiter, fallback, key: () => key, onError: "allow" }, handler);
        assert.equal((await ask(url)).status, 400, String(key));
      }
      for (const cost of [-1, 0.5, "1", Number.NaN, null, {}, []]) {
        const url = await serve(t, { limiter, fallback, cost: () => cost, onError: "allow" }, handler);
        assert.equal((await ask(url)).status, 503, String(cost));
        assert.throws(() => framework.rateLimit({ limiter, cost }, () => {}), { code: "invalid_cost" });
      }
      const url = await serve(
        t,
        { limiter, policyFor: () => ({ algorithm: "fix_window", limit: -1, scale: "1m" }) },
        handler,
      );
      assert.equal((await ask(url)).status, 503);
      assert.equal(reached, 0);
      assert.deepEqual([limiter.size, fallback.size], [0, 0]);
    });

    test("an error in one of the caller's functions does not pass", async (t) => {
      const limiter = limiterOf(policyOf(9));
      let reached = 0;
      const handler = () => {
        reached += 1;
      };
      const throws = () => {
        throw failure;
      };
      const rejects = async () => throws();
      for (const name of ["key", "cost", "skip", "policyFor"]) {
        for (const fails of [throws, rejects]) {
          for (const [onError, status] of [
            [undefined, 503],
            ["allow", 503],
            ["deny", 503],
            ["throw", 500],
          ]) {
            const url = await serve(t, { limiter, onError, [name]: fails }, handler);
            assert.equal((await ask(url)).status, status, name);
          }
        }
      }
      const denying = { limiter: limiterOf(policyOf(1)), cost: 2 };
      for (const fails of [throws, rejects])
        assert.equal((await ask(await serve(t, { ...denying, onDenied: fails }, handler))).status, 500);
      const failing = { limiter: broken["that rejects"] };
      for (const fails of [throws, rejects])
        assert.equal((await ask(await serve(t, { ...failing, onError: fails }, handler))).status, 500);
      assert.equal(reached, 0);
    });

    test("policies that are not those of the limiter elsewhere break no response", async (t) => {
      const elsewhere = limiterOf(policyOf(1, "other"));
      const limiter = { hit: async (key, cost) => elsewhere.hit(key, cost) };
      const url = await serve(t, { limiter, policy: policyOf(1, "api") });
      const first = await ask(url);
      assert.deepEqual([first.status, limitFields(first)], [200, {}]);
      const denied = await ask(url);
      assert.equal(denied.status, 429);
      assert.equal(JSON.parse(denied.body).status, 429);
    });
  });
}
