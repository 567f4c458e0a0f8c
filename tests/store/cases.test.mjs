// The cases of tollgate/testing pass over stores that are right, and find every error of stores that are wrong.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, describe } from "node:test";
import { storeCases } from "tollgate/testing";
import { SqliteStore } from "../../examples/store-sqlite/store.mjs";
import { distant, memoryStore } from "./lib/stores.mjs";

/** A clock that only `passTime` moves. */
function controlled() {
  let now = 1_800_000_000_000;
  return {
    clock: () => now,
    passTime: (ms) => {
      now += ms;
    },
  };
}

describe("a store in memory", () => {
  const { clock, passTime } = controlled();
  const store = memoryStore(clock);
  for (const { name, run } of storeCases(() => store, { passTime })) test(name, run);
});

describe("clients whose calls take a while", () => {
  const { clock, passTime } = controlled();
  const store = memoryStore(clock);
  let seed = 0;
  for (const { name, run } of storeCases(async () => distant(store, ++seed), { passTime })) test(name, run);
});

describe("a file of SQLite with a connection for each client", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-store-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const { clock, passTime } = controlled();
  for (const { name, run } of storeCases(() => new SqliteStore(join(folder, "limits.sqlite"), clock), {
    passTime,
  }))
    test(name, run);
});

/** Returns the names of the cases that a store fails. */
async function failedBy(makeStore, options) {
  const failed = [];
  for (const { name, run } of storeCases(makeStore, options))
    await run().catch((error) => {
      assert.match(error.message, /./);
      failed.push(name);
    });
  return failed;
}

const pause = () => new Promise((resolve) => setImmediate(resolve));

