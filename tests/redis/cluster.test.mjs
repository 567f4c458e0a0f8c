// A Cluster whose slots move, and a replica that takes over.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { RedisLimiter } from "tollgate/redis";
import { startCluster } from "./lib/cluster.mjs";
import { connect, startServer } from "./lib/server.mjs";
import { allowed, times } from "./lib/setting.mjs";

const bucket = { algorithm: "token_bucket", capacity: 900, refillRate: 1, per: "30d" };

describe("a Cluster of three nodes", () => {
  let cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  const clients = {
    async ioredis() {
      const node = { host: "127.0.0.1", port: cluster.nodes[0].server.port };
      const client = new Cluster([node], { slotsRefreshTimeout: 60_000 });
      await once(client, "ready");
      return [client, () => client.disconnect()];
    },
    async redis() {
      const url = `redis://127.0.0.1:${cluster.nodes[0].server.port}`;
      const client = await createCluster({ rootNodes: [{ url }] }).connect();
      return [client, () => client.destroy()];
    },
  };

  for (const [name, make] of Object.entries(clients)) {
    test(`${name}: a slot moves while its key is used, and exactly the policy is admitted`, async () => {
      const [client, close] = await make();
      try {
        const given = { client, prefix: `${name}:`, name: "moving", timeout: "20s" };
        const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, given));
        const keys = await times(60, (number) => fleet[number % 3].hit(`key ${number}`));
        assert.equal(allowed(keys), 60);
        let moves = 0;
        let isOver = false;
        const moving = (async () => {
          while (!isOver) {
            await cluster.move(`${name}:4:moving:hot`);
            moves++;
          }
        })();
        const counts = [];
        await times(30, async (number) => {
          // Each until it is denied: the last allowed hit of all comes after some moves.
          for (;;) {
            const decision = await fleet[number % 3].hit("hot");
            if (!decision.allowed) break;
            counts.push(decision.count);
            if (moves < 3) await new Promise((resolve) => setImmediate(resolve));
          }
        });
        isOver = true;
        await moving;
        assert.ok(moves >= 1, `${moves} moves`);
        assert.deepEqual(
          counts.toSorted((a, b) => a - b),
          Array.from({ length: 900 }, (_, number) => number),
        );
      } finally {
        close();
      }
    });

    test(`${name}: with leases open while the slot moves, no more than the policy is admitted`, async () => {
      const [client, close] = await make();
      try {
        const given = { client, prefix: `${name}:`, name: "leased", timeout: "20s", leases: { ttl: "10s" } };
        const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, given));
        let moves = 0;
        let isOver = false;
        const moving = (async () => {
          while (!isOver) {
            await cluster.move(`${name}:4:leased:hot`);
            moves++;
          }
        })();
        let count = 0;
        await times(30, async (number) => {
          while ((await fleet[number % 3].hit("hot")).allowed) {
            count++;
            if (moves < 3) await new Promise((resolve) => setImmediate(resolve));
          }
        });
        isOver = true;
        await moving;
        const used = 900 - (await fleet[0].get("hot"));
        const leased = fleet.reduce((sum, { stats }) => sum + stats.leased, 0);
        assert.ok(moves >= 1 && leased > 0, `${moves} moves, ${leased} leased`);
        assert.ok(count > leased && count <= used && used <= 900, `${count} of ${used}`);
        for (const limiter of fleet) limiter[Symbol.dispose]();
      } finally {
        close();
      }
    });
  }
});

/** Waits until a replica has all that was written. */
async function replicated(primary) {
  while ((await primary.wait(1, 20_000)) === 0);
}

