// Leases of `RemoteLimiter` never admit more than the limit, whatever fails.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Leases as WasmLeases } from "../../build/lease/tollgate.js";
import { RemoteLimiter, type RemoteOptions } from "../../js/client/index.ts";
import { logged, seeded, start, token, workerWith } from "../cloudflare/lib.ts";

/** In these tests time passes by seconds: nothing comes back by itself. */
const policies = {
  window: { algorithm: "fix_window", limit: 300, scale: "1h" },
  perKey: { algorithm: "fix_window_per_key", limit: 300, scale: "1h" },
  log: { algorithm: "sliding_window", limit: 300, scale: "1h" },
  counter: { algorithm: "sliding_counter", limit: 300, scale: "1h" },
  tokens: { algorithm: "token_bucket", capacity: 300, refillRate: 1, per: "1h" },
  leaky: { algorithm: "leaky_bucket", capacity: 300, leakRate: 1, per: "1h" },
  counted: { algorithm: "fix_window", limit: 300, scale: "1h", denied: "count" },
  running: { algorithm: "concurrency", limit: 2, ttl: "30s" },
};
const names = Object.keys(policies).slice(0, 6);
const [worker, withCredit] = [workerWith({ policies }), workerWith({ policies, credit: true })];

type Fetch = (request: Request) => Promise<Response>;

/** How many requests are under way in the Worker. */
let underWay = 0;

const reaching =
  (worker: ReturnType<typeof workerWith>): Fetch =>
  async (request) => {
    underWay += 1;
    try {
      const { pathname } = new URL(request.url);
      const init = { method: "POST", headers: request.headers, body: await request.text() };
      return await worker.fetch(pathname, init);
    } finally {
      underWay -= 1;
    }
  };

/** A limiter, and what it has asked for. The last of the requests can be answered by something else. */
function limiter(options: Partial<RemoteOptions> = {}, answer = reaching(worker)) {
  const asked: { operation: string; items: Record<string, unknown>[] }[] = [];
  const network = { answer };
  const fetch: Fetch = async (request) => {
    const items = (await request.clone().json()) as Record<string, unknown>[];
    asked.push({ operation: new URL(request.url).pathname.slice("/_tollgate/v1/".length), items });
    return network.answer(request);
  };
  const url = "https://example.com/_tollgate";
  // A machine that is busy with other things is not what is tested.
  const given = { url, token, policy: "window", leases: true, timeout: 5_000, fetch, ...options };
  return { asked, network, limiter: new RemoteLimiter(given) };
}

/** The one that is not faked. */
const realTimeout = setTimeout;

/** Waits for answers, while time passes a little. It stands still while the Worker works: a slow machine changes nothing. */
async function during<Result>(work: Promise<Result>): Promise<Result> {
  let isDone = false;
  work.then(
    () => (isDone = true),
    () => (isDone = true),
  );
  while (!isDone) {
    await new Promise((resolve) => realTimeout(resolve, 0));
    if (underWay === 0) vi.advanceTimersByTime(1);
  }
  return work;
}

/** Lets so much time pass, and what is sent then come back. */
async function pass(milliseconds: number): Promise<void> {
  vi.advanceTimersByTime(milliseconds);
  // An answer may be followed by the next request.
  for (let quiet = 0; quiet < 3; quiet = underWay === 0 ? quiet + 1 : 0)
    await new Promise((resolve) => realTimeout(resolve, 0));
}

/** Hits one after the other, and returns how much was allowed. */
async function taken(limiter: RemoteLimiter, key: string, times: number, cost = 1): Promise<number> {
  let sum = 0;
  for (let count = 0; count < times; count += 1) {
    const { allowed, reason } = await during(limiter.hit(key, cost));
    if (allowed && reason === undefined) sum += cost;
  }
  return sum;
}

/** Hits all at once until denied, and returns how much was allowed. */
async function rest(limiter: RemoteLimiter, key: string): Promise<number> {
  const decisions = await during(Promise.all(Array.from({ length: 301 }, () => limiter.hit(key))));
  return decisions.filter(({ allowed, reason }) => allowed && reason === undefined).length;
}

