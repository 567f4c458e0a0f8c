import { RedisLimiter } from "tollgate/redis";
import { ControlledTime } from "./time.mjs";

/** When the recorded values begin. */
export const time0 = 1_800_000_000_000;

let keys = 0;

/** Returns what a limiter says of a value at a time. */
export async function answers(redis, { policies, at, value }) {
  using time = new ControlledTime(redis, at);
  const prefix = `corpus:${++keys}:`;
  await redis.set(`${prefix}4:corpus:key`, value);
  const limiter = new RedisLimiter(policies, { client: time.client, prefix, name: "corpus" });
  const names = [policies].flat().map(({ name, algorithm }) => name ?? algorithm);
  const found = { peek: await limiter.peek("key"), counts: [], ends: [] };
  for (const name of names) {
    found.counts.push(await limiter.get("key", name));
    found.ends.push(await limiter.expiresAt("key", name));
  }
  // JSON has no Infinity.
  return JSON.parse(JSON.stringify(found));
}
