// Stores in memory for the tests: one that is exact, and ways to make it hostile.

import { seeded } from "../../lib/random.mjs";

/**
 * A store that forgets a value at the very end of its ttl, by the clock. `calls` are those that were made.
 */
export function memoryStore(clock = Date.now, values = new Map()) {
  const calls = [];
  const current = (key) => {
    const entry = values.get(key);
    return entry !== undefined && clock() < entry.ends ? entry.text : null;
  };
  return {
    calls,
    values,
    /** Puts a text there, as somebody else might. */
    put: (key, text) => values.set(key, { text, ends: Number.POSITIVE_INFINITY }),
    get(key) {
      calls.push(["get", key]);
      return current(key);
    },
    swap(key, before, after, ttl) {
      calls.push(["swap", key, before, after, ttl]);
      if (current(key) !== before) return false;
      if (after === null) values.delete(key);
      else values.set(key, { text: after, ends: clock() + ttl });
      return true;
    },
  };
}

/** The same store as a client sees it whose calls and replies are under way for a few turns of the event loop. */
export function distant(store, seed) {
  const random = seeded(seed);
  const travel = async () => {
    for (let turns = random(4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
  };
  const call =
    (method) =>
    async (...args) => {
      await travel();
      const result = store[method](...args);
      await travel();
      return result;
    };
  return { get: call("get"), swap: call("swap") };
}
