// Clients that send a command again after its reply was lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { RedisLimiter } from "tollgate/redis";
import { startProxy } from "./lib/proxy.mjs";
import { withServer } from "./lib/setting.mjs";

const setting = withServer();
/** So long that no window ends while a test runs. */
const window = { algorithm: "fix_window", limit: 10_000, scale: "365d" };

test("ioredis resends by itself, and nothing is counted twice", async () => {
  const proxy = await startProxy(setting.server.port);
  const client = new Redis({ port: proxy.port, retryStrategy: () => 1 });
  client.on("error", () => {});
  try {
    const given = setting.options({ client });
    const limiter = new RedisLimiter(window, given);
    const other = new RedisLimiter(window, { ...given, client: setting.redis });
    await limiter.hit("a");
    let expected = 1;
    for (let round = 1; round <= 40; round++) {
      proxy.cutNext();
      assert.equal((await limiter.hit("a", 2)).allowed, true);
      expected += 2;
      assert.equal(proxy.cuts, round);
      assert.equal(await other.get("a"), expected, `after ${round} cuts`);
    }
  } finally {
    client.disconnect();
    await proxy.stop();
  }
});

test("also after the log was shortened in the meantime", async () => {
  const proxy = await startProxy(setting.server.port);
  let reconnect;
  // The client waits with its new connection until others have shortened the log.
  const client = new Redis({ port: proxy.port, retryStrategy: () => 1, lazyConnect: true });
  client.on("error", () => {});
  const { connect } = client;
  try {
    await client.connect();
    const given = setting.options({ client });
    const limiter = new RedisLimiter(window, given);
    const other = new RedisLimiter(window, { ...given, client: setting.redis });
    await limiter.hit("a");
    let expected = 1;
    for (let round = 1; round <= 20; round++) {
      const held = new Promise((resolve) => {
        client.connect = () =>
          new Promise((open) => {
            reconnect = () => open(connect.call(client));
            resolve();
          });
      });
      proxy.cutNext();
      const lost = limiter.hit("a", 3);
      await held;
      const { bases } = other.stats;
      let hits = 0;
      while (other.stats.bases < bases + 2) {
        await other.hit("a");
        hits++;
      }
      client.connect = connect;
      reconnect();
      // It was counted; what became of it is in the base, and cannot be told.
      await assert.rejects(lost, { code: "unanswered", message: /its result is no longer in the log/ });
      expected += 3 + hits;
      assert.equal(await other.get("a"), expected, `after ${round} cuts`);
    }
  } finally {
    client.disconnect();
    await proxy.stop();
  }
});
