// Reservations of `RateLimiter` count until they are settled, cancelled or expired, and are charged exactly.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteLimiter } from "../../dist/client.js";
import { Ledger, RateLimiter } from "../../dist/node.js";

const policies = [
  { name: "rpm", algorithm: "sliding_window", limit: 60, scale: "1m" },
  { name: "tpm", algorithm: "token_bucket", capacity: 9_000, refillRate: 1 },
  { name: "running", algorithm: "concurrency", limit: 2, ttl: "30s" },
];

/** A limiter whose clock is `time.now`. */
function made(of = policies, options = {}) {
  const time = { now: 1_767_225_600_000 };
  return { time, limiter: new RateLimiter(of, { clock: () => time.now, ...options }) };
}

const code = (work) => {
  try {
    work();
  } catch (error) {
    return error.code;
  }
  return undefined;
};

test("a reservation counts in full until it is settled, and then by what was used", () => {
  const { limiter, time } = made();
  const reservation = limiter.reserve("user:42", { tpm: 4_000 }, { ttl: "2m" });
  assert.equal(reservation.allowed, true);
  assert.equal(reservation.expiresAt, time.now + 120_000);
  assert.deepEqual(
    ["rpm", "tpm", "running"].map((name) => limiter.get("user:42", name)),
    [1, 5_000, 1],
  );
  assert.equal(reservation.settle({ tpm: 1_234 }), "settled");
  assert.deepEqual(
    ["rpm", "tpm", "running"].map((name) => limiter.get("user:42", name)),
    [1, 9_000 - 1_234, 0],
  );
  assert.equal(reservation.settle(), "closed");
  assert.equal(limiter.settle(reservation.id), "closed");
});

test("a concurrency limit frees its slots by settling, cancelling and at their ends", () => {
  const { limiter, time } = made();
  const [first, second, third] = [1, 2, 3].map(() => limiter.reserve("job"));
  assert.deepEqual([first.allowed, second.allowed, third.allowed], [true, true, false]);
  assert.deepEqual([third.id, third.expiresAt, third.settle(), third.cancel()], ["", 0, "closed", "closed"]);
  assert.deepEqual(
    [third.decision.policy, third.decision.count, third.decision.remaining, third.decision.retryAfter],
    ["running", 2, 0, 30_000],
  );
  assert.equal(first.cancel(), "settled");
  assert.equal(limiter.reserve("job").allowed, true);
  time.now += 30_000;
  assert.equal(limiter.get("job", "running"), 0);
  assert.equal(second.settle(), "expired");
  assert.equal(limiter.settle(second.id), "expired");
});

test("a reservation that is not settled is charged in full at its end", () => {
  const { limiter, time } = made({ algorithm: "fix_window_per_key", limit: 10, scale: "1h" });
  const { now } = time;
  limiter.reserve("a", 7, { ttl: "1m" });
  assert.equal(limiter.expiresAt("a"), now + 60_000 + 3_600_000);
  time.now = now + 60_000;
  assert.deepEqual([limiter.get("a"), limiter.peek("a", 4).retryAfter], [7, 3_600_000]);
});

test("an end can be moved", () => {
  const { limiter, time } = made();
  const reservation = limiter.reserve("job", 1, { ttl: 1_000 });
  time.now += 999;
  assert.equal(reservation.extend("5m"), "extended");
  assert.equal(reservation.expiresAt, time.now + 300_000);
  time.now += 299_999;
  assert.equal(limiter.get("job", "running"), 1);
  time.now += 1;
  assert.equal(limiter.get("job", "running"), 0);
  assert.deepEqual([reservation.extend("1m"), limiter.extend(reservation.id, "1m")], ["expired", "expired"]);
});

test("a scope that ends without settling charges in full", () => {
  const { limiter } = made({ algorithm: "fix_window", limit: 10, scale: "1h" });
  {
    using reservation = limiter.reserve("a", 4);
    assert.equal(reservation.allowed, true);
  }
  {
    using reservation = limiter.reserve("a", 4);
    reservation.settle(1);
  }
  assert.equal(limiter.get("a"), 5);
  assert.equal(limiter.snapshot().keys[0][1][0].length, 7);
});

test("a snapshot has the open reservations, and an id outlives the limiter", () => {
  const { limiter, time } = made();
  for (const key of ["user:42", 42, 42n, "a.b\nc"]) {
    const { id } = limiter.reserve(key, { tpm: 100, rpm: 2 });
    const snapshot = JSON.parse(JSON.stringify(limiter.snapshot()));
    const again = RateLimiter.restore(snapshot, { clock: () => time.now });
    assert.deepEqual(again.snapshot(), limiter.snapshot());
    assert.equal(again.settle(id, { tpm: 7 }), "settled");
    assert.deepEqual([again.get(key, "tpm"), again.get(key, "rpm")], [8_993, 2]);
    // Under other policies what belongs to the others is let go.
    const fewer = RateLimiter.restore(snapshot, { policies: [policies[1]], clock: () => time.now });
    assert.equal(fewer.get(key), 8_900);
  }
});

