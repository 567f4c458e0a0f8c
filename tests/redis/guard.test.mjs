// The guard of every framework over Redis: one budget for several apps, and a Redis that is away.

import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { ask } from "../guard/lib/client.mjs";
import { frameworks, served } from "../guard/lib/frameworks.mjs";
import { connect, startServer } from "./lib/server.mjs";
import { withServer } from "./lib/setting.mjs";

mock.method(console, "warn", () => {});

const { options } = withServer();
const key = () => "user:42";
/** The `timeout` of a guard: long enough for a busy machine. */
const timeout = 60_000;
const policy = { name: "api", algorithm: "sliding_window", limit: 10, scale: "1h" };

/** How many of these responses have a status. */
const count = (responses, wanted) => responses.filter(({ status }) => status === wanted).length;

for (const [name, framework] of Object.entries(frameworks)) {
  describe(name, () => {
    test("of a load on three apps at once exactly the limit passes", async (t) => {
      const given = options();
      const urls = await Promise.all(
        Array.from({ length: 3 }, () =>
          served(t, framework, {
            "/": { guards: [{ limiter: new RedisLimiter(policy, given), key, timeout }] },
          }),
        ),
      );
      const responses = await Promise.all(Array.from({ length: 60 }, (_, at) => ask(urls[at % 3])));
      assert.equal(count(responses, 200), 10);
      assert.equal(count(responses, 429), 50);
      for (const { headers } of responses) assert.equal(headers["ratelimit-policy"], '"api";q=10;w=3600');
    });

    test("plans: far above the limiter's own numbers, of another shape, and an upgrade that keeps what was used", async (t) => {
      const limiter = new RedisLimiter(policy, options());
      const plans = {
        free: { ...policy, limit: 20 },
        paid: { ...policy, limit: 150 },
        daily: { ...policy, algorithm: "fix_window", limit: 5, scale: "1d" },
      };
      const policyFor = async (request) => plans[framework.header(request, "X-Plan")];
      const guards = [{ limiter, key, policyFor, timeout, onError: "throw" }];
      const url = await served(t, framework, { "/": { guards } });
      const passed = async (plan, times) => {
        const headers = plan === undefined ? {} : { "X-Plan": plan };
        const responses = await Promise.all(Array.from({ length: times }, () => ask(url, { headers })));
        assert.equal(count(responses, 200) + count(responses, 429), times);
        return count(responses, 200);
      };
      assert.equal(await passed("free", 25), 20);
      assert.equal(await passed("paid", 140), 130);
      assert.equal(await passed("free", 1), 0);
      assert.equal(await passed(undefined, 1), 0);
      assert.equal(await passed("daily", 7), 5);
      assert.equal(await passed("paid", 1), 0);
    });

    test("only failures are charged, and no burst has more tries than the limit", async (t) => {
      const limiter = new RedisLimiter({ ...policy, denied: "free" }, options());
      let status = 200;
      const guards = [{ limiter, key, timeout, charge: "failures" }];
      const url = await served(t, framework, { "/": { guards, handler: () => ({ status }) } });
      for (let tries = 0; tries < 15; tries += 1) {
        assert.equal((await ask(url)).status, 200);
        // A success is given back after its response.
        while ((await limiter.get(key())) > 0);
      }
      status = 401;
      const responses = await Promise.all(Array.from({ length: 30 }, () => ask(url)));
      assert.equal(count(responses, 401), 10);
      assert.equal(count(responses, 429), 20);
    });

    test("a Redis that is gone: onError, or the fallback", async (t) => {
      const server = await startServer();
      const client = connect(server.port, { enableOfflineQueue: false });
      t.after(() => client.disconnect());
      const limiter = new RedisLimiter(policy, { client, timeout: "20s" });
      const serve = (more) => served(t, framework, { "/": { guards: [{ limiter, key, timeout, ...more }] } });
      const url = await serve({});
      await new Promise((resolve) => (client.status === "ready" ? resolve() : client.once("ready", resolve)));
      assert.equal((await ask(url)).headers.ratelimit, '"api";r=9;t=3600');
      await server.stop();
      assert.equal((await ask(url)).status, 200);
      assert.equal((await ask(await serve({ onError: "deny" }))).status, 503);
      assert.equal((await ask(await serve({ onError: "throw" }))).status, 500);
      const share = await serve({
        fallback: { name: "share", algorithm: "fix_window", limit: 2, scale: "365d" },
      });
      const responses = [await ask(share), await ask(share), await ask(share)];
      assert.deepEqual(
        responses.map(({ status }) => status),
        [200, 200, 429],
      );
    });
  });
}
