// Faults over Redis that users of other limiters have published, run against this one; a peer that is installed is shown beside it.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Cluster, Redis } from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { startCluster } from "./lib/cluster.mjs";
import { connect, freePort, startServer } from "./lib/server.mjs";
import { withServer } from "./lib/setting.mjs";

const setting = withServer();
const policy = { algorithm: "fix_window", limit: 5, scale: "1d" };

test("fastify-rate-limit#152: no key is without an end, whatever was done to it", async () => {
  const options = setting.options();
  const limiter = new RedisLimiter([policy, { algorithm: "ban", after: 3, scale: "1h", for: "1h" }], options);
  await limiter.hit("hit");
  await limiter.inc("inc", 3, "fix_window");
  await limiter.set("set", 2, "fix_window");
  await limiter.ban("ban", "1h");
  await limiter.except("except", { fix_window: { limit: 9 } }, { for: "1h" });
  await limiter.reserve("reserve", 1, { ttl: "1m" });
  await Promise.all(Array.from({ length: 300 }, (_, at) => limiter.hit(`many:${at % 20}`)));
  const keys = await setting.redis.keys(`${options.prefix}*`);
  assert.ok(keys.length >= 26, String(keys.length));
  for (const key of keys) assert.ok((await setting.redis.pttl(key)) > 0, key);
});

test("rate-limit-redis#144: a server that forgot the script counts on", async (t) => {
  const limiter = new RedisLimiter(policy, setting.options());
  assert.equal((await limiter.hit("a")).remaining, 4);
  await setting.redis.script("FLUSH");
  assert.equal((await limiter.hit("a")).remaining, 3);
  await setting.redis.script("FLUSH");
  const all = await Promise.all(Array.from({ length: 20 }, () => limiter.hit("a")));
  assert.equal(all.filter(({ allowed }) => allowed).length, 3);
  const peer = new RateLimiterRedis({
    storeClient: setting.redis,
    keyPrefix: "peer",
    points: 5,
    duration: 60,
  });
  await peer.consume("a");
  await setting.redis.script("FLUSH");
  const after = await peer.consume("a").then(
    ({ remainingPoints }) => `${remainingPoints} of 5 left`,
    (error) => error.message,
  );
  t.diagnostic(`rate-limiter-flexible after SCRIPT FLUSH: ${after}`);
});

test("OpenWA#932: what was given up during an outage does not count later", async (t) => {
  const port = await freePort();
  // With its queue, which sends everything once the server is back.
  const client = new Redis({ port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => {});
  t.after(() => client.disconnect());
  const limiter = new RedisLimiter(policy, { client, timeout: "100ms" });
  const lost = await Promise.allSettled(Array.from({ length: 20 }, () => limiter.hit("a")));
  assert.ok(lost.every(({ status }) => status === "rejected"));
  const server = await startServer({ port });
  t.after(() => server.stop());
  const other = connect(port);
  t.after(() => other.disconnect());
  await client.ping();
  const fresh = new RedisLimiter(policy, { client: other, timeout: "20s" });
  assert.equal((await fresh.hit("a")).remaining, 4, "nothing of the outage is counted");
});

test("bottleneck#180: keys of one tick may be in any slots of a Cluster", async (t) => {
  const cluster = await startCluster();
  t.after(() => cluster.stop());
  const node = { host: "127.0.0.1", port: cluster.nodes[0].server.port };
  const client = new Cluster([node], { slotsRefreshTimeout: 60_000 });
  t.after(() => client.disconnect());
  await once(client, "ready");
  const limiter = new RedisLimiter(policy, { client, timeout: "20s" });
  const keys = Array.from({ length: 40 }, (_, at) => `key:${at % 20}`);
  const decisions = await Promise.all(keys.map((key) => limiter.hit(key)));
  assert.deepEqual(
    decisions.map(({ remaining }) => remaining),
    keys.map((_, at) => (at < 20 ? 4 : 3)),
  );
  const both = await hitAll(keys.slice(0, 10).map((key) => ({ limiter, key })));
  assert.equal(both.allowed, true);
});
