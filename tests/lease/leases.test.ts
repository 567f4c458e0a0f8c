// Leases of isolates never admit more than the limit, save messages, and are given back.

import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../js/cloudflare/api/entrypoint.ts";
import type { TollgateEnv } from "../../js/cloudflare/env.ts";
import type { RateLimiterObject } from "../../js/cloudflare/object/object.ts";
import worker from "../../js/cloudflare/worker.ts";
import { someone, start } from "../cloudflare/lib.ts";

const seconds = (count: number) => count * 1_000;

beforeEach(() => {
  // Timers too: leases are given back, and waiting hits ask by themselves, when a test says so.
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const algorithms = {
  fix_window: { algorithm: "fix_window", limit: 100, scale: "1m" },
  fix_window_per_key: { algorithm: "fix_window_per_key", limit: 100, scale: "1m" },
  sliding_window: { algorithm: "sliding_window", limit: 100, scale: "1m" },
  sliding_counter: { algorithm: "sliding_counter", limit: 100, scale: "1m" },
  token_bucket: { algorithm: "token_bucket", capacity: 100, refillRate: 1, per: "1h" },
  leaky_bucket: { algorithm: "leaky_bucket", capacity: 100, leakRate: 1, per: "1h" },
};

/** A gateway with one rule, whose objects count how often they are asked. */
function gatewayWith(
  policy: Record<string, unknown>,
  {
    asked = (answer: Promise<unknown>, _cost: number) => answer,
    ...more
  }: Record<string, unknown> & {
    asked?: (answer: Promise<unknown>, cost: number) => Promise<unknown>;
  } = {},
) {
  const calls: string[] = [];
  const LIMITERS = {
    getByName: (name: string) => {
      const stub = env.LIMITERS.getByName(name);
      return {
        count: (...given: Parameters<RateLimiterObject["count"]>) => {
          calls.push(given[0]);
          return asked(underWay(stub.count(...given)), given[2]);
        },
        lease: (...given: Parameters<RateLimiterObject["lease"]>) => {
          calls.push("lease");
          return asked(underWay(stub.lease(...given)), given[1]);
        },
      };
    },
  };
  const TOLLGATE = {
    timeout: "1m",
    upstream: "ORIGIN",
    policies: { own: policy },
    rules: [{ path: "/*", key: "ip", policies: "own" }],
    leases: true,
    onError: "deny",
    ...more,
  };
  const ORIGIN = { fetch: () => new Response("origin") };
  const own = { ...env, LIMITERS, ORIGIN, TOLLGATE } as unknown as TollgateEnv;
  const contexts: ExecutionContext[] = [];
  const fetch = (headers: Record<string, string>, path = "/") => {
    const context = createExecutionContext();
    contexts.push(context);
    return worker.fetch(new Request(`https://example.com${path}`, { headers }), own, context);
  };
  return { fetch, calls, env: own, contexts };
}

const callsUnderWay = new Set<Promise<unknown>>();

/** Notes a call of an object until it is answered. */
async function underWay(call: PromiseLike<unknown>): Promise<unknown> {
  const answer = Promise.resolve(call);
  callsUnderWay.add(answer);
  try {
    return await answer;
  } finally {
    callsUnderWay.delete(answer);
  }
}

/**
 * Lets time pass until all have answered: what waits for others does so by timers. Time stands still while an object is
 * called, so that a slow machine changes nothing.
 */
async function answers(responses: readonly (Response | Promise<Response>)[]): Promise<Response[]> {
  let isDone = false;
  const all = Promise.all(responses).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    if (callsUnderWay.size > 0) await Promise.allSettled(callsUnderWay);
    else await vi.advanceTimersByTimeAsync(1);
  }
  return all;
}

const allowedIn = (responses: readonly Response[]) => responses.filter(({ status }) => status === 200).length;

describe("a limit of 100", () => {
  it.each(Object.entries(algorithms))(
    "%s admits no more of 1,000 parallel hits, and all in the end",
    async (_, policy) => {
      for (const credit of [false, true]) {
        const headers = someone();
        const { fetch } = gatewayWith(policy, { credit });
        let allowed = allowedIn(await answers(Array.from({ length: 1_000 }, () => fetch(headers))));
        expect(allowed).toBeLessThanOrEqual(100);
        expect(allowed).toBeGreaterThan(0);
        // By then every lease was given back or has ended, and so has what is remembered of a denial.
        await vi.advanceTimersByTimeAsync(seconds(4));
        for (let count = 0; count < 150; count += 1) allowed += allowedIn(await answers([fetch(headers)]));
        expect(allowed).toBe(100);
      }
    },
  );

  it.each(Object.entries(algorithms))("%s holds for several isolates", async (_, policy) => {
    const headers = someone();
    // Each has a configuration of its own, and so leases of its own.
    const isolates = Array.from({ length: 5 }, () => gatewayWith(policy, { credit: true }));
    let allowed = 0;
    for (let count = 0; count < 60; count += 1) {
      allowed += allowedIn(await answers(isolates.flatMap(({ fetch }) => [fetch(headers), fetch(headers)])));
      await vi.advanceTimersByTimeAsync(20);
    }
    expect(allowed).toBeLessThanOrEqual(100);
    expect(allowed).toBeGreaterThan(80);
  });
});

describe("a hot key", () => {
  const policy = { algorithm: "fix_window", limit: 10_000, scale: "1h" };

  it("calls its object once in many hits, and every decision is exact", async () => {
    const headers = someone();
    const { fetch, calls } = gatewayWith(policy);
    for (let count = 1; count <= 2_000; count += 1) {
      const [response] = (await answers([fetch(headers)])) as [Response];
      expect(response.status).toBe(200);
      const remaining = Number(/;r=(\d+)/.exec(response.headers.get("RateLimit") ?? "")?.[1]);
      expect(remaining).toBe(10_000 - count);
      await vi.advanceTimersByTimeAsync(9);
    }
    expect(calls.length).toBeLessThan(2_000 / 40);
    expect(calls).toContain("lease");
  });

  it("has leases by RPC, too", async () => {
    const calls = gatewayWith(policy);
    const entrypoint = new Tollgate(createExecutionContext(), calls.env);
    for (let count = 1; count <= 500; count += 1) {
      const decision = await entrypoint.hit("own", "hot");
      expect([decision.allowed, decision.remaining, decision.policy]).toEqual([true, 10_000 - count, "own"]);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(calls.calls.length).toBeLessThan(500 / 20);
    await expect(entrypoint.hit("own", "hot", -1)).rejects.toThrow("cost");
    await expect(entrypoint.hit("other", "hot")).rejects.toThrow("other");
  });

  it("gives the unspent part back", async () => {
    const headers = someone();
    const { fetch, calls, contexts } = gatewayWith(policy);
    for (let count = 0; count < 300; count += 1) {
      await answers([fetch(headers)]);
      await vi.advanceTimersByTimeAsync(5);
    }
    const address = headers["CF-Connecting-IP"] as string;
    const object = env.LIMITERS.getByName(`/ip=${address.length}:${address}`);
    expect(await object.get({ ...policy, name: "own", denied: "free" } as never)).toBeGreaterThan(300);
    const asked = calls.length;
    // In steps, between which the object answers: time passes in it too.
    while (calls.length === asked) {
      await vi.advanceTimersByTimeAsync(5);
      await object.get(policy as never);
    }
    expect(calls.slice(asked)).toEqual(["lease"]);
    await Promise.all(contexts.map(waitOnExecutionContext));
    expect(await object.get({ ...policy, name: "own", denied: "free" } as never)).toBe(300);
  });

  it("gives a lease up at the end of its window, and has the next one whole", async () => {
    vi.setSystemTime(start + seconds(7));
    const headers = someone();
    const { fetch } = gatewayWith({ algorithm: "fix_window", limit: 400, scale: "10s" });
    let window = 0;
    let [own, next] = [0, 0];
    for (let count = 0; count < 1_200; count += 1) {
      const [response] = (await answers([fetch(headers)])) as [Response];
      window = Math.floor((Date.now() - start) / seconds(10));
      if (window === 0 && response.status === 200) own += 1;
      if (window === 1 && response.status === 200) next += 1;
      await vi.advanceTimersByTimeAsync(9);
    }
    expect(own).toBeLessThanOrEqual(400);
    expect(own).toBeGreaterThan(250);
    expect(next).toBe(400);
  });

  it("lets no hit wait for long when the request that renews is cancelled", async () => {
    const headers = someone();
    const stuck = { isOn: false };
    const { fetch, calls } = gatewayWith(policy, {
      // Whoever was cancelled is never answered.
      asked: (answer, cost) => (stuck.isOn && cost === 0 ? new Promise(() => {}) : answer),
    });
    for (let count = 0; count < 200; count += 1) {
      await answers([fetch(headers)]);
      await vi.advanceTimersByTimeAsync(5);
    }
    stuck.isOn = true;
    const from = Date.now();
    const asked = calls.length;
    for (let count = 0; count < 50; count += 1) {
      const responses = await answers(Array.from({ length: 20 }, () => fetch(headers)));
      expect(allowedIn(responses)).toBe(20);
    }
    // Nobody waited for longer than the 50 ms of one's own timer.
    expect(Date.now() - from).toBeLessThan(50 * 60);
    expect(calls.length).toBeGreaterThan(asked);
    stuck.isOn = false;
    await vi.advanceTimersByTimeAsync(seconds(3));
    const before = calls.length;
    for (let count = 0; count < 400; count += 1) {
      await answers([fetch(headers)]);
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(calls.length - before).toBeLessThan(30);
  });

  it("follows onError when its object fails, and spends no lease whose renewal failed", async () => {
    const headers = someone();
    const broken = { isOn: false };
    const { fetch } = gatewayWith(policy, {
      asked: (answer) => (broken.isOn ? Promise.reject(new Error("down")) : answer),
    });
    for (let count = 0; count < 100; count += 1) {
      await answers([fetch(headers)]);
      await vi.advanceTimersByTimeAsync(5);
    }
    broken.isOn = true;
    await vi.advanceTimersByTimeAsync(seconds(2));
    const [response] = (await answers([fetch(headers)])) as [Response];
    expect(response.status).toBe(503);
    broken.isOn = false;
    const [after] = (await answers([fetch(headers)])) as [Response];
    expect(after.status).toBe(200);
  });
});

describe("nothing changes", () => {
  /** The statuses and headers of hits, and how often objects were asked. */
  async function story(
    more: Record<string, unknown>,
    policy: Record<string, unknown>,
    times: number,
    pause: number,
  ) {
    const headers = someone();
    const { fetch, calls } = gatewayWith(policy, more);
    const said: string[] = [];
    for (let count = 0; count < times; count += 1) {
      const [response] = (await answers([fetch(headers)])) as [Response];
      said.push(`${response.status} ${response.headers.get("RateLimit")}`);
      await vi.advanceTimersByTimeAsync(pause);
    }
    return { said, calls: calls.length };
  }

  it.each([
    ["a cold key", { algorithm: "fix_window", limit: 10_000, scale: "1h" }, 30, seconds(1)],
    ["a key near its limit", { algorithm: "fix_window", limit: 8, scale: "1h" }, 30, 5],
    [
      "a policy that counts denied hits",
      { algorithm: "fix_window", limit: 100, scale: "1h", denied: "count" },
      130,
      1,
    ],
  ])("for %s", async (_, policy, times, pause) => {
    vi.setSystemTime(start);
    const without = await story({ leases: false }, policy, times, pause);
    vi.setSystemTime(start);
    expect(await story({}, policy, times, pause)).toEqual(without);
  });

  it("for a rule with leases = false, and a shadow rule", async () => {
    for (const rule of [{ leases: false }, { mode: "shadow" }]) {
      const headers = someone();
      const rules = [{ path: "/*", key: "ip", policies: "own", ...rule }];
      const { fetch, calls } = gatewayWith({ algorithm: "fix_window", limit: 1_000, scale: "1h" }, { rules });
      for (let count = 0; count < 50; count += 1) await answers([fetch(headers)]);
      await vi.advanceTimersByTimeAsync(1);
      expect(calls).toEqual(Array.from({ length: 50 }, () => "hit"));
    }
  });

  it("in a flood of denials: the object gets as few messages as without leases", async () => {
    const policy = { algorithm: "fix_window", limit: 50, scale: "1h" };
    const flood = async (leases: boolean) => {
      const headers = someone();
      const { fetch, calls } = gatewayWith(policy, { leases });
      for (let count = 0; count < 1_000; count += 1) {
        await answers([fetch(headers)]);
        await vi.advanceTimersByTimeAsync(3);
      }
      return calls.length;
    };
    expect(await flood(true)).toBeLessThanOrEqual(await flood(false));
  });

  it("for many cold keys: one message each, and few are remembered", async () => {
    const { fetch, calls } = gatewayWith({ algorithm: "fix_window", limit: 10, scale: "1h" });
    const hits = 300;
    for (let count = 0; count < hits; count += 1) {
      const address = `203.0.${count >> 8}.${count & 255}`;
      await answers([fetch({ "CF-Connecting-IP": address })]);
    }
    expect(calls).toEqual(Array.from({ length: hits }, () => "hit"));
  });
});

it("keeps its requests alive until the lease is given back, and the object has counted what was used", async () => {
  const policy = { algorithm: "fix_window", limit: 1_000, scale: "1h" };
  const headers = someone();
  const { fetch, calls, contexts } = gatewayWith(policy);
  for (let count = 0; count < 20; count += 1) await answers([fetch(headers)]);
  expect(calls).toContain("lease");
  const before = calls.length;
  const began = Date.now();
  await answers([Promise.all(contexts.map(waitOnExecutionContext)).then(() => new Response())]);
  expect(Date.now() - began).toBeGreaterThan(100);
  expect(calls.slice(before)).toEqual(["lease"]);
  // Another isolate, without leases: nothing is held any more.
  const [response] = (await answers([gatewayWith(policy, { leases: false }).fetch(headers)])) as [Response];
  expect(response.headers.get("RateLimit")).toContain(";r=979;");
});
