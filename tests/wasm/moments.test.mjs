// Bad moments: no memory, a full stack, a trap, hostile objects. Each breaks no more than its own call.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter, step, TollgateError } from "tollgate";
import { atEveryDepth } from "./lib/depths.mjs";
import { inFreshProcess } from "./lib/process.mjs";

const now = 1_767_227_321_853;
const clock = () => now;

const small = "--wasm-max-mem-pages=80";

test("out of memory for new keys is an error of that call, and changes nothing", () => {
  const found = inFreshProcess("no-memory-for-keys", { flags: [small] });
  assert.deepEqual(found, {
    code: "out_of_memory",
    name: "TollgateError",
    twice: ["out_of_memory", "out_of_memory", "out_of_memory"],
    same: true,
    again: 2,
    neighbour: 2,
    peeked: 1,
    reused: true,
    third: true,
  });
});

test("out of memory for the hits of a log, a new limiter, a snapshot and a restore", () => {
  const found = inFreshProcess("no-memory-for-logs", { flags: [small] });
  assert.equal(found.hit, "out_of_memory");
  assert.equal(found.kept, true);
  for (const code of [...found.made, found.snapshot, found.restore])
    assert.ok(["none", "out_of_memory"].includes(code), code);
  assert.ok(found.made.includes("out_of_memory"), "the memory was not exhausted");
  assert.equal(found.restore, "out_of_memory");
  assert.equal(found.again, true);
});

test("a key that is swept before an operation runs out of memory is counted from its next hit on", () => {
  const found = inFreshProcess("swept-without-memory", { flags: [small] });
  const each = (value) => [value, value, value];
  for (const [name, { errors, allowed, freed }] of Object.entries(found)) {
    assert.deepEqual(errors, each("out_of_memory"), name);
    assert.deepEqual(allowed, each(5), name);
    assert.deepEqual(freed, each(3), name);
  }
  assert.equal(Object.keys(found).length, 2);
});

test("cleaning a great many states that are reported works in bounded memory", () => {
  const found = inFreshProcess("clean-in-bounded-memory", { flags: ["--wasm-max-mem-pages=400"] });
  assert.equal(found.all, true);
  assert.equal(found.reported, true);
  assert.equal(found.left, 0);
  assert.ok(found.most <= 64, `${found.most} entries at once`);
});

test("the memory grows by a share of itself, not page by page", () => {
  const found = inFreshProcess("memory-growth");
  assert.ok(found.pages > 244, "a million keys take at least 16 bytes each");
  assert.ok(found.grown <= 80, `the memory grew ${found.grown} times to ${found.pages} pages`);
  assert.ok(found.pages < 1.5 * 270, `${found.pages} pages`);
});

test("nor do cold operations, a restore and a recovery, which loses no key", () => {
  const { first, differences, size, ...grown } = inFreshProcess("growth-of-operations");
  assert.deepEqual([first, differences, size], [4, 0, 160_000]);
  assert.deepEqual(Object.keys(grown), ["inc", "set", "except", "reserve", "restore", "recovery"]);
  for (const [operation, times] of Object.entries(grown)) assert.ok(times <= 40, `${operation}: ${times}`);
});

test("a key that was freed before a trap keeps no slot, and the others have their states", () => {
  assert.deepEqual(inFreshProcess("trap-with-holes"), {
    counts: [1, 0, 3, 0, 5],
    after: [2, 1, 4, 1, 6],
    size: 5,
  });
});

test("a limiter used to the very end of the stack stays exact, and so do its neighbours", () => {
  for (const policy of [
    { algorithm: "fix_window", limit: 1_000_000, scale: "1h" },
    { algorithm: "sliding_window", limit: 1_000_000, scale: "1h" },
    { algorithm: "token_bucket", capacity: 1_000_000, refillRate: 1, per: "1d" },
  ]) {
    const limiter = new RateLimiter(policy, { clock });
    const neighbour = new RateLimiter(policy, { clock });
    neighbour.hit("still");
    let allowed = 0;
    let keys = 0;
    const thrown = atEveryDepth(() => {
      const decision = limiter.hit("deep");
      allowed += Number(decision.allowed);
      keys += 1;
      limiter.hit(`new:${keys}`);
    });
    assert.ok(thrown > 0, "the stack was not exhausted");
    const used = policy.capacity ? 1_000_000 - limiter.get("deep") : limiter.get("deep");
    // A hit that threw may have been counted, but never the other way round.
    assert.ok(used >= allowed && used <= allowed + thrown, `${allowed} allowed, ${used} counted`);
    assert.equal(neighbour.hit("still").remaining, 1_000_000 - 2);
    for (let at = 1; at < keys; at++)
      assert.equal(limiter.hit(`new:${at}`).remaining, 1_000_000 - 2, `new:${at}`);
    assert.equal(limiter.hit("after").remaining, 1_000_000 - 1);
  }
});