const operationsOf = (asked: readonly { operation: string }[]) => asked.map(({ operation }) => operation);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(names)("%s", (policy) => {
  it.each([
    ["without credit", worker],
    ["with credit", withCredit],
  ])("several limiters are allowed the limit and never more, %s", async (kind, worker) => {
    const key = `several ${policy} ${kind}`;
    const several = [1, 2, 3].map(() => limiter({ policy }, reaching(worker)));
    await vi.dynamicImportSettled();
    const random = seeded(policy.length);
    let [sum, hits] = [0, 0];
    const hit = async (remote: RemoteLimiter) => {
      const cost = 1 + random(2);
      hits += 1;
      if ((await remote.hit(key, cost)).allowed) sum += cost;
    };
    for (let round = 0; round < 40; round += 1) {
      await during(
        Promise.all(several.flatMap(({ limiter }) => Array.from({ length: random(5) }, () => hit(limiter)))),
      );
      await pass(random(30));
      expect(sum).toBeLessThanOrEqual(300);
    }
    // What they still hold is given back.
    await pass(1_000);
    const { limiter: plain } = limiter({ policy, leases: false }, reaching(worker));
    expect(sum + (await rest(plain, key))).toBe(300);
    const operations = several.flatMap(({ asked }) => operationsOf(asked));
    expect(operations).toContain("lease");
    expect(operations.length).toBeLessThan(hits);
  });

  it("the lease of a limiter that is gone is charged at its end", async () => {
    const { limiter: gone, asked } = limiter({ policy });
    await vi.dynamicImportSettled();
    const sum = await taken(gone, `gone ${policy}`, 80);
    vi.clearAllTimers();
    expect(sum).toBe(80);
    const { limiter: plain } = limiter({ policy, leases: false });
    expect(sum + (await rest(plain, `gone ${policy}`))).toBeLessThan(300);
    await pass(2_000);
    expect(await rest(plain, `gone ${policy}`)).toBe(0);
    expect((await plain.peek(`gone ${policy}`)).remaining).toBe(0);
    expect(asked.length).toBeLessThan(40);
  });
});

it("a hot key sends few requests, and their decisions count all hits", async () => {
  const { limiter: remote, asked } = limiter();
  await vi.dynamicImportSettled();
  const remaining: number[] = [];
  for (let count = 0; count < 100; count += 1) {
    const decision = await during(remote.hit("hot"));
    expect(decision).toMatchObject({ allowed: true, limit: 300, policy: "window", violated: [] });
    remaining.push(decision.remaining);
  }
  expect(remaining).toEqual(Array.from({ length: 100 }, (_, count) => 299 - count));
  expect(asked.length).toBeLessThan(20);
  await pass(10);
  await pass(800);
  expect(await remote.get("hot")).toBe(100);
  expect(asked.at(-2)).toMatchObject({ operation: "lease", items: [{ key: "hot", cost: 0, size: 0 }] });
});

it("a cold key sends one request for each hit", async () => {
  const { limiter: remote, asked } = limiter();
  await vi.dynamicImportSettled();
  for (let count = 0; count < 20; count += 1) {
    await during(remote.hit("cold"));
    await during(remote.hit(`cold:${count}`));
    await pass(1_000);
  }
  expect(operationsOf(asked)).toEqual(Array(40).fill("hit"));
});

it("a key with two hits a second sends few requests, by leases that last longer", async () => {
  const { limiter: remote, asked } = limiter();
  await vi.dynamicImportSettled();
  for (let count = 0; count < 60; count += 1) {
    await during(remote.hit("lukewarm"));
    await pass(500);
  }
  expect(operationsOf(asked)).toContain("lease");
  expect(asked.length).toBeLessThan(20);
  for (let count = 0; count < 20; count += 1) await pass(500);
  expect(await remote.get("lukewarm")).toBe(60);
});

