// Valkey, where there is one: `npm test` needs none.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis as Iovalkey } from "iovalkey";
import { RedisLimiter } from "tollgate/redis";
import { valkey } from "../../scripts/setup/redis.mjs";
import { startServer } from "./lib/server.mjs";
import { times } from "./lib/setting.mjs";

const program = valkey();
const skip = program === undefined && "there is no valkey-server";
const bucket = { algorithm: "token_bucket", capacity: 900, refillRate: 1, per: "30d" };

describe("Valkey", { skip }, () => {
  let server;
  let client;
  let prefixes = 0;
  const options = (more = {}) => ({ client, prefix: `${++prefixes}:`, timeout: "20s", ...more });
  before(async () => {
    server = await startServer({ program });
    client = new Iovalkey(`redis://127.0.0.1:${server.port}`);
  });
  after(async () => {
    client.disconnect();
    await server.stop();
  });

  test("admits exactly the policy, while scripts are forgotten and logs shortened", async () => {
    const given = options();
    const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, given));
    let count = 0;
    await times(30, async (number) => {
      for (let turn = 0; turn < 40; turn++) {
        if ((await fleet[number % 3].hit("hot")).allowed) count++;
        if (turn % 10 === 0) await client.script("FLUSH");
      }
    });
    assert.equal(count, 900);
    assert.ok(fleet.some(({ stats }) => stats.bases > 0) && fleet.some(({ stats }) => stats.scriptLoads > 1));
  });

  test("takes many keys in one call, and fails alone for one of another type", async () => {
    const given = options({ onError: "allow" });
    const limiter = new RedisLimiter(bucket, given);
    await client.lpush(`${given.prefix}4:default:key 7`, "a list");
    const decisions = await times(32, (number) => limiter.hit(`key ${number}`));
    assert.deepEqual(
      decisions.map(({ reason }, number) => (reason === "error" ? number : -1)).filter((at) => at >= 0),
      [7],
    );
  });

  test("gets back a key that it lost", async () => {
    const given = options();
    const limiter = new RedisLimiter(bucket, given);
    await limiter.hit("a", 600);
    await client.flushall();
    assert.equal((await limiter.hit("a", 200)).remaining, 100);
    assert.equal((await new RedisLimiter(bucket, given).hit("a", 101)).allowed, false);
  });

  test("holds reservations and leases", async () => {
    const given = options();
    const limiter = new RedisLimiter(bucket, given);
    const reservation = await limiter.reserve("a", 500);
    assert.equal((await new RedisLimiter(bucket, given).hit("a", 401)).allowed, false);
    assert.equal(await reservation.settle(100), "settled");
    const leasing = new RedisLimiter(bucket, { ...given, leases: true });
    let count = 0;
    while ((await leasing.hit("a")).allowed) count++;
    assert.ok(leasing.stats.leased > 0 && count <= 800, `${count}`);
    leasing[Symbol.dispose]();
  });
});