test("headers are written again after the very end of the stack", () => {
  // With so little of it, the stack also ends within the wasm.
  const found = inFreshProcess("full-stack-headers", { flags: ["--stack-size=60"] });
  assert.deepEqual(found, { thrown: true, same: true });
});

test("every method survives the very end of the stack", () => {
  const policies = [
    { algorithm: "fix_window_per_key", limit: 1_000_000, scale: 1_000, name: "window" },
    { algorithm: "sliding_window", limit: 1_000_000, scale: 2_000, name: "log" },
  ];
  let time = now;
  let keys = 0;
  const options = { clock: () => time, maxKeys: 50, cleanPeriod: 500, beforeClean: () => {} };
  const limiter = new RateLimiter(policies, options);
  const works = [
    () => limiter.hit(`a${keys++ % 200}`),
    () => limiter.peek(`a${keys++ % 200}`),
    () => limiter.inc(`a${keys++ % 200}`, 2, "log"),
    () => limiter.set(`a${keys++ % 200}`, 5, "window"),
    () => limiter.get("a1", "log"),
    () => limiter.expiresAt("a1", "log"),
    () => limiter.reset(`a${keys++ % 200}`),
    () => limiter.clean(),
    () => limiter.snapshot(),
    () => limiter.hit("a1", 1, policies),
    () => new RateLimiter(policies, options).hit("fresh"),
    () => step(policies, null, "hit", 1, now),
  ];
  for (const work of works) {
    assert.ok(atEveryDepth(work) > 0);
    time += 300;
    // The model of what is left: each key that is found has a count, and a fresh one starts from nothing.
    assert.equal(limiter.hit(`fresh:${time}`).allowed, true);
    assert.equal(limiter.get(`fresh:${time}`, "window"), 1);
    assert.ok(limiter.size <= 50);
  }
  assert.equal(RateLimiter.restore(limiter.snapshot(), options).size, limiter.snapshot().keys.length);
});

test("ten thousand caught overflows leave everything working", () => {
  const limiter = new RateLimiter(
    { algorithm: "fix_window", limit: Number.MAX_SAFE_INTEGER, scale: "1h" },
    { clock },
  );
  const neighbour = new RateLimiter({ algorithm: "token_bucket", capacity: 9, refillRate: 1 }, { clock });
  neighbour.hit("still", 4);
  let thrown = 0;
  let allowed = 0;
  while (thrown < 10_000) {
    thrown += atEveryDepth(() => {
      allowed += Number(limiter.hit("deep").allowed);
    });
    allowed += Number(limiter.hit("deep").allowed);
  }
  const counted = limiter.get("deep");
  assert.ok(counted >= allowed && counted <= allowed + thrown);
  assert.equal(neighbour.hit("still", 5).remaining, 0);
  assert.equal(neighbour.hit("still").allowed, false);
});

test("after a panic in Rust, every limiter continues in a new instance with all its states", () => {
  const all = [1, 2, 3, 4, 5];
  for (const name of [
    "hit",
    "hit_with",
    "count",
    "release",
    "clean",
    "save",
    "moves",
    "create",
    "load",
    "input",
  ]) {
    const found = inFreshProcess("panic", { args: [name] });
    assert.deepEqual(
      found,
      {
        panicked: "RuntimeError",
        after: [all, all, all],
        other: 3,
        instances: 2,
        sizes: [2, 1, 1, 1, 1],
      },
      name,
    );
  }
});

test("a limiter whose states cannot be rescued says so once, and starts empty", () => {
  const found = inFreshProcess("states-lost");
  assert.deepEqual(found, {
    panicked: "RuntimeError",
    lost: "state_lost",
    after: ["1,2,0,4,5", "1,2,0,4,5", "1,2,0,4,5"],
    again: 8,
  });
});

