// Reservations in the Durable Object survive evictions and are charged exactly, by RPC and HTTP.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../../js/cloudflare/index.ts";
import type { Policy } from "../../../js/types.ts";
import { logged, someone, start, statuses, token, workerWith } from "../lib.ts";

const window: Policy = { algorithm: "fix_window_per_key", limit: 10, scale: "1h", name: "requests" };
const tokens: Policy = {
  algorithm: "token_bucket",
  capacity: 1_000,
  refillRate: 1,
  per: "1s",
  name: "tokens",
};
const running: Policy = { algorithm: "concurrency", limit: 2, ttl: "30s", name: "running" };
const all = [window, tokens, running];

const at = (milliseconds: number) => vi.setSystemTime(start + milliseconds);
const objectOf = (name: string) => env.LIMITERS.getByName(`reservations: ${name}`);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("an object", () => {
  it("sets amounts aside under every policy, and charges what was used", async () => {
    const object = objectOf("used");
    const reserved = await object.reserve(all, { tokens: 400 }, { ttl: "2m" });
    expect(reserved).toMatchObject({ allowed: true, expiresAt: start + 120_000 });
    const counts = () => Promise.all(["requests", "tokens", "running"].map((name) => object.get(all, name)));
    expect(await counts()).toEqual([1, 600, 1]);
    expect(await object.settle(all, reserved.id, { tokens: 150 })).toBe("settled");
    expect(await counts()).toEqual([1, 850, 0]);
    expect(await object.settle(all, reserved.id)).toBe("closed");
    expect(await counts()).toEqual([1, 850, 0]);
  });

  it("decides on costs by policy, and gives back by a negative cost", async () => {
    const object = objectOf("costs");
    const policies = [window, tokens];
    expect(await object.hit(policies, { tokens: 1_001 })).toMatchObject({
      allowed: false,
      retryAfter: Number.POSITIVE_INFINITY,
      violated: ["tokens"],
    });
    expect(await object.hit(policies, { tokens: 700 })).toMatchObject({ allowed: true, policy: "requests" });
    expect(await object.peek(policies, { tokens: 301 })).toMatchObject({
      allowed: false,
      violated: ["tokens"],
    });
    expect(await object.inc(policies, -100, "tokens")).toBe(400);
    expect(await object.inc(policies, -5, "requests")).toBe(0);
    await runInDurableObject(object, (own) => {
      expect(() => own.hit(all)).toThrow(expect.objectContaining({ code: "reserve_only" }));
      expect(() => own.inc(running)).toThrow(expect.objectContaining({ code: "reserve_only" }));
    });
  });

  it("distinguishes cancelled, extended, expired and unknown reservations", async () => {
    const object = objectOf("words");
    const [cancelled, extended, expired] = await Promise.all(
      [1, 2, 3].map((cost) => object.reserve(window, cost, { ttl: "1m" })),
    );
    const foreign = (await objectOf("another").reserve(window)).id;
    expect(await object.cancel(window, cancelled?.id as string)).toBe("settled");
    expect(await object.get(window)).toBe(5);
    expect(await object.cancel(window, foreign)).toBe("closed");
    at(59_999);
    expect(await object.extend(window, extended?.id as string, "1m")).toBe("extended");
    at(60_000);
    expect(await object.extend(window, expired?.id as string, "1m")).toBe("expired");
    expect(await object.settle(window, expired?.id as string, 0)).toBe("expired");
    expect(await object.settle(window, cancelled?.id as string, 9)).toBe("expired");
    expect(await object.settle(window, foreign, 9)).toBe("expired");
    expect(await object.get(window)).toBe(5);
    expect(await object.settle(window, extended?.id as string, 0)).toBe("settled");
    expect(await object.get(window)).toBe(3);
    // The charge began the window.
    expect(await object.expiresAt(window)).toBe(start + 60_000 + 3_600_000);
  });

  it("loses nothing when its memory is lost", async () => {
    const object = objectOf("evicted");
    const { id } = await object.reserve(all, { tokens: 400, requests: 2 });
    const nothing = await object.reserve(window, 0, { ttl: "1m" });
    await evictDurableObject(object);
    expect(await object.get(all, "tokens")).toBe(600);
    expect(await object.extend(all, id, "5m")).toBe("extended");
    await evictDurableObject(object);
    at(200_000);
    expect(await object.get(all, "running")).toBe(1);
    expect(await object.settle(all, id, { tokens: 900, requests: 1 })).toBe("settled");
    await evictDurableObject(object);
    expect([await object.get(all, "requests"), await object.get(all, "running")]).toEqual([1, 0]);
    expect(await object.settle(window, nothing.id, 3)).toBe("expired");
    expect(await object.get(all, "requests")).toBe(1);
  });

  it("keeps a reservation of 0, which is settled for more", async () => {
    const object = objectOf("nothing");
    const { id } = await object.reserve(window, 0);
    await evictDurableObject(object);
    expect(await object.settle(window, id, 3)).toBe("settled");
    expect(await object.get(window)).toBe(3);
  });

  it("settles under every policy of the reservation, whichever policies the call has", async () => {
    const object = objectOf("sets");
    const { id } = await object.reserve([window, tokens], { requests: 2, tokens: 300 });
    expect(await object.settle(window, id, { requests: 1 })).toBe("settled");
    expect([await object.get(window), await object.get(tokens)]).toEqual([1, 700]);
    await evictDurableObject(object);
    at(60_000);
    expect(await object.get(tokens)).toBe(760);
    at(360_000);
    expect([await object.get(window), await object.get(tokens)]).toEqual([1, 1_000]);
  });

  it("has at most 1,024 open under a policy, and denies the next one as full", async () => {
    const object = objectOf("full");
    const wide: Policy = { ...window, limit: 5_000 };
    const [first] = await Promise.all(
      Array.from({ length: 1_024 }, () => object.reserve(wide, 1, { ttl: 80_000 })),
    );
    for (const policies of [wide, [wide, tokens]])
      expect(await object.reserve(policies)).toMatchObject({
        allowed: false,
        id: "",
        expiresAt: 0,
        decision: { allowed: false, reason: "full", retryAfter: 80_000, violated: [] },
      });
    // Those of another policy are its own.
    expect(await object.reserve(tokens)).toMatchObject({ allowed: true });
    expect(await object.hit(wide)).toMatchObject({ allowed: true, count: 1_025 });
    await object.cancel(wide, first?.id as string);
    expect(await object.reserve(wide, 1, { ttl: 90_000 })).toMatchObject({ allowed: true });
    await evictDurableObject(object);
    expect(await object.reserve(wide)).toMatchObject({ allowed: false });
    at(80_000);
    expect(await object.reserve(wide)).toMatchObject({ allowed: true });
  });

  it("reset clears used amounts, and open reservations only with the option", async () => {
    const object = objectOf("reset");
    await object.hit(window, 4);
    const { id } = await object.reserve(window, 3);
    expect(await object.reset(window)).toBe(true);
    await evictDurableObject(object);
    expect(await object.get(window)).toBe(3);
    expect(await object.reset(window, { reservations: true })).toBe(true);
    expect(await object.reset(window, { reservations: true })).toBe(false);
    expect(await object.settle(window, id)).toBe("closed");
    expect(await object.get(window)).toBe(0);
    expect(await runInDurableObject(object, (_, { storage }) => [...storage.kv.list()])).toEqual([]);
  });

  it("is not deleted while anything is open or charged, and then it is", async () => {
    const log = logged();
    const object = objectOf("alarm");
    await object.reserve(window, 2, { ttl: "1h" });
    at(30 * 60_000);
    await runDurableObjectAlarm(object);
    at(61 * 60_000);
    await runDurableObjectAlarm(object);
    await evictDurableObject(object);
    expect(await object.get(window)).toBe(2);
    at(120 * 60_000 - 1);
    await runDurableObjectAlarm(object);
    expect(await object.get(window)).toBe(2);
    expect(log.lines("expired")).toEqual([]);
    at(120 * 60_000);
    await runDurableObjectAlarm(object);
    expect(await runInDurableObject(object, (_, { storage }) => [...storage.kv.list()])).toEqual([]);
    expect(log.lines("expired")).toMatchObject([{ policy: "requests", count: 2 }]);
  });

  it("writes a row for each reservation and settlement, and none for denials and reads", () =>
    runInDurableObject(objectOf("rows"), (object, { storage }) => {
      const put = vi.spyOn(storage.kv, "put");
      const rows = () => {
        const count = put.mock.calls.length;
        put.mockClear();
        return count;
      };
      const { id } = object.reserve(window, 8, { ttl: "1m" });
      expect(rows()).toBe(1);
      object.reserve(window, 8);
      object.hit(window, 8);
      object.peek(window, { requests: 1 });
      object.get(window);
      expect(rows()).toBe(0);
      object.extend(window, id, "2m");
      expect(rows()).toBe(1);
      at(120_000);
      // A denied hit, which found that it had expired.
      expect(object.hit(window, 8).allowed).toBe(false);
      expect(rows()).toBe(1);
      object.settle(window, id);
      expect(rows()).toBe(0);
    }));

  it("does all of it over fetch, as Workers in Rust call it", async () => {
    const object = objectOf("fetched");
    const ask = async (question: Record<string, unknown>) =>
      (
        await object.fetch("https://tollgate.invalid/", {
          method: "POST",
          body: JSON.stringify({ policies: window, ...question }),
        })
      ).json<{ reserved: { id: string; expiresAt: number }; settled: { settlement: string; id: string } }>();
    const { reserved } = await ask({
      operation: "reserve",
      cost: { requests: 3 },
      ttl: "1m",
      key: "sa.b",
    });
    expect(reserved).toMatchObject({ id: expect.stringMatching(/\.p\.sa\.b$/), expiresAt: start + 60_000 });
    const { settled } = await ask({ operation: "extend", id: reserved.id, ttl: 90_000, key: "sa.b" });
    expect(settled).toMatchObject({ settlement: "extended", expiresAt: start + 90_000 });
    expect(settled.id.slice(0, 32)).toBe(reserved.id.slice(0, 32));
    expect(await ask({ operation: "settle", id: settled.id, used: 2 })).toMatchObject({
      error: { code: "invalid_cost" },
    });
    expect(await ask({ operation: "settle", id: settled.id })).toMatchObject({
      settled: { settlement: "settled" },
    });
    const next = (await ask({ operation: "reserve" })).reserved;
    expect(next).toMatchObject({ decision: { count: 4 } });
    expect(await ask({ operation: "cancel", id: next.id })).toMatchObject({
      settled: { settlement: "settled" },
    });
    expect(await ask({ operation: "reset", reservations: true })).toEqual({ reset: true });
    expect(await ask({ operation: "settle", id: "lost" })).toMatchObject({
      error: { code: "invalid_reservation" },
    });
    expect(await ask({ operation: "extend", id: next.id })).toMatchObject({
      error: { code: "invalid_option" },
    });
  });
});