it("works with a clock that moves while it is read", async () => {
  const { limiter: remote, asked } = limiter();
  await vi.dynamicImportSettled();
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
  expect(await taken(remote, "moving", 100)).toBe(100);
  expect(asked.length).toBeLessThan(25);
});

it("sends hits that cannot be leased, and rejects invalid input also while a lease is open", async () => {
  const { limiter: remote, asked } = limiter({ policy: ["window", "log"], leases: { ttl: "10s" } });
  await vi.dynamicImportSettled();
  for (const key of ["held", "\ufffd"]) expect(await taken(remote, key, 40)).toBe(40);
  await pass(10);
  asked.length = 0;
  await expect(during(remote.hit("\ud800"))).rejects.toMatchObject({ code: "invalid_key" });
  await expect(during(remote.hit("held", 1.5))).rejects.toMatchObject({ code: "invalid_request" });
  await expect(during(remote.hit("held", -1))).rejects.toMatchObject({ code: "invalid_request" });
  await expect(during(remote.hit("held", "1" as never))).rejects.toMatchObject({ code: "invalid_cost" });
  await expect(during(remote.hit(7 as never))).rejects.toMatchObject({ code: "invalid_key" });
  await expect(during(remote.hit("k".repeat(2 ** 21)))).rejects.toMatchObject({ code: "invalid_key" });
  expect(await during(remote.hit("held", { log: 2 }))).toMatchObject({ allowed: true });
  expect(await during(remote.hit("held", 0))).toMatchObject({ allowed: true });
  expect(await during(remote.hit("held", 301))).toMatchObject({
    allowed: false,
    retryAfter: Number.POSITIVE_INFINITY,
    violated: ["window", "log"],
  });
  expect(operationsOf(asked)).toEqual(["hit", "hit", "hit", "hit", "hit", "lease"]);
});

it("gets no lease where denied hits count, and an error where only reservations do", async () => {
  const { limiter: counted, asked } = limiter({ policy: "counted" });
  const { limiter: running } = limiter({ policy: "running" });
  await vi.dynamicImportSettled();
  expect(await taken(counted, "counted", 20)).toBe(20);
  expect(asked).toHaveLength(20);
  expect(20 + (await rest(counted, "counted"))).toBe(300);
  expect(await counted.get("counted")).toBe(321);
  for (let count = 0; count < 8; count += 1)
    await expect(during(running.hit("running"))).rejects.toMatchObject({ code: "reserve_only" });
});

