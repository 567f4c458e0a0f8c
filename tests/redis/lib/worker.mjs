// A process of a fleet: uses a key as often as it is told, and says what was decided.

import { Throttle } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { connect } from "./server.mjs";

const [port, skew] = process.argv.slice(2).map(Number);

// A clock that is wrong by minutes.
const { now } = Date;
Date.now = () => now() + skew;

const client = connect(port, { maxRetriesPerRequest: 20 });
const tick = () => new Promise((resolve) => setImmediate(resolve));

/** What a process can do: each returns what it reports. */
const works = {
  /** Hits, and reports the counts of those that were allowed, how many were denied, and how many of them by a ban. */
  async hits(limiter, _prefix, turns) {
    const counts = [];
    let [denied, banned] = [0, 0];
    await turns(async () => {
      const decision = await limiter.hit("hot");
      if (decision.allowed) counts.push(decision.count);
      else denied++;
      if (decision.reason === "banned") banned++;
    });
    return { counts, denied, banned };
  },
  /** Holds slots, and reports how many were held at the same time by all, as a counter in Redis tells. */
  async slots(limiter, prefix, turns) {
    let [most, held] = [0, 0];
    await turns(async () => {
      let reservation = await limiter.reserve("hot", 1, { ttl: "1h" });
      while (!reservation.allowed) reservation = await limiter.reserve("hot", 1, { ttl: "1h" });
      held++;
      most = Math.max(most, await client.incr(`${prefix}held`));
      await tick();
      await client.decr(`${prefix}held`);
      await reservation.cancel();
    });
    return { most, held };
  },
  /** Waits for turns, and reports in which order they came, how often the limiter was asked, and the places on the way. */
  async waits(limiter, _prefix, turns) {
    const [order, places] = [[], []];
    let [asked, next] = [0, 0];
    const { policies } = limiter;
    const hit = (key, cost) => {
      asked++;
      return limiter.hit(key, cost);
    };
    const throttle = new Throttle({ limiter: { policies, hit } });
    await turns(async () => {
      const number = next++;
      await throttle.acquire({ key: "hot", onChange: (place) => places.push(place) });
      order.push(number);
    });
    return { order, asked, places };
  },
  /** Runs work, and reports how much of it ran at the same time in all processes, as a counter in Redis tells. */
  async runs(limiter, prefix, turns) {
    let [most, ran] = [0, 0];
    const throttle = new Throttle({ limiter });
    await turns(async () => {
      await throttle.run(
        async () => {
          most = Math.max(most, await client.incr(`${prefix}running`));
          await tick();
          await client.decr(`${prefix}running`);
          ran++;
        },
        // Another process asks again at its end.
        { key: "hot", ttl: "2s" },
      );
    });
    return { most, ran };
  },
  /** Reserves ten and uses some of them, and reports how much was used. */
  async parts(limiter, _prefix, turns) {
    let used = 0;
    await turns(async (turn) => {
      const reservation = await limiter.reserve("hot", 10, { ttl: "1h" });
      if (!reservation.allowed) return;
      await tick();
      const part = turn % 11;
      used += part;
      await reservation.settle(part);
    });
    return { used };
  },
};

process.on("disconnect", () => process.exit());
process.on("message", async ({ job, work = "hits", policies, prefix, hits, inFlight, leases }) => {
  const limiter = new RedisLimiter(policies, { client, prefix, timeout: "20s", leases });
  let left = hits;
  const turns = (turn) =>
    Promise.all(
      Array.from({ length: inFlight }, async () => {
        while (left > 0) {
          left--;
          if (left === hits >> 1) process.send({ job, half: true });
          await turn(left);
        }
      }),
    );
  try {
    const report = await works[work](limiter, prefix, turns);
    process.send({ job, ...report, stats: limiter.stats });
  } catch (error) {
    process.send({ job, error: String(error) });
  }
});
process.send({ ready: true });