const config = {
  prefix: "/limits",
  policies: { requests: { ...window, name: undefined }, tokens: { ...tokens, name: undefined }, running },
};

describe("the HTTP API", () => {
  const { fetch } = workerWith(config);
  const call = async (operation: string, body: unknown) => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const response = await fetch(`/limits/v1/${operation}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return response.json<never>();
  };

  it("reserves and settles by the id alone", async () => {
    const policy = ["requests", "tokens", "running"];
    const key = "dots.and: all kinds\nof é";
    const { id, ...reserved } = (await call("reserve", {
      policy,
      key,
      cost: { tokens: 400 },
      ttl: "2m",
    })) as {
      id: string;
    };
    expect(reserved).toMatchObject({
      allowed: true,
      decision: { allowed: true },
      expiresAt: start + 120_000,
    });
    expect(await call("get", { policy, key, of: "tokens" })).toEqual({ count: 600 });
    expect(await call("extend", { policy, id, ttl: 60_000 })).toMatchObject({
      settlement: "extended",
      expiresAt: start + 120_000,
    });
    expect(await call("settle", { policy, id, used: { tokens: 1 } })).toEqual({ settlement: "settled" });
    expect(await call("cancel", { policy, id })).toEqual({ settlement: "closed" });
    expect(await call("get", { policy, key, of: "tokens" })).toEqual({ count: 999 });
  });

  it("does it in batches, with errors by their codes", async () => {
    const log = logged();
    const items = [3, 8, 0.5].map((cost) => ({ policy: "requests", key: "batch", cost }));
    const [first, second, third] = (await call("reserve", items)) as [{ id: string }, unknown, unknown];
    expect(second).toMatchObject({
      allowed: false,
      id: null,
      expiresAt: null,
      decision: { violated: ["requests"] },
    });
    expect(third).toMatchObject({ error: { code: "invalid_request" } });
    expect(log.lines("denied")).toMatchObject([{ via: "api", operation: "reserve", policies: ["requests"] }]);
    const { id } = first;
    const policy = "requests";
    const wrong = [
      ["settle", { policy, id: "lost" }, "invalid_reservation"],
      ["settle", { policy, id: `${id.slice(0, -6)}` }, "invalid_reservation"],
      ["settle", { policy, id, used: { tokens: 1 } }, "unknown_policy"],
      ["settle", { policy: "none", id }, "unknown_policy"],
      ["extend", { policy, id, ttl: "2d" }, "invalid_option"],
      ["extend", { policy, id }, "invalid_option"],
      ["reserve", { policy, key: "batch", ttl: true }, "invalid_option"],
      ["reserve", { policy, key: "batch", cost: { other: 1 } }, "unknown_policy"],
      ["settle", { policy, id: `${id.slice(0, -5)}\ud800` }, "invalid_key"],
      ["hit", { policy: "running", key: "batch" }, "reserve_only"],
    ] as const;
    for (const [operation, item, code] of wrong)
      expect(await call(operation, [item]), operation).toMatchObject([{ error: { code } }]);
    expect(
      await call("cancel", [
        { policy, id },
        { policy, id },
      ]),
    ).toEqual([{ settlement: "settled" }, { settlement: "closed" }]);
    expect(await call("inc", { policy, key: "batch", cost: -1 })).toEqual({ count: 0 });
    await call("reserve", { policy, key: "batch" });
    expect(await call("reset", { policy, key: "batch" })).toEqual({ reset: true });
    expect(await call("get", { policy, key: "batch" })).toEqual({ count: 1 });
    expect(await call("reset", { policy, key: "batch", reservations: true })).toEqual({ reset: true });
    expect(await call("get", { policy, key: "batch" })).toEqual({ count: 0 });
  });
});

describe("the entrypoint", () => {
  it("has the same methods", async () => {
    const worker = workerWith(config);
    const limits = new Tollgate({} as ExecutionContext, worker.env);
    const policy = ["requests", "tokens"];
    expect(await limits.hit(policy, "rpc", { tokens: 100 })).toMatchObject({ allowed: true });
    expect(await limits.peek(policy, "rpc", { tokens: 901 })).toMatchObject({ allowed: false });
    const { id, ...reserved } = await limits.reserve(policy, "rpc", { tokens: 400 }, { ttl: "2m" });
    expect(reserved).toMatchObject({ allowed: true, expiresAt: start + 120_000 });
    expect(await limits.extend(policy, id, "1m")).toBe("extended");
    expect(await limits.settle(policy, id, { tokens: 100 })).toBe("settled");
    expect(await limits.cancel(policy, id)).toBe("closed");
    expect(await limits.inc(policy, "rpc", -50, "tokens")).toBe(850);
    await limits.reserve(policy, "rpc");
    expect(await limits.reset(policy, "rpc")).toBe(true);
    expect(await limits.get(policy, "rpc", "tokens")).toBe(999);
    expect(await limits.reset(policy, "rpc", { reservations: true })).toBe(true);
    expect(await limits.get(policy, "rpc", "tokens")).toBe(1_000);
    await expect(limits.reserve(policy, "rpc", { other: 1 })).rejects.toMatchObject({
      code: "unknown_policy",
    });
    await expect(limits.reserve(policy, "rpc", Number.NaN)).rejects.toMatchObject({ code: "invalid_cost" });
    await expect(limits.reserve(policy, "rpc", 1, { ttl: "2d" })).rejects.toMatchObject({
      code: "invalid_option",
    });
    await expect(limits.settle(policy, "lost")).rejects.toMatchObject({ code: "invalid_reservation" });
    await expect(limits.settle(policy, 7 as never)).rejects.toMatchObject({ code: "invalid_reservation" });
  });
});

describe("a denial while a reservation is open", () => {
  it("is not remembered, since the reservation may be settled for less", async () => {
    const own = workerWith({
      upstream: "ORIGIN",
      policies: { two: { algorithm: "fix_window", limit: 2, scale: "1h" } },
      rules: [{ path: "/*", policies: "two" }],
    });
    const headers = someone();
    const object = env.LIMITERS.getByName(
      `/ip=${headers["CF-Connecting-IP"]?.length}:${headers["CF-Connecting-IP"]}`,
    );
    const two = { algorithm: "fix_window", limit: 2, scale: "1h", name: "two", denied: "free" } as const;
    const { id } = await object.reserve(two, 2);
    expect(await statuses(2, () => own.fetch("/", { headers }))).toEqual([429, 429]);
    await object.cancel(two, id);
    expect(await statuses(3, () => own.fetch("/", { headers }))).toEqual([200, 200, 429]);
    await object.reset(two);
    // Nothing is open now: this one is remembered.
    expect(await statuses(1, () => own.fetch("/", { headers }))).toEqual([429]);
  });
});