test("a reset clears used amounts, and open reservations only with the option", () => {
  const { limiter } = made({ algorithm: "fix_window", limit: 10, scale: "1h" });
  limiter.hit("a", 3);
  const reservation = limiter.reserve("a", 4);
  assert.deepEqual([limiter.reset("a"), limiter.get("a")], [true, 4]);
  assert.deepEqual(
    [limiter.reset("a", { reservations: true }), limiter.get("a"), limiter.size],
    [true, 0, 0],
  );
  assert.equal(reservation.settle(), "closed");
  assert.equal(limiter.reset("a"), false);
});

test("the 10,001st open reservation of a key is denied as full", () => {
  const { limiter } = made({ algorithm: "fix_window", limit: 50_000, scale: "1d" });
  const open = Array.from({ length: 10_000 }, () => limiter.reserve("a"));
  assert.ok(open.every(({ allowed }) => allowed));
  const { decision } = limiter.reserve("a");
  assert.deepEqual([decision.allowed, decision.reason, decision.retryAfter], [false, "full", 60_000]);
  assert.equal(decision.count, 10_000);
  open[0].cancel();
  assert.equal(limiter.reserve("a").allowed, true);
});

test("a concurrency that a key cannot reach is an error", () => {
  const slots = (limit) => ({ algorithm: "concurrency", limit });
  const message = (limit, max) =>
    `limit: ${limit} is not a concurrency that a key can reach; it has at most ${max} open reservations here`;
  assert.throws(() => new RateLimiter(slots(10_001)), {
    code: "invalid_policy",
    message: message(10_001, 10_000),
  });
  assert.throws(() => new Ledger(slots(1_025)), { code: "invalid_policy", message: message(1_025, 1_024) });
  const limiter = new RateLimiter(slots(10_000));
  new Ledger(slots(1_024));
  assert.throws(() => limiter.except("a", { limit: 10_001 }, { for: "1h" }), {
    message: `concurrency.${message(10_001, 10_000)}`,
  });
  assert.equal(limiter.reserve("a", 10_000).allowed, true);
  assert.equal(limiter.peek("a").allowed, false);
});

test("a reservation of a key that was evicted says so", () => {
  const { limiter } = made({ algorithm: "fix_window", limit: 5, scale: "1h" }, { maxKeys: 1 });
  const reservation = limiter.reserve("a");
  limiter.hit("b");
  assert.equal(limiter.settle(reservation.id), "evicted");
});

test("cleaning keeps keys with open reservations, and charges expired ones", () => {
  const { limiter, time } = made(
    { algorithm: "fix_window_per_key", limit: 5, scale: 1_000 },
    { keyOlderThan: 10 },
  );
  limiter.reserve("a", 2, { ttl: 5_000 });
  time.now += 4_999;
  assert.deepEqual([limiter.clean(), limiter.get("a")], [0, 2]);
  time.now += 2_000;
  assert.deepEqual([limiter.clean(), limiter.size], [1, 0]);
});

test("numbers for one call decide on a reservation", () => {
  const { limiter } = made({ algorithm: "fix_window", limit: 1, scale: "1h" });
  const paying = { algorithm: "fix_window", limit: 10, scale: "1h" };
  assert.equal(limiter.reserve("a", 9, { policies: paying }).allowed, true);
  assert.equal(limiter.hit("a").allowed, false);
});

test("a refund gives back used amounts, and no more", () => {
  for (const policy of [
    { algorithm: "fix_window", limit: 10, scale: "1h" },
    { algorithm: "fix_window_per_key", limit: 10, scale: "1h" },
    { algorithm: "sliding_window", limit: 10, scale: "1h" },
    { algorithm: "sliding_counter", limit: 10, scale: "1h" },
    { algorithm: "leaky_bucket", capacity: 10, leakRate: 1, per: "1d" },
  ]) {
    const { limiter } = made(policy);
    assert.deepEqual([limiter.inc("a", -3), limiter.size], [0, 0]);
    limiter.hit("a", 5);
    const ends = limiter.expiresAt("a");
    assert.deepEqual([limiter.inc("a", -2), limiter.inc("a", -9), limiter.inc("a", 1)], [3, 0, 1]);
    if (policy.algorithm === "fix_window_per_key") assert.equal(limiter.expiresAt("a"), ends);
  }
  const { limiter } = made({ algorithm: "token_bucket", capacity: 10, refillRate: 1 });
  limiter.inc("a", 15);
  assert.deepEqual([limiter.inc("a", -5), limiter.inc("a", -4), limiter.inc("a", -99)], [0, 4, 10]);
});

