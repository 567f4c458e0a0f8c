// The traces recorded from Hammer: what each operation of a key came to, at its time.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../vectors/", import.meta.url);

/** A file for every algorithm that Hammer has. */
export const files = readdirSync(folder).filter((name) => name !== "addresses.json");

/** Returns the traces of a file, each with its policy. Hammer's windows count denied hits. */
export const tracesIn = (file) =>
  JSON.parse(readFileSync(new URL(file, folder), "utf8")).map(({ policy, ...trace }) => ({
    ...trace,
    policy: "limit" in policy ? { ...policy, denied: "count" } : policy,
  }));

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

/** The answer in the words of the trace. */
export function inWordsOf(expect, answer) {
  if ("value" in expect) return { value: answer };
  const { allowed, count, retryAfter } = answer;
  if (allowed) return retryAfter === 0 ? { allow: count } : { allow: count, retryAfter };
  if (retryAfter === Number.POSITIVE_INFINITY) return { deny: "never" };
  return { deny: expect.deny === "any" && retryAfter > 0 ? "any" : retryAfter };
}