describe("a Worker that does not respond", () => {
  const decision = {
    ...{ allowed: true, count: 1, limit: 300, remaining: 299, retryAfter: 0, resetAfter: 1_000 },
    moreAfter: 1_000,
    ...{ policy: "window", violated: [] as string[] },
  };
  const id = `${"0".repeat(32)}.lw.a.sdead`;
  const lease = { id, amount: 100, life: 875, countsDown: false };
  const json = (body: unknown) => async () => Response.json(body);
  const answers: [string, Fetch][] = [
    ["network", () => Promise.reject(new TypeError("network"))],
    ["no JSON", async () => new Response("<html>", { status: 502 })],
    [
      "late",
      (request) =>
        new Promise((_, reject) =>
          request.signal.addEventListener("abort", () => reject(request.signal.reason)),
        ),
    ],
    ...[
      [],
      [null],
      [7],
      [{}],
      [{ error: 7 }],
      [{ error: null }],
      [decision, decision],
      [{ ...decision, count: "1", decision: { ...decision, count: -1 }, lease: null }],
      [{ ...decision, violated: [7], decision, lease: {} }],
      [{ ...decision, policy: "other", decision: { ...decision, violated: ["other"] }, lease }],
      [{ ...decision, moreAfter: undefined, decision: { ...decision, moreAfter: -1 }, lease }],
      [{ ...decision, resetAfter: 1e30, decision, lease: { ...lease, id: "lost" } }],
      [{ ...decision, retryAfter: -1, decision, lease: { ...lease, id: id.replace("dead", "other") } }],
      [{ ...decision, allowed: 1, decision, lease: { ...lease, id: `x.y.a.sdead` } }],
      [{ ...decision, limit: null, decision, lease: { ...lease, amount: "9" } }],
      [{ ...decision, remaining: 0.5, decision, lease: { ...lease, life: 10_001 } }],
    ].map((body): [string, Fetch] => [JSON.stringify(body), json(body)]),
  ];

  it.each(answers)("%s", async (name, answer) => {
    const key = "dead";
    const isHeld = name !== "late";
    const each = ["throw", "allow", "deny"] as const;
    for (const onError of name.startsWith("[") ? each.slice(name.length % 3).slice(0, 1) : each) {
      const options = { onError, timeout: name === "late" ? 5 : 5_000 };
      const { limiter: remote, network } = limiter(options, reaching(worker));
      await vi.dynamicImportSettled();
      // A plain hit fails, and one with a renewal.
      for (const before of [0, isHeld ? 40 : 0]) {
        await remote.reset(key, { reservations: true });
        const sum = await taken(remote, key, before);
        expect(sum).toBe(before);
        const right = network.answer;
        network.answer = answer;
        let [failures, fromLease] = [0, 0];
        for (let count = 0; count < 40; count += 1) {
          const outcome = await during(remote.hit(key)).catch((error) => error);
          const failed = onError === "throw" ? { code: "unanswered" } : { reason: "error" };
          if (outcome.reason === "error" || outcome instanceof Error) {
            expect(outcome).toMatchObject(failed);
            if (onError !== "throw") expect(outcome.allowed).toBe(onError === "allow");
            failures += 1;
          } else fromLease += 1;
        }
        expect(failures).toBeGreaterThan(5);
        network.answer = right;
        expect(sum + fromLease + (await rest(remote, key))).toBeLessThanOrEqual(300);
        await pass(2_000);
      }
    }
  });
});

it("sends requests again after a trap, and the lost lease is charged at its end", async () => {
  const { limiter: remote, asked } = limiter();
  const { limiter: other } = limiter();
  await vi.dynamicImportSettled();
  // Few enough that the limit has room for all that traps leave to its end.
  expect((await taken(remote, "trap", 20)) + (await taken(other, "trap", 20))).toBe(40);
  for (const method of ["hit", "replied", "spend"] as const) {
    const trap = vi.spyOn(WasmLeases.prototype, method).mockImplementationOnce(() => {
      throw new WebAssembly.RuntimeError("unreachable");
    });
    expect(await taken(remote, "trap", 8)).toBe(8);
    expect(await taken(other, "trap", 8)).toBe(8);
    trap.mockRestore();
  }
  asked.length = 0;
  expect(await taken(remote, "trap", 20)).toBe(20);
  expect(asked.length).toBeLessThan(20);
  await pass(2_000);
  const { limiter: plain } = limiter({ leases: false });
  expect(108 + (await rest(plain, "trap"))).toBeLessThanOrEqual(300);
});

it("works as without leases where the wasm cannot be loaded", async () => {
  const leaseCore = () => {
    throw new WebAssembly.CompileError("blocked");
  };
  vi.doMock("../../js/client/lease-core.ts", () => ({ leaseCore }));
  const { limiter: remote, asked } = limiter();
  await vi.dynamicImportSettled();
  vi.doUnmock("../../js/client/lease-core.ts");
  expect(await taken(remote, "blocked", 40)).toBe(40);
  expect(operationsOf(asked)).toEqual(Array(40).fill("hit"));
});

