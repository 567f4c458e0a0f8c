// Bad moments: no memory, a full stack, a trap, hostile objects. Each breaks no more than its own call.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { RateLimiter, step, TollgateError } from "tollgate";
import { atEveryDepth } from "./lib/depths.mjs";

const now = 1_767_227_321_853;
const clock = () => now;

/** Runs a module in a process of its own, with flags for V8, and returns what it printed as JSON. */
function inFreshProcess(source, ...flags) {
  const args = [...flags, "--input-type=module", "--eval", source];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

const small = "--wasm-max-mem-pages=80";

test("out of memory for new keys is an error of that call, and changes nothing", () => {
  const found = inFreshProcess(
    `
    import { RateLimiter } from "tollgate";
    const clock = () => ${now};
    const policies = Array.from({ length: 8 }, (_, at) => ({
      algorithm: "sliding_counter", limit: 100, scale: 60_000 + at, name: "p" + at,
    }));
    const limiter = new RateLimiter(policies, { clock });
    const other = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1h" }, { clock });
    other.hit("neighbour");
    let [keys, error] = [0];
    try {
      for (; ; keys++) limiter.hit("key:" + keys);
    } catch (thrown) {
      error = thrown;
    }
    const twice = [];
    for (const call of ["hit", "inc", "set"])
      try {
        limiter[call]("new", 1, call === "hit" ? undefined : "p0");
      } catch ({ code }) {
        twice.push(code);
      }
    const [size, again, neighbour] = [limiter.size, limiter.hit("key:7").count, other.hit("neighbour").count];
    const peeked = limiter.peek("new").count;
    for (let at = 0; at < 100; at++) limiter.reset("key:" + at);
    const reused = Array.from({ length: 100 }, (_, at) => limiter.hit("again:" + at).allowed).every(Boolean);
    limiter[Symbol.dispose]();
    const third = new RateLimiter(policies, { clock });
    for (let at = 0; at < keys; at++) third.hit(at);
    console.log(JSON.stringify({
      code: error.code, name: error.name, twice, same: size === keys, again, neighbour, peeked, reused, third: third.size === keys,
    }));
  `,
    small,
  );
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
  const found = inFreshProcess(
    `
    import { RateLimiter, step } from "tollgate";
    let now = ${now};
    const clock = () => now++;
    const log = { algorithm: "sliding_window", limit: 1_000_000, scale: "1d" };
    const limiter = new RateLimiter(log, { clock });
    const code = (work) => {
      try {
        work();
        return "none";
      } catch (error) {
        return error.code ?? String(error);
      }
    };
    let hits = 0;
    const hit = code(() => {
      for (; ; hits++) limiter.hit("log");
    });
    const count = limiter.get("log");
    const policies = Array.from({ length: 32 }, (_, at) => ({ ...log, name: "p" + at }));
    const made = new Set();
    const limiters = [];
    for (let at = 0; at < 500; at++) made.add(code(() => limiters.push(new RateLimiter(policies, { clock }))));
    for (const each of limiters) made.add(code(() => each.hit("key")));
    const snapshot = code(() => limiter.snapshot());
    const states = [Array.from({ length: 900_000 }, (_, at) => 1)];
    const keys = Array.from({ length: 50 }, (_, at) => [at, states]);
    const restore = code(() => RateLimiter.restore({ version: limiters.version ?? new RateLimiter(log).snapshot().version, policies: [log], keys }, { clock }));
    limiter.reset("log");
    const again = limiter.hit("log").allowed;
    console.log(JSON.stringify({ hit, kept: count === hits, made: [...made].sort(), snapshot, restore, again }));
  `,
    small,
  );
  assert.equal(found.hit, "out_of_memory");
  assert.equal(found.kept, true);
  for (const code of [...found.made, found.snapshot, found.restore])
    assert.ok(["none", "out_of_memory"].includes(code), code);
  assert.ok(found.made.includes("out_of_memory"), "the memory was not exhausted");
  assert.equal(found.restore, "out_of_memory");
  assert.equal(found.again, true);
});

test("cleaning a great many states that are reported works in bounded memory", () => {
  const found = inFreshProcess(
    `
    import { RateLimiter } from "tollgate";
    let now = 0;
    const policies = Array.from({ length: 32 }, (_, at) => ({
      algorithm: "fix_window_per_key", limit: 5, scale: 1_000, name: "p" + at,
    }));
    let [reported, most] = [0, 0];
    const limiter = new RateLimiter(policies, {
      clock: () => now,
      cleanPeriod: "1d",
      beforeClean: (_, entries) => {
        reported += entries.length;
        most = Math.max(most, entries.length);
      },
    });
    // What is reported of one part must fit: a megabyte.
    const room = new RateLimiter({ algorithm: "sliding_window", limit: 65_536, scale: "1d" }, { clock: () => now++ });
    for (let at = 0; at < 65_536; at++) for (const log of ["a", "b", "c"]) room.hit(log);
    now = 1_000_000;
    let keys = 0;
    try {
      for (; ; keys++) limiter.hit(keys);
    } catch (error) {
      if (error.code !== "out_of_memory") throw error;
    }
    room[Symbol.dispose]();
    now += 10_000;
    const removed = limiter.clean();
    console.log(JSON.stringify({ all: removed === keys, reported: reported === 32 * removed, most, left: limiter.size }));
  `,
    "--wasm-max-mem-pages=400",
  );
  assert.equal(found.all, true);
  assert.equal(found.reported, true);
  assert.equal(found.left, 0);
  assert.ok(found.most <= 64, `${found.most} entries at once`);
});

test("the memory grows by a share of itself, not page by page", () => {
  const found = inFreshProcess(`
    let memory;
    const { Instance } = WebAssembly;
    WebAssembly.Instance = new Proxy(Instance, {
      construct(target, given) {
        const made = new target(...given);
        memory = made.exports.memory;
        return made;
      },
    });
    const { RateLimiter } = await import("tollgate");
    const limiter = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1h" }, { clock: () => ${now} });
    let [grown, buffer] = [0, memory?.buffer];
    for (let key = 0; key < 1_000_000; key++) {
      limiter.hit(key);
      if (memory.buffer !== buffer) [grown, buffer] = [grown + 1, memory.buffer];
    }
    console.log(JSON.stringify({ grown, pages: memory.buffer.byteLength / 65_536 }));
  `);
  assert.ok(found.pages > 244, "a million keys take at least 16 bytes each");
  assert.ok(found.grown <= 80, `the memory grew ${found.grown} times to ${found.pages} pages`);
  assert.ok(found.pages < 1.5 * 270, `${found.pages} pages`);
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
  const program = fileURLToPath(new URL("programs/full-stack-headers.mjs", import.meta.url));
  // With so little of it, the stack also ends within the wasm.
  const args = ["--stack-size=60", program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { thrown: true, same: true });
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

/**
 * Lets chosen exports of the wasm panic in Rust: `armed` names those that do so at their next call. Counts instances.
 */
const arming = `
  const armed = new Set();
  let instances = 0;
  const { Instance } = WebAssembly;
  WebAssembly.Instance = function (...given) {
    const { exports } = new Instance(...given);
    instances += 1;
    const panicking = ([name, value]) => [
      name,
      typeof value === "function" ? (...args) => (armed.delete(name) ? exports.crash() : value(...args)) : value,
    ];
    return { exports: Object.fromEntries(Object.entries(exports).map(panicking)) };
  };
  const { RateLimiter, step } = await import("tollgate");
  const clock = () => ${now};
  const thrown = (work) => {
    try {
      work();
      return "nothing";
    } catch (error) {
      return error instanceof WebAssembly.RuntimeError ? "RuntimeError" : error.code;
    }
  };
  const policies = [
    { algorithm: "fix_window", limit: 9, scale: "1h", name: "window" },
    { algorithm: "sliding_window", limit: 9, scale: "1h", name: "log" },
    { algorithm: "leaky_bucket", capacity: 9, leakRate: 1, per: "1d", name: "level" },
  ];
  const limiters = Array.from({ length: 5 }, () => new RateLimiter(policies, { clock }));
  for (const [at, limiter] of limiters.entries()) for (let hit = 0; hit <= at; hit++) limiter.hit("key");
  limiters[0].hit(7n, 3);
  const counts = (key) => policies.map(({ name }) => limiters.map((limiter) => limiter.get(key, name)));
`;

test("a panic in Rust ends its instance, and every limiter goes on in another with all its states", () => {
  const all = [1, 2, 3, 4, 5];
  for (const [name, call] of [
    ["hit", 'limiters[2].hit("key")'],
    ["hit_with", 'limiters[2].peek("key")'],
    ["count", 'limiters[2].get("key", "log")'],
    ["release", 'limiters[2].reset("nobody")'],
    ["clean", "limiters[2].clean()"],
    ["save", "limiters[2].snapshot()"],
    ["moves", 'limiters[2].inc("nobody", 0, "log")'],
    ["slab_new", "new RateLimiter(policies)"],
    ["load", "RateLimiter.restore(limiters[2].snapshot())"],
    ["input", 'step(policies, null, "hit", 1, 0)'],
  ]) {
    const found = inFreshProcess(`
      ${arming}
      armed.add("${name}");
      const panicked = thrown(() => ${call});
      const after = counts("key");
      console.log(JSON.stringify({ panicked, after, other: limiters[0].get(7n, "log"), instances, sizes: limiters.map(({ size }) => size) }));
    `);
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
  const found = inFreshProcess(`
    ${arming}
    armed.add("hit");
    const panicked = thrown(() => limiters[1].hit("key"));
    armed.add("rescue");
    const lost = thrown(() => limiters[2].hit("key"));
    const after = counts("key").map((row) => row.join());
    const again = limiters[2].hit("key").remaining;
    console.log(JSON.stringify({ panicked, lost, after, again }));
  `);
  assert.deepEqual(found, {
    panicked: "RuntimeError",
    lost: "state_lost",
    after: ["1,2,0,4,5", "1,2,0,4,5", "1,2,0,4,5"],
    again: 8,
  });
});

test("getters, proxies and valueOf are read once, and what was read is what is used", () => {
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
  const numbers = [now - (now % 3_600_000), 1];
  Object.defineProperty(numbers, 1, { enumerable: true, get: () => (element++ === 0 ? 1 : 2 ** 60) });
  const { version, policies } = victim.snapshot();
  const restored = RateLimiter.restore({ version, policies, keys: [["mine", [numbers]]] }, { clock });
  assert.equal(element, 1);
  assert.equal(restored.get("mine"), 1);
  assert.equal(victim.get("mine"), 4);

  let length = 0;
  const growing = new Proxy([numbers[0], 1], {
    get(target, name) {
      if (name === "length") return length++ === 0 ? 2 : 1_000_000;
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
  const found = inFreshProcess(
    `
    const { RateLimiter } = await import("tollgate");
    const order = [];
    const { unregister } = FinalizationRegistry.prototype;
    FinalizationRegistry.prototype.unregister = function (token) {
      order.push("unregister");
      return unregister.call(this, token);
    };
    const policy = { algorithm: "fix_window", limit: 9, scale: "1h" };
    const one = new RateLimiter(policy);
    one[Symbol.dispose]();
    one[Symbol.dispose]();
    const times = order.length;
    // Each takes the place of the last: a table that is searched, or handles that are never free, would grow.
    for (let at = 0; at < 50_000; at++) {
      const limiter = new RateLimiter(policy);
      limiter.hit("a");
      limiter[Symbol.dispose]();
    }
    const alive = Array.from({ length: 50_000 }, () => new RateLimiter(policy));
    for (const limiter of alive) limiter.hit("a");
    for (const limiter of alive.reverse()) limiter[Symbol.dispose]();
    const last = new RateLimiter(policy);
    console.log(JSON.stringify({ times, count: last.hit("a").count }));
  `,
  );
  assert.deepEqual(found, { times: 1, count: 1 });
});

test("without memory, expired keys are cleaned with reports, and new keys take the place of ended ones", () => {
  const found = inFreshProcess(
    `
    import { RateLimiter } from "tollgate";
    let now = ${now};
    let reported = 0;
    const options = { clock: () => now, beforeClean: (_, entries) => (reported += entries.length) };
    const filled = (more) => {
      const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 9, scale: "1m" }, more);
      let keys = 0;
      try {
        for (; ; keys++) limiter.hit(keys);
      } catch ({ code }) {
        if (code !== "out_of_memory") throw code;
      }
      return [limiter, keys];
    };
    const [limiter, keys] = filled(options);
    now += 3_600_000;
    const before = limiter.get(3);
    const removed = limiter.clean();
    const after = limiter.hit("again").remaining;
    limiter[Symbol.dispose]();

    // Only new keys come, and everything has ended: they are let in, at the latest after looking at every slot.
    const [flooded, most] = filled({ clock: () => now });
    now += 3_600_000;
    let allowed = 0;
    for (let key = 0; key < most; key++)
      try {
        allowed += Number(flooded.hit("new:" + key).allowed);
      } catch ({ code }) {
        if (code !== "out_of_memory") throw code;
      }
    console.log(JSON.stringify({ all: removed === keys && reported === keys, before, after, allowed: allowed / most }));
  `,
    "--wasm-max-mem-pages=40",
  );
  assert.deepEqual({ ...found, allowed: 0 }, { all: true, before: 0, after: 8, allowed: 0 });
  assert.ok(found.allowed > 0.9, `${found.allowed} of the new keys were allowed`);
});

test("a trap keeps the states under another scale", () => {
  const found = inFreshProcess(`
    ${arming}
    let time = ${now};
    const policyOf = (scale) => ({ algorithm: "fix_window_per_key", limit: 5, scale, denied: "free" });
    const clock2 = () => time;
    let limiter = new RateLimiter(policyOf("1d"), { clock: clock2 });
    const admitted = () => Array.from({ length: 9 }, () => limiter.hit("key").allowed).filter(Boolean).length;
    const first = admitted();
    limiter = RateLimiter.restore(limiter.snapshot(), { clock: clock2, policies: policyOf("1s") });
    armed.add("count");
    const panicked = thrown(() => limiter.get("key"));
    const earlier = limiter.snapshot().earlier.length;
    time += 3_000;
    limiter = RateLimiter.restore(limiter.snapshot(), { clock: clock2, policies: policyOf("1d") });
    console.log(JSON.stringify({ first, panicked, earlier, second: admitted() }));
  `);
  assert.deepEqual(found, { first: 5, panicked: "RuntimeError", earlier: 1, second: 0 });
});

test("a key whose state cannot be read after a trap starts afresh, alone", () => {
  const found = inFreshProcess(`
    ${arming.replace("armed.delete(name) ? exports.crash()", "armed.delete(name) ? (value(...args), exports.crash())")}
    limiters[1].hit("other", 4);
    armed.add("release");
    const panicked = thrown(() => limiters[1].reset("key"));
    const next = thrown(() => limiters[1].get("other", "window"));
    console.log(JSON.stringify({
      panicked, next: next === "nothing" || next === "state_lost", other: limiters[1].get("other", "window"), key: limiters[1].get("key", "window"),
    }));
  `);
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
