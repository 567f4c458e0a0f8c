// The Durable Object performs every operation by RPC and fetch, and rejects invalid input unchanged.

import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../../js/types.ts";

const policy: Policy = { algorithm: "fix_window", limit: 3, scale: "365d" };
const broken: Policy = { algorithm: "fix_window", limit: 0, scale: "365d" };

it("throws the core's typed errors, and nothing changes", async () => {
  await runInDurableObject(env.LIMITERS.getByName("mistakes"), (object) => {
    object.hit(policy, 1);
    expect(() => object.hit(broken, 1)).toThrow(expect.objectContaining({ code: "invalid_policy" }));
    for (const cost of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(() => object.hit(policy, cost)).toThrow(expect.objectContaining({ code: "invalid_cost" }));
    }
    expect(
      object.count("set", JSON.stringify({ algorithm: "token_bucket", capacity: 1, refillRate: 1 }), 2),
    ).toMatchObject({
      code: "invalid_count",
    });
    expect(object.hit(policy, 1)).toMatchObject({ allowed: true, count: 2 });
  });
});

it("rejects values of the wrong type, which RPC does not, and nothing changes", async () => {
  await runInDurableObject(env.LIMITERS.getByName("types"), (object) => {
    const own = object as unknown as Record<string, (...given: unknown[]) => unknown>;
    const code = (method: string, ...given: unknown[]) => {
      try {
        const answer = own[method]?.call(object, ...given) as { code?: string };
        return answer.code ?? answer;
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    object.hit(policy, 1);
    for (const cost of ["1", null, true, [], {}, 1n, Symbol("1"), { fix_window: "1" }, { fix_window: 0.5 }]) {
      expect(code("hit", policy, cost)).toBe("invalid_cost");
      expect(code("reserve", policy, cost)).toBe("invalid_cost");
    }
    expect(code("hit", policy, { other: 1 })).toBe("unknown_policy");
    for (const ttl of [0, -1, 0.5, Number.NaN, "soon", null, "25h", {}])
      expect(code("reserve", policy, 1, { ttl })).toBe("invalid_option");
    for (const id of [undefined, null, 7, "", "lost", "\ud800", {}]) {
      for (const method of ["settle", "cancel"]) expect(code(method, policy, id)).toBe("invalid_reservation");
      expect(code("extend", policy, id, "1m")).toBe("invalid_reservation");
    }
    expect(code("reset", policy, { reservations: 1 })).toBe("invalid_option");
    for (const cost of [0.5, Number.NaN, "1", -(2 ** 53)])
      expect(code("inc", policy, cost)).toBe("invalid_cost");
    for (const count of ["1", null, -1, 0.5]) expect(code("set", policy, count)).toBe("invalid_count");
    for (const policies of [undefined, null, 7, "x", [], [null], { limit: 1n }])
      expect(code("hit", policies)).toMatch(/^(invalid_policy|unknown_algorithm)$/);
    expect(code("get", policy, 7)).toBe("unknown_policy");
    expect(code("count", "hit", "{", 1)).toBe("invalid_policy");
    expect(code("count", "hit", policy, 1)).toBe("invalid_operation");
    expect(code("count", "destroy", JSON.stringify(policy), 1)).toBe("invalid_operation");
    for (const [method, ...args] of [
      ["lease", 1, 7],
      ["undo", 1, 7],
      ["undo", 1, undefined],
    ] as const)
      expect(code(method, JSON.stringify(policy), ...args)).toBe("invalid_operation");
    expect(object.get(policy)).toBe(1);
  });
});

it("does every operation", async () => {
  const object = env.LIMITERS.getByName("operations");
  const bucket: Policy = { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1d" };
  expect(await object.get(bucket)).toBe(10);
  expect(await object.expiresAt(bucket)).toBe(0);
  expect(await object.reset(bucket)).toBe(false);
  expect(await object.peek(bucket, 11)).toMatchObject({
    allowed: false,
    retryAfter: Number.POSITIVE_INFINITY,
  });
  expect(await object.hit(bucket, 4)).toMatchObject({
    allowed: true,
    remaining: 6,
    policy: "token_bucket",
    violated: [],
  });
  expect(await object.inc(bucket, 3)).toBe(3);
  expect(await object.get(bucket)).toBe(3);
  expect(await object.set(bucket, 5)).toBe(5);
  expect(await object.expiresAt(bucket)).toBeGreaterThan(Date.now());
  expect(await object.reset(bucket)).toBe(true);
  expect(await object.get(bucket)).toBe(10);
});

it("decides several policies as one", async () => {
  const object = env.LIMITERS.getByName("several");
  const policies: Policy[] = [
    { algorithm: "fix_window", limit: 5, scale: "365d", name: "burst" },
    { algorithm: "fix_window", limit: 2, scale: "365d", name: "daily" },
  ];
  await object.hit(policies, 2);
  expect(await object.hit(policies)).toMatchObject({ allowed: false, policy: "daily", violated: ["daily"] });
  expect(await object.get(policies, "burst")).toBe(2);
});

describe("over fetch, as Workers in Rust call it", () => {
  const window: Policy = { algorithm: "fix_window", limit: 2, scale: "365d", name: "api" };
  const ask = async (name: string, question: unknown) => {
    const body = typeof question === "string" ? question : JSON.stringify(question);
    const response = await env.LIMITERS.getByName(name).fetch("https://tollgate.invalid/", {
      method: "POST",
      body,
    });
    return response.json();
  };

  it("it does every operation on the same states", async () => {
    const object = env.LIMITERS.getByName("fetched");
    const of = (operation: string, fields: object = {}) =>
      ask("fetched", { operation, policies: window, ...fields });
    expect(await of("hit")).toEqual({
      decision: {
        allowed: true,
        count: 1,
        limit: 2,
        remaining: 1,
        retryAfter: 0,
        resetAfter: expect.any(Number),
        moreAfter: expect.any(Number),
        policy: "api",
        violated: [],
      },
    });
    expect(await object.hit(window)).toMatchObject({ allowed: true, count: 2 });
    expect(await of("hit")).toMatchObject({ decision: { allowed: false, violated: ["api"] } });
    expect(await of("peek", { cost: 3 })).toMatchObject({ decision: { allowed: false, retryAfter: null } });
    expect(await of("inc", { cost: 5 })).toEqual({ number: 7 });
    expect(await of("set", { count: 1 })).toEqual({ number: 1 });
    expect(await of("get")).toEqual({ number: 1 });
    expect(await of("expires_at")).toEqual({ number: await object.expiresAt(window) });
    expect(await of("reset")).toEqual({ reset: true });
    expect(await object.get(window)).toBe(0);
  });

  it("one of several policies has a name", async () => {
    const policies = [window, { ...window, name: "day" }];
    expect(await ask("named", { operation: "inc", policies, of: "day" })).toEqual({ number: 1 });
    expect(await ask("named", { operation: "inc", policies, of: "month" })).toMatchObject({
      error: { code: "unknown_policy" },
    });
    expect(await ask("named", { operation: "hit", policies, cost: 2 })).toMatchObject({
      decision: { allowed: false, policy: "day", violated: ["day"] },
    });
  });

  it.each([
    ["nothing", "", "invalid_request"],
    ["no operation", { policies: window }, "invalid_request"],
    ["another operation", { operation: "destroy", policies: window }, "invalid_operation"],
    ["a broken policy", { operation: "hit", policies: broken }, "invalid_policy"],
    ["a negative cost", { operation: "hit", policies: window, cost: -1 }, "invalid_cost"],
    ["a cost out of range", { operation: "hit", policies: window, cost: 2 ** 53 }, "invalid_cost"],
    ["another field", { operation: "hit", policies: window, amount: 1 }, "invalid_request"],
    ["no count", { operation: "set", policies: window }, "invalid_count"],
    ["costs by policy for one", { operation: "inc", policies: window, cost: { api: 1 } }, "invalid_cost"],
    ["a ban of no length", { operation: "ban", policies: window }, "invalid_option"],
  ])("%s is an error with a code", async (_, question, code) => {
    expect(await ask("wrong", question)).toMatchObject({ error: { code, message: expect.any(String) } });
    expect(await ask("wrong", { operation: "get", policies: window })).toEqual({ number: 0 });
  });
});