it("rejects invalid options", () => {
  class Ttl {
    ttl = "1s";
  }
  for (const [leases, message] of [
    [1, "leases: 1 is not true, false, or an object"],
    ["1s", 'leases: "1s" is not true'],
    [null, "leases: null is not true"],
    [[], "leases: an array is not true"],
    [new Ttl(), "leases: an object is not true"],
    [{ tll: "1s" }, 'options: "tll" is not'],
    [{ ttl: 0 }, "leases.ttl: 0 is not a duration of at most ten seconds"],
    [{ ttl: "11s" }, 'leases.ttl: "11s" is not a duration of at most ten seconds'],
    [{ ttl: 10_001 }, "leases.ttl: 10001 is not"],
    [{ ttl: Number.NaN }, "leases.ttl: NaN is not"],
    [{ ttl: null }, "leases.ttl: null is not"],
    [{ ttl: true }, "leases.ttl: true is not"],
  ] as const)
    expect(() => limiter({ leases: leases as never }), message).toThrow(
      expect.objectContaining({ code: "invalid_option", message: expect.stringContaining(message) }),
    );
  for (const leases of [undefined, true, false, {}, { ttl: undefined }, { ttl: "10s" }, { ttl: 1 }] as const)
    expect(() => limiter({ leases })).not.toThrow();
});

describe("the operation", () => {
  const call = async (body: unknown) => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    return (await worker.fetch("/_tollgate/v1/lease", init)).json<Record<string, never>>();
  };
  const item = { policy: "window", key: "operation" };

  it("grants, renews and gives back, and logs a denial", async () => {
    const log = logged();
    const { limiter: plain } = limiter({ leases: false });
    const first = await call({ ...item, cost: 2, size: 10, ttl: "2s" });
    expect(first).toMatchObject({
      decision: { allowed: true, count: 2 },
      lease: { amount: 10, life: 1_750, countsDown: false },
    });
    const { id } = first["lease"] as unknown as { id: string };
    expect(id).toMatch(/^[0-9a-f]{32}\.[0-9a-z]+\.a\.soperation$/);
    expect(await plain.get(item.key)).toBe(12);
    expect(await call({ ...item, id, used: 7, size: 10 })).toMatchObject({ lease: { amount: 10 } });
    expect(await plain.get(item.key)).toBe(19);
    expect(await call({ ...item, id, used: 1 })).toMatchObject({ decision: { count: 10 }, lease: null });
    expect(await plain.get(item.key)).toBe(10);
    // It is closed.
    expect(await call({ ...item, id, used: 5 })).toMatchObject({ lease: null });
    expect(await plain.get(item.key)).toBe(10);
    expect(log.lines("denied")).toEqual([]);
    expect(await call({ ...item, cost: 291, size: 9 })).toMatchObject({
      decision: { allowed: false, violated: ["window"] },
      lease: null,
    });
    expect(log.lines("denied")).toMatchObject([{ via: "api", operation: "lease", cost: 291 }]);
  });

  it("rejects invalid requests and changes nothing", async () => {
    const own = { ...item, key: "hostile" };
    const { limiter: plain } = limiter({ leases: false });
    const { lease } = await call({ ...own, cost: 1, size: 10, ttl: "10s" });
    const { id } = lease as unknown as { id: string };
    const { id: byPolicy } = await plain.reserve("hostile", { window: 2 });
    const wrong = [
      ...[-1, 0.5, 2 ** 53, "1", [], {}, { window: 1 }, true].flatMap((amount) =>
        ["cost", "used", "size"].map((field) => ({ [field]: amount })),
      ),
      ...[0, -1, 10_001, "11s", "1", "soon", [], {}, true].map((ttl) => ({ ttl })),
      ...["", "lost", 7, [], {}, id.replace("hostile", "other"), id.slice(0, 40), byPolicy].map((id) => ({
        id,
      })),
      ...["", 7, null, "\ud800", "k".repeat(1_025)].map((key) => ({ key })),
      { policy: "running" },
      { policy: "none" },
      { undoable: true },
      { credit: true },
      { random: 1 },
    ];
    for (const fields of wrong) {
      const body = { ...own, id, used: 3, size: 100, ...fields };
      expect(await call(body), JSON.stringify(fields)).toMatchObject({
        status: 400,
        code: expect.any(String),
      });
    }
    expect(await plain.get("hostile")).toBe(13);
    expect(await plain.peek("hostile")).toMatchObject({ remaining: 286 });
    await plain.cancel(byPolicy);
    expect(await call({ ...own, id, used: 10 })).toMatchObject({ decision: { count: 11 }, lease: null });
  });
});