test("getters, proxies and valueOf are read once, and the value read is used", () => {
  let reads = 0;
  const limits = [2, 1_000_000];
  const changing = {
    algorithm: "fix_window",
    scale: "1h",
    get limit() {
      return limits[reads++ % 2];
    },
  };
  const limiter = new RateLimiter(changing, { clock });
  assert.equal(reads, 1);
  assert.equal(limiter.policies[0].limit, 2);
  assert.deepEqual(
    [1, 2, 3].map(() => limiter.hit("a").allowed),
    [true, true, false],
  );
  reads = 0;
  const free = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, { clock });
  free.hit("a", 1, changing);
  assert.equal(reads, 1);

  const option = {
    get maxKeys() {
      reads += 1;
      return reads % 2 ? 3 : "no";
    },
    clock,
  };
  reads = 0;
  new RateLimiter({ algorithm: "fix_window", limit: 1, scale: 1 }, option);
  assert.equal(reads, 1);

  const victim = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, { clock });
  victim.hit("mine", 4);
  let element = 0;
  const { version, policies, keys } = victim.snapshot();
  const numbers = [...keys[0][1][0]];
  const last = numbers.length - 1;
  Object.defineProperty(numbers, last, { enumerable: true, get: () => (element++ === 0 ? 1 : 2 ** 60) });
  const restored = RateLimiter.restore({ version, policies, keys: [["mine", [numbers]]] }, { clock });
  assert.equal(element, 1);
  assert.equal(restored.get("mine"), 1);
  assert.equal(victim.get("mine"), 4);

  let length = 0;
  const growing = new Proxy([...numbers.slice(0, last), 1], {
    get(target, name) {
      if (name === "length") return length++ === 0 ? last + 1 : 1_000_000;
      return target[name];
    },
  });
  assert.equal(
    RateLimiter.restore({ version, policies, keys: [["mine", [growing]]] }, { clock }).get("mine"),
    1,
  );
  const boxed = { valueOf: () => 1, toString: () => "1" };
  for (const call of [
    () => victim.hit("mine", boxed),
    () => victim.inc("mine", boxed),
    () => victim.set("mine", boxed),
  ])
    assert.throws(call, TollgateError);
  assert.equal(victim.get("mine"), 4);
});

test("a policy object that is changed is read anew by a new limiter, and changes no old one", () => {
  const policy = { algorithm: "fix_window", limit: 2, scale: "1h" };
  const old = new RateLimiter(policy, { clock });
  old.hit("a");
  policy.limit = 5;
  const fresh = new RateLimiter(policy, { clock });
  assert.equal(fresh.hit("a").limit, 5);
  assert.equal(old.hit("a").limit, 2);
  assert.equal(old.snapshot().policies[0].limit, 2);
  assert.equal(fresh.snapshot().policies[0].limit, 5);
  assert.equal(old.peek("a", 1, policy).limit, 5);
  policy.limit = 9;
  assert.equal(old.peek("a", 1, policy).limit, 9);
  assert.equal(step(policy, null, "hit", 1, now).decision.limit, 9);
});

test("a policy literal on every call leaves nothing to the finalizer", async () => {
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, { clock });
  let registered = 0;
  const { register } = FinalizationRegistry.prototype;
  FinalizationRegistry.prototype.register = function (...given) {
    registered += 1;
    return register.apply(this, given);
  };
  try {
    for (let at = 0; at < 1_000; at++)
      limiter.hit("a", 1, { algorithm: "fix_window", limit: at + 1, scale: "1h" });
  } finally {
    FinalizationRegistry.prototype.register = register;
  }
  assert.equal(registered, 0);
});

test("dropping many limiters takes each once, and disposing unregisters first", () => {
  const found = inFreshProcess("dropped-limiters");
  assert.deepEqual(found, { times: 1, count: 1 });
});

test("without memory, expired keys are cleaned with reports, and new keys take the place of ended ones", () => {
  const found = inFreshProcess("expired-without-memory", { flags: ["--wasm-max-mem-pages=40"] });
  assert.deepEqual({ ...found, allowed: 0 }, { all: true, before: 0, after: 8, allowed: 0 });
  assert.ok(found.allowed > 0.9, `${found.allowed} of the new keys were allowed`);
});

test("a trap keeps the states of other shapes", () => {
  const found = inFreshProcess("trap-and-another-shape");
  assert.deepEqual(found, { first: 5, panicked: "RuntimeError", others: 1, second: 0 });
});

test("a key whose state cannot be read after a trap starts afresh, alone", () => {
  const found = inFreshProcess("trap-half-way");
  assert.deepEqual(found, { panicked: "RuntimeError", next: true, other: 4, key: 0 });
});

test("a snapshot's policies and those of one call are read once", () => {
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1d" }, { clock });
  limiter.hit("a", 5);
  const { version, keys, earlier } = limiter.snapshot();
  let reads = 0;
  const policies = [
    {
      algorithm: "fix_window",
      limit: 9,
      get scale() {
        reads += 1;
        return reads === 1 ? "1d" : "1s";
      },
    },
  ];
  assert.equal(RateLimiter.restore({ version, policies, keys, earlier }, { clock }).get("a"), 5);
  assert.equal(reads, 1);
  const call = {
    algorithm: "fix_window",
    limit: 9,
    get scale() {
      reads += 1;
      return "1h";
    },
  };
  reads = 0;
  assert.throws(() => limiter.hit("a", 1, call), { code: "policy_mismatch" });
  assert.equal(reads, 1);
});
