// A Redis Cluster of three nodes, without replicas.

import { connect, startServer } from "./server.mjs";

const slots = 16_384;

/** Starts a cluster and waits until every node knows all slots. */
export async function startCluster() {
  const nodes = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const args = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
      const server = await startServer({ args });
      const redis = connect(server.port);
      return { server, redis, id: await redis.cluster("MYID") };
    }),
  );
  const [first, ...others] = nodes;
  const share = Math.ceil(slots / nodes.length);
  for (const [number, { redis }] of nodes.entries()) {
    await redis.cluster("SET-CONFIG-EPOCH", number + 1);
    await redis.cluster("ADDSLOTSRANGE", number * share, Math.min((number + 1) * share, slots) - 1);
  }
  for (const { server } of others) await first.redis.cluster("MEET", "127.0.0.1", server.port);
  for (const { redis } of nodes)
    while (!/cluster_state:ok[\s\S]*cluster_known_nodes:3/.test(await redis.cluster("INFO")));
  await sameEpoch(nodes);
  return {
    nodes,
    /** Moves the slot of a key to another node, while it is used. */
    async move(key) {
      const slot = await first.redis.cluster("KEYSLOT", key);
      const from = await owner(nodes, slot);
      const to = nodes[(nodes.indexOf(from) + 1) % nodes.length];
      await to.redis.cluster("SETSLOT", slot, "IMPORTING", from.id);
      await from.redis.cluster("SETSLOT", slot, "MIGRATING", to.id);
      for (;;) {
        const keys = await from.redis.cluster("GETKEYSINSLOT", slot, 100);
        if (keys.length === 0) break;
        await from.redis.call("MIGRATE", "127.0.0.1", to.server.port, "", 0, 60_000, "KEYS", ...keys);
      }
      for (const { redis } of [to, from]) await redis.cluster("SETSLOT", slot, "NODE", to.id);
      await sameEpoch(nodes);
    },
    async stop() {
      await Promise.all(
        nodes.map(({ server, redis }) => {
          redis.disconnect();
          return server.stop();
        }),
      );
    },
  };
}

/**
 * Waits until all nodes know the same epoch. A node that does not know the newest takes a slot over under one that another
 * node has too; while they settle which of them has it, both may give it up.
 */
async function sameEpoch(nodes) {
  const epoch = async ({ redis }) => /current_epoch:\d+/.exec(await redis.cluster("INFO"))?.[0];
  while (new Set(await Promise.all(nodes.map(epoch))).size > 1);
}

/** Returns the node that has a slot by its own account. */
async function owner(nodes, slot) {
  for (const node of nodes) {
    const lines = (await node.redis.cluster("NODES")).split("\n");
    const ranges =
      lines
        .find((line) => line.includes("myself"))
        ?.split(" ")
        .slice(8) ?? [];
    const holds = (range) => {
      const [from, to = from] = range.split("-").map(Number);
      return from <= slot && slot <= to;
    };
    if (ranges.some(holds)) return node;
  }
  throw new Error(`no node has slot ${slot}`);
}