test("costs by policy: a policy that is left out costs 1, and names are checked", () => {
  const { limiter } = made(policies.slice(0, 2));
  assert.equal(limiter.hit("a", { tpm: 1_500 }).allowed, true);
  assert.deepEqual([limiter.get("a", "rpm"), limiter.get("a", "tpm")], [1, 7_500]);
  assert.equal(limiter.peek("a", { tpm: 7_501, rpm: 0 }).policy, "tpm");
  for (const none of [{}, { tpm: undefined }, [], null, new Map([["tpm", 1]])])
    assert.equal(
      code(() => limiter.hit("a", none)),
      "invalid_cost",
    );
  assert.equal(
    code(() => limiter.hit("a", { tokens: 1 })),
    "unknown_policy",
  );
  assert.equal(
    code(() => limiter.hit("a", { tpm: -1 })),
    "invalid_cost",
  );
});

test("invalid input is an error that changes nothing", () => {
  const { limiter } = made();
  const open = limiter.reserve("a", { rpm: 1 });
  const before = JSON.stringify(limiter.snapshot());
  const expected = {
    reserve_only: [
      () => limiter.hit("a"),
      () => limiter.inc("a", 1, "running"),
      () => limiter.set("a", 1, "running"),
    ],
    unknown_policy: [() => limiter.reserve("a", { x: 1 }), () => open.settle({ x: 1 })],
    invalid_cost: [
      () => limiter.reserve("a", 1.5),
      () => limiter.reserve("a", "1"),
      () => open.settle({ rpm: -1 }),
      () => open.settle(3),
      () => open.settle("all"),
      () => open.settle(null),
      () => open.settle([]),
      () => limiter.reserve("a", {}),
      () => limiter.reserve("a", null),
      () => limiter.inc("a", -1.5, "rpm"),
    ],
    invalid_option: [
      () => limiter.reserve("a", 1, { ttl: "2d" }),
      () => limiter.reserve("a", 1, { ttl: 0 }),
      () => limiter.reserve("a", 1, { tll: 1 }),
      () => limiter.reserve("a", 1, 5),
      () => open.extend("soon"),
      () => limiter.reset("a", { reservations: 1 }),
    ],
    invalid_reservation: [
      () => limiter.settle("x"),
      () => limiter.settle(undefined),
      () => limiter.cancel(`${open.id.slice(0, -2)}x`),
      () => limiter.extend(open.id.toUpperCase(), "1m"),
    ],
    invalid_key: [() => limiter.reserve({}), () => limiter.reserve(Number.NaN)],
  };
  for (const [name, works] of Object.entries(expected)) {
    for (const work of works) assert.equal(code(work), name, String(work));
  }
  assert.equal(JSON.stringify(limiter.snapshot()), before);
  assert.equal(open.settle({ rpm: 3 }), "settled");
  assert.equal(limiter.get("a", "rpm"), 3);
});

test("a reservation under a call's smaller bucket is charged under it, also after a snapshot", () => {
  const own = { algorithm: "token_bucket", capacity: 100, refillRate: 10 };
  const call = { algorithm: "token_bucket", capacity: 10, refillRate: 1 };
  const { limiter, time } = made(own);
  const { id } = limiter.reserve("a", 10, { policies: call });
  const snapshot = JSON.parse(JSON.stringify(limiter.snapshot()));
  const again = RateLimiter.restore(snapshot, { clock: () => time.now });
  time.now += 500;
  for (const one of [limiter, again]) {
    assert.equal(one.settle(id), "settled");
    assert.equal(one.peek("a", 1, call).retryAfter, 1_000);
  }
});

test("costs are a number or a plain object: a map or a boxed number is neither", () => {
  const { limiter } = made(policies.slice(0, 2));
  for (const cost of [new Map([["tpm", 5]]), Object(5), [5], new Date(5)])
    assert.equal(
      code(() => limiter.hit("a", cost)),
      "invalid_cost",
    );
  assert.equal(limiter.hit("a", Object.assign(Object.create(null), { tpm: 5 })).allowed, true);
  assert.equal(limiter.get("a", "tpm"), 8_995);
});

test("a reservation of a limiter that was disposed of is closed", () => {
  const { limiter } = made();
  const reservation = limiter.reserve("a");
  limiter[Symbol.dispose]();
  assert.equal(reservation.extend("1m"), "closed");
  assert.equal(reservation.settle(), "closed");
});

test("a cost under any name of a policy reaches a limiter elsewhere", async () => {
  const bodies = [];
  const fetch = async (request) => {
    bodies.push(await request.text());
    throw new Error("no server");
  };
  const given = { url: "https://limits.example.com/_tollgate", token: "a", policy: "api", fetch };
  const remote = new RemoteLimiter({ ...given, onError: "deny" });
  await remote.hit("a", JSON.parse('{ "__proto__": 5 }'));
  assert.match(bodies.join(), /"__proto__":5/);
});