/** Stores with one error each, and a case that finds it. */
const wrong = {
  "swap that compares and stores in two steps": [
    "of many swaps at once from the same text, one is made",
    (store) => ({
      get: store.get,
      async swap(key, before, after, ttl) {
        const current = await store.get(key);
        await pause();
        return current === before && store.swap(key, store.get(key), after, ttl);
      },
    }),
  ],
  "swap that always stores": [
    "a value is not stored where there is one",
    (store) => ({
      get: store.get,
      swap: (key, _before, after, ttl) => store.swap(key, store.get(key), after, ttl),
    }),
  ],
  "swap that says true and stores nothing": [
    "a value is stored where there was none, and returned as it was",
    (store) => ({ get: store.get, swap: () => true }),
  ],
  "swap that stores and says false": [
    "a value is stored where there was none, and returned as it was",
    (store) => ({ get: store.get, swap: (...args) => store.swap(...args) && false }),
  ],
  "swap that returns how many rows changed": [
    "a value is stored where there was none, and returned as it was",
    (store) => ({ get: store.get, swap: (...args) => Number(store.swap(...args)) }),
  ],
  "swap that does not delete": [
    "a value is deleted only if it is the one expected",
    (store) => ({
      get: store.get,
      swap: (key, before, after, ttl) => (after === null ? true : store.swap(key, before, after, ttl)),
    }),
  ],
  "deletes whatever is there": [
    "a value is deleted only if it is the one expected",
    (store) => ({
      get: store.get,
      swap: (key, before, after, ttl) =>
        store.swap(key, after === null ? store.get(key) : before, after, ttl),
    }),
  ],
  "keys without regard to case": [
    "keys: letters that only look alike",
    (store) => ({
      get: (key) => store.get(key.toLowerCase()),
      swap: (key, ...args) => store.swap(key.toLowerCase(), ...args),
    }),
  ],
  "keys without spaces at their ends": [
    "keys: spaces at their ends",
    (store) => ({
      get: (key) => store.get(key.trim()),
      swap: (key, ...args) => store.swap(key.trim(), ...args),
    }),
  ],
  "keys in one form of Unicode": [
    "keys: letters that only look alike",
    (store) => ({
      get: (key) => store.get(key.normalize()),
      swap: (key, ...args) => store.swap(key.normalize(), ...args),
    }),
  ],
  "keys that end at a zero": [
    "keys: characters that are not printed",
    (store) => ({
      get: (key) => store.get(key.split("\0")[0]),
      swap: (key, ...args) => store.swap(key.split("\0")[0], ...args),
    }),
  ],
  "values without regard to case": [
    "texts that differ in a letter's case, a space or their length are different",
    (store) => ({
      get: store.get,
      swap(key, before, after, ttl) {
        const current = store.get(key);
        const isAlike = current?.toLowerCase() === before?.toLowerCase();
        return store.swap(key, isAlike ? current : before, after, ttl);
      },
    }),
  ],
  "values that are parsed and written again": [
    "texts that differ in a letter's case, a space or their length are different",
    (store) => ({ get: (key) => store.get(key)?.trim(), swap: store.swap }),
  ],
  "values that are cut": [
    "a long value is stored whole",
    (store) => ({
      get: store.get,
      swap: (key, before, after, ttl) => store.swap(key, before, after?.slice(0, 32_767) ?? null, ttl),
    }),
  ],
  "a get that is cached": [
    "a value is replaced only if it is the one expected",
    (store) => {
      const cached = new Map();
      return {
        get(key) {
          if (!cached.has(key)) cached.set(key, store.get(key));
          return cached.get(key);
        },
        swap: store.swap,
      };
    },
  ],
  "a ttl in seconds": [
    "a value is kept for its ttl, however long",
    (store) => ({
      get: store.get,
      swap: (key, before, after, ttl) => store.swap(key, before, after, Math.floor(ttl / 60_000)),
    }),
  ],
  "a ttl of 32 bits": [
    "a value is kept for its ttl, however long",
    (store) => ({
      get: store.get,
      swap: (key, before, after, ttl) => store.swap(key, before, after, ttl > 2 ** 31 ? 1 : ttl),
    }),
  ],
  "a ttl that is that of the first value": [
    "a swap replaces the ttl, too",
    (store) => {
      const first = new Map();
      return {
        get: store.get,
        swap(key, before, after, ttl) {
          if (before === null) first.set(key, ttl);
          return store.swap(key, before, after, first.get(key) ?? ttl);
        },
      };
    },
  ],
  "values that have ended, which get hides and swap does not": [
    "a value that has ended can be replaced by what get returns",
    (_store, clock) => {
      const [texts, ends] = [new Map(), new Map()];
      return {
        get: (key) => (clock() < ends.get(key) ? texts.get(key) : null),
        swap(key, before, after, ttl) {
          if ((texts.get(key) ?? null) !== before) return false;
          if (after === null) texts.delete(key);
          else texts.set(key, after);
          ends.set(key, clock() + ttl);
          return true;
        },
      };
    },
  ],
};

describe("a store with an error fails the case that is about it", () => {
  for (const [name, [found, broken]] of Object.entries(wrong))
    test(name, async () => {
      const { clock, passTime } = controlled();
      const store = memoryStore(clock);
      const one = broken({ get: store.get, swap: store.swap }, clock);
      const failed = await failedBy(() => one, { passTime });
      assert.ok(failed.includes(found), `only these failed: ${failed.join("; ")}`);
    });
});

test("an error says what a store must do", async () => {
  const [first] = storeCases(() => ({ get: () => 7, swap: () => true }));
  await assert.rejects(
    first.run(),
    /^Error: this store is not fit for a limiter: get returns a string, null or/,
  );
  const [none] = storeCases(() => ({}));
  await assert.rejects(
    none.run(),
    /^Error: this store is not fit for a limiter: it has the methods get and swap/,
  );
});

test("cases without time to pass wait for it", async () => {
  const store = memoryStore();
  for (const { name, run } of storeCases(() => store)) if (/ttl|ended/.test(name)) await run();
});

test("bad arguments", () => {
  const invalid = { name: "TollgateError", code: "invalid_option" };
  assert.throws(() => storeCases(), invalid);
  assert.throws(() => storeCases(memoryStore()), invalid);
  assert.throws(() => storeCases(memoryStore, null), invalid);
  assert.throws(() => storeCases(memoryStore, { passTime: 5 }), invalid);
  assert.throws(() => storeCases(memoryStore, { waits: 5 }), invalid);
});