describe("a replica that takes over", () => {
  /** A primary and its replica, and limiters whose client follows the primary. */
  async function pair() {
    const args = ["--repl-diskless-sync-delay", "0"];
    const [primary, replica] = await Promise.all([startServer({ args }), startServer({ args })]);
    const [first, second] = [connect(primary.port), connect(replica.port)];
    await second.replicaof("127.0.0.1", primary.port);
    while (!/master_link_status:up/.test(await second.info("replication")));
    let current = first;
    const client = { send: (_key, [command, ...args]) => current.call(command, ...args) };
    return {
      first,
      client,
      /** Ends the replication. */
      detach: () => second.replicaof("NO", "ONE"),
      /** Makes the replica the one that is asked. */
      follow() {
        current = second;
      },
      async stop() {
        for (const redis of [first, second]) redis.disconnect();
        await Promise.all([primary.stop(), replica.stop()]);
      },
    };
  }

  test("after all was replicated, nothing is lost", async () => {
    const { client, first, detach, follow, stop } = await pair();
    try {
      const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, { client, timeout: "20s" }));
      for (let round = 0; round < 50; round++) await times(9, (number) => fleet[number % 3].hit("hot"));
      await replicated(first);
      await detach();
      follow();
      const counts = [];
      await times(9, async (number) => {
        for (;;) {
          const decision = await fleet[number % 3].hit("hot");
          if (!decision.allowed) break;
          counts.push(decision.count);
        }
      });
      assert.deepEqual(
        counts.toSorted((a, b) => a - b),
        Array.from({ length: 450 }, (_, number) => number),
      );
    } finally {
      await stop();
    }
  });

  test("writes that were acknowledged and not replicated are lost, and all processes agree on that", async () => {
    const { client, first, detach, follow, stop } = await pair();
    try {
      const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, { client, timeout: "20s" }));
      await fleet[0].hit("hot", 100);
      await replicated(first);
      await detach();
      assert.equal((await fleet[1].hit("hot", 50)).remaining, 750);
      follow();
      for (const limiter of fleet) assert.equal((await limiter.hit("hot", 10)).allowed, true);
      for (const limiter of fleet) assert.equal((await limiter.peek("hot", 0)).remaining, 770);
    } finally {
      await stop();
    }
  });

  /** Limiters of which the first holds a lease, and the count of the hits that were allowed. */
  async function leasing(client) {
    const given = { client, timeout: "20s", leases: { ttl: "10s" } };
    const fleet = Array.from({ length: 3 }, () => new RedisLimiter(bucket, given));
    let count = 0;
    while (fleet[0].stats.leased === 0) count += allowed([await fleet[0].hit("hot")]);
    return { fleet, count };
  }

  /** Hits until each limiter denies, and returns how many hits were allowed. */
  async function exhausted(fleet) {
    let count = 0;
    await times(9, async (number) => {
      while ((await fleet[number % 3].hit("hot")).allowed) count++;
    });
    return count;
  }

  test("with a lease open that was replicated, no more than the policy is admitted", async () => {
    const { client, first, detach, follow, stop } = await pair();
    try {
      const { fleet, count } = await leasing(client);
      await replicated(first);
      await detach();
      follow();
      const all = count + (await exhausted(fleet));
      const used = 900 - (await fleet[1].get("hot"));
      assert.ok(all <= used && used <= 900, `${all} of ${used}`);
      assert.ok(all > 450, `${all}`);
      for (const limiter of fleet) limiter[Symbol.dispose]();
    } finally {
      await stop();
    }
  });

  test("with a lease open that was not, no more than that is admitted in addition", async () => {
    const { client, first, detach, follow, stop } = await pair();
    try {
      const plain = new RedisLimiter(bucket, { client, timeout: "20s" });
      await plain.hit("hot", 100);
      await replicated(first);
      await detach();
      const { fleet, count } = await leasing(client);
      // What the old primary has beyond the replica: hits and a lease.
      const lost = 800 - (await plain.get("hot"));
      assert.ok(lost > count, `${lost} of ${count}`);
      follow();
      const all = 100 + count + (await exhausted(fleet));
      assert.ok(all <= 900 + lost, `${all}, ${lost} lost`);
      // The lease is still spent, and its holder gets another from the new primary.
      const { leased } = fleet[0].stats;
      assert.ok(leased > 1, `${leased}`);
      for (const limiter of fleet) limiter[Symbol.dispose]();
    } finally {
      await stop();
    }
  });
});
