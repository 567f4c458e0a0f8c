// A program for Bun: hits through Bun's own client, and prints what came of them.

import { RedisClient } from "bun";
import { RedisLimiter } from "tollgate/redis";

const redis = new RedisClient(`redis://127.0.0.1:${process.argv[2]}`);
const client = { send: (_key, [command, ...args]) => redis.send(command, args) };
const policy = { algorithm: "sliding_window", limit: 20, scale: "1d" };
const limiter = new RedisLimiter(policy, { client, timeout: "20s" });

const all = (count, work) => Promise.all(Array.from({ length: count }, (_, number) => work(number)));
const allowed = (decisions) => decisions.filter((decision) => decision.allowed).length;

const hits = allowed(await all(30, () => limiter.hit("a")));
const many = allowed(await all(50, (number) => limiter.hit(`key ${number}`)));
await redis.send("SCRIPT", ["FLUSH"]);
const after = await limiter.inc("b", 5);
const { unanswered, scriptLoads } = limiter.stats;
console.log(JSON.stringify({ allowed: hits, many, after, unanswered, scriptLoads }));
redis.close();
