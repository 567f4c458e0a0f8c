// The traces recorded from Hammer: what each operation of a key came to, at its time.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

export { inWordsOf } from "./trace-words.mjs";

const folder = new URL("../vectors/", import.meta.url);

const read = (file) => JSON.parse(readFileSync(new URL(file, folder), "utf8"));

/** The names of the files of traces, one for every algorithm that Hammer has. */
export const files = readdirSync(folder).filter((name) => /_(window|key|bucket)\.json$/.test(name));

/** Why waits of an algorithm are not those of Hammer, by the word in their place. */
export const looseWaits = read("loose_waits.json");

/** Returns the traces of a file, each with its policy. Hammer's windows count denied hits. */
export const tracesIn = (file) =>
  read(file).map(({ policy, ops }) => {
    for (const word of looseWordsIn(ops))
      assert.ok(
        looseWaits[word]?.[policy.algorithm],
        `${file} has waits "${word}" without a reason in loose_waits.json`,
      );
    return { ops, policy: "limit" in policy ? { ...policy, denied: "count" } : policy };
  });

/** Returns the words that stand in place of a wait. */
export const looseWordsIn = (ops) =>
  new Set(ops.map(({ expect }) => expect.deny).filter((wait) => typeof wait === "string"));

/** Does an operation of a trace on a limiter, whose clock is set. */
export async function answer(limiter, { op, key, cost, count }) {
  switch (op) {
    case "hit": {
      const peeked = await limiter.peek(key, cost);
      const decision = await limiter.hit(key, cost);
      assert.deepEqual(peeked, decision, "a peek returns what the hit does");
      return decision;
    }
    case "inc":
      return limiter.inc(key, cost);
    case "set":
      return limiter.set(key, count);
    case "get":
      return limiter.get(key);
    case "expires_at":
      return limiter.expiresAt(key);
    default:
      return assert.fail(`a trace has an unknown operation: ${op}`);
  }
}
