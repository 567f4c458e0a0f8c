// A slot that the core frees is forgotten before it is used again: millions of operations on limiters with hardly any
// room, beside a model that knows every key's own count. Each key costs a prime of its own, so a mix-up shows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { seeded } from "../lib/random.mjs";

const operationsInAll = 3_000_000;

const keys = [1, "1", 1n, 2, "2", 2n, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
const primes = [
  100_003, 100_019, 100_043, 100_049, 100_057, 100_069, 100_103, 100_109, 100_129, 100_151, 100_153, 100_169,
  100_183, 100_189, 100_193, 100_207, 100_213, 100_237, 100_267, 100_271,
];
const costOf = new Map(keys.map((key, position) => [key, primes[position]]));

const scale = 24;
const most = Number.MAX_SAFE_INTEGER;
const window = { name: "window", algorithm: "fix_window_per_key", limit: most, scale };
const log = { name: "log", algorithm: "sliding_window", limit: most, scale: 17 };

/** What one key has used: its window, and its hits in the log. */
class Used {
  count = 0;
  end = 0;
  hits = [];
  touched = 0;

  countAt(now) {
    return this.end > now ? this.count : 0;
  }

  add(cost, now) {
    this.count = this.countAt(now) + cost;
    if (this.end <= now) this.end = now + scale;
    return this.count;
  }

  set(count, now) {
    this.count = count;
    this.end = now + scale;
  }

  logged(now) {
    return this.hits.reduce((sum, { time, cost }) => (time + log.scale > now ? sum + cost : sum), 0);
  }

  note(cost, now) {
    this.hits = this.hits.filter(({ time }) => time + log.scale > now);
    this.hits.push({ time: now, cost });
  }

  /** When all of it has ended, and when what was logged has. */
  get logEnd() {
    return this.hits.length === 0 ? 0 : this.hits.at(-1).time + log.scale;
  }

  get lastEnd() {
    return Math.max(this.end, this.logEnd);
  }
}

class Run {
  #now = 1_767_227_321_853;
  #used = new Map();
  #evicted = 0;
  #told = 0;
  #isInside = false;
  #busyWith;
  /** What a listener found wrong; a limiter does not let it through. */
  #failure;

  constructor({ maxKeys, onFull, keyOlderThan, listens, policies }, seed) {
    this.random = seeded(seed);
    this.maxKeys = maxKeys;
    this.keyOlderThan = keyOlderThan;
    this.hasLog = policies.length > 1;
    const beforeClean = (_, entries) => {
      try {
        for (const entry of entries) this.#isTold(entry);
        // A key's states are told policy by policy: it has been told of in full only then.
        const isLast = entries[0].policy === policies.at(-1).name;
        if (listens === "and uses" && isLast) this.#operateFromInside();
      } catch (error) {
        this.#failure ??= error;
      }
    };
    this.limiter = new RateLimiter(policies, {
      clock: () => this.#now,
      maxKeys,
      onFull,
      keyOlderThan,
      cleanPeriod: 1 + (seed % 9),
      ...(listens ? { beforeClean } : {}),
    });
  }

  get told() {
    return this.#told;
  }

  step() {
    this.#now += Math.max(0, this.random(6) - 2);
    const now = this.#now;
    const key = keys[this.random(keys.length)];
    const chance = this.random(100);
    this.#busyWith = chance < 98 ? key : undefined;
    if (chance < 70) this.#hit(key);
    else if (chance < 78) this.#change(key, "inc");
    else if (chance < 84) this.#change(key, "set");
    else if (chance < 90) this.#reset(key);
    else if (chance < 98) this.#look(key, now);
    else this.limiter.clean();
    this.#busyWith = undefined;
    if (this.#failure) throw this.#failure;
    this.#findEvicted(now);
    assert.ok(this.limiter.size <= this.maxKeys);
    if (this.random(64) > 0) return;
    assert.ok(this.limiter.size >= this.#live(now).length);
    for (const each of keys) this.#look(each, now);
  }

  /** What a key has used and not lost, if it has not ended. */
  #usedBy(key, now) {
    const used = this.#used.get(key);
    return used !== undefined && used.lastEnd > now && !this.#isStale(used, now) ? used : undefined;
  }

  #staleAt(used) {
    return used.touched + (this.keyOlderThan ?? most);
  }

  #isStale(used, now) {
    return this.#staleAt(used) <= now;
  }

  #live(now) {
    return [...this.#used.keys()].filter((key) => this.#usedBy(key, now));
  }

  /** Notes a use, of a key that goes on or begins anew. */
  #note(key, now, how) {
    const known = this.#used.get(key);
    const used = known === undefined || this.#isStale(known, now) ? new Used() : known;
    this.#used.set(key, used);
    used.touched = now;
    how(used);
  }

  #hit(key) {
    const now = this.#now;
    const cost = costOf.get(key);
    const before = this.#usedBy(key, now);
    const decision = this.limiter.hit(key, cost);
    if (decision.reason === "full") return this.#wasFull(before, now);
    assert.equal(decision.allowed, true);
    this.#note(key, now, (used) => {
      used.add(cost, now);
      if (this.hasLog) used.note(cost, now);
      const counts = { window: used.count, log: used.logged(now) };
      assert.equal(decision.count, counts[decision.policy], `the count of ${typeof key} ${key}`);
    });
  }

  #change(key, how) {
    const now = this.#now;
    const amount = costOf.get(key) * (how === "set" ? this.random(4) : 1);
    const before = this.#usedBy(key, now);
    let count;
    try {
      count = this.limiter[how](key, amount, "window");
    } catch (error) {
      assert.equal(error.code, "full");
      return this.#wasFull(before, now);
    }
    this.#note(key, now, (used) => {
      if (how === "set") used.set(amount, now);
      else used.add(amount, now);
      assert.equal(count, used.count);
    });
  }

  #reset(key) {
    const lived = this.#usedBy(key, this.#now) !== undefined;
    const forgotten = this.limiter.reset(key);
    assert.ok(forgotten || !lived);
    this.#used.delete(key);
  }

  #look(key, now) {
    const used = this.#usedBy(key, now);
    const context = `${typeof key} ${key}`;
    assert.equal(this.limiter.get(key, "window"), used?.countAt(now) ?? 0, context);
    const end = used && used.end > now ? Math.min(used.end, this.#staleAt(used)) : 0;
    assert.equal(this.limiter.expiresAt(key, "window"), end, context);
    if (this.hasLog) assert.equal(this.limiter.get(key, "log"), used?.logged(now) ?? 0, context);
  }

  /** There was no room only if every slot was held by a key that lives, and this was none of them. */
  #wasFull(before, now) {
    assert.equal(before, undefined);
    // Told from inside, the key in use may have a slot that is not noted yet.
    const held = new Set(this.#live(now));
    if (this.#isInside && this.#busyWith !== undefined) held.add(this.#busyWith);
    assert.ok(held.size >= this.maxKeys, `${held.size} of ${this.maxKeys} are held`);
  }

  /** As many live keys are gone as the limiter says it pushed out. */
  #findEvicted(now) {
    const { evicted } = this.limiter;
    if (evicted === this.#evicted) return;
    const isGone = (key) =>
      this.limiter.expiresAt(key, "window") === 0 && (!this.hasLog || this.limiter.get(key, "log") === 0);
    const gone = this.#live(now).filter(isGone);
    assert.equal(gone.length, evicted - this.#evicted);
    for (const key of gone) this.#used.delete(key);
    this.#evicted = evicted;
  }

  /** What expired is told once, with its own key's numbers, and is not the key in use. */
  #isTold({ key, policy, value, expiredAt }) {
    const used = this.#used.get(key);
    assert.ok(used, `${typeof key} ${key} was told already, or never used`);
    assert.notEqual(key, this.#busyWith);
    assert.equal(this.#usedBy(key, this.#now), undefined);
    const last = used.hits.at(-1)?.time;
    const end = policy === "window" ? used.end : used.logEnd;
    assert.equal(value, policy === "window" ? used.count : used.logged(last));
    assert.equal(expiredAt, Math.min(end, this.#staleAt(used)));
    this.#told += 1;
    if (policy === "log" || !this.hasLog) this.#used.delete(key);
  }

  /** A hit by someone else, while what has expired is being told. */
  #operateFromInside() {
    const key = keys[this.random(keys.length)];
    if (key === this.#busyWith || this.#isInside) return;
    this.#isInside = true;
    this.#hit(key);
    this.#isInside = false;
  }
}

const configurations = [];
for (const maxKeys of [1, 2, 3, 5, 8])
  for (const onFull of ["evict", "deny"])
    for (const keyOlderThan of [undefined, 9])
      for (const listens of [false, "only", "and uses"])
        for (const policies of [[window], [window, log]])
          configurations.push({ maxKeys, onFull, keyOlderThan, listens, policies });

test(`${operationsInAll} operations on ${configurations.length} limiters with 1 to 8 keys`, () => {
  let [evicted, told] = [0, 0];
  for (const [seed, configuration] of configurations.entries()) {
    const run = new Run(configuration, seed);
    const operations = Math.ceil(operationsInAll / configurations.length);
    for (let operation = 0; operation < operations; operation++) {
      try {
        run.step();
      } catch (cause) {
        const which = JSON.stringify({ seed, ...configuration });
        throw new Error(`operation ${operation} of ${which}`, { cause });
      }
    }
    evicted += run.limiter.evicted;
    told += run.told;
    run.limiter[Symbol.dispose]();
  }
  assert.ok(evicted > operationsInAll / 20, `${evicted} evictions`);
  assert.ok(told > operationsInAll / 20, `${told} expired states told`);
});
