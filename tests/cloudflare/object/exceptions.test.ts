// A key with an exception in an object: other numbers, everything allowed or denied, through evictions, deploys and credit.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TollgateEnv } from "../../../js/cloudflare/env.ts";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { Policy } from "../../../js/types.ts";
import { logged, start } from "../lib.ts";

const hour = 3_600_000;
const api: Policy = { name: "api", algorithm: "fix_window", limit: 2, scale: "1d" };
const policies: Policy[] = [api, { algorithm: "ban", after: 3, scale: "10m", for: "1h" }];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const objectOf = (name: string) => env.LIMITERS.getByName(`exceptions:${name}`);

/** How many of so many hits are allowed. */
async function allowed(
  object: ReturnType<typeof objectOf>,
  times: number,
  under: Policy | Policy[] = policies,
) {
  let count = 0;
  for (let at = 0; at < times; at += 1) if ((await object.hit(under)).allowed) count += 1;
  return count;
}

describe("an object with an exception", () => {
  it("has other numbers until its end, through evictions, and keeps what was used", async () => {
    const object = objectOf("numbers");
    expect(await allowed(object, 2)).toBe(2);
    const until = start + hour;
    expect(await object.except(policies, { api: { limit: 5 } }, { for: "1h" })).toBe(until);
    await evictDurableObject(object);
    expect(await object.exceptions(policies)).toEqual({ until, policies: { api: { limit: 5 } } });
    expect(await object.peek(policies)).toMatchObject({ limit: 5, remaining: 2 });
    expect(await allowed(object, 3)).toBe(3);
    vi.setSystemTime(until - 1);
    expect(await object.get(policies, "api")).toBe(5);
    expect((await object.exceptions(policies))?.until).toBe(until);
    vi.setSystemTime(until);
    await evictDurableObject(object);
    expect(await object.exceptions(policies)).toBe(null);
    expect(await object.hit(policies)).toMatchObject({ allowed: false, limit: 2 });
  });

  it("allows everything, also a banned key, and charges nothing", async () => {
    const object = objectOf("allow");
    await object.ban(policies, "2h");
    await object.except(policies, { allow: true }, { until: start + hour });
    await evictDurableObject(object);
    expect(await allowed(object, 99)).toBe(99);
    const { id, allowed: isReserved } = await object.reserve(policies, 7);
    expect(isReserved).toBe(true);
    expect(await object.settle(policies, id, 9)).toBe("settled");
    expect(await object.get(policies, "api")).toBe(0);
    vi.setSystemTime(start + hour);
    expect((await object.hit(policies)).reason).toBe("banned");
  });

  it("denies everything, whatever is left, and counts nothing toward a ban", async () => {
    const object = objectOf("deny");
    expect(await object.except(policies, { deny: true }, { until: new Date(start + hour) })).toBe(
      start + hour,
    );
    await evictDurableObject(object);
    for (let count = 0; count < 5; count += 1)
      expect(await object.hit(policies)).toMatchObject({ reason: "denied", violated: [], retryAfter: hour });
    expect((await object.reserve(policies)).allowed).toBe(false);
    expect(await object.get(policies, "ban")).toBe(0);
    expect(await object.except(policies, null)).toBe(start + hour);
    expect(await object.except(policies, null)).toBe(0);
    expect(await allowed(object, 3)).toBe(2);
  });

  it("stays at a reset, and applies under other policies and after a deploy", async () => {
    const object = objectOf("deploy");
    await object.except(policies, { api: { limit: 4 }, ban: { for: "2h" } }, { for: "1d" });
    expect(await object.reset(policies, { reservations: true })).toBe(false);
    expect(await allowed(object, 5, api)).toBe(4);
    expect(await object.reset(policies)).toBe(true);
    expect(await allowed(object, 5, api)).toBe(4);
    await evictDurableObject(object);
    const weekly: Policy = { ...api, scale: "7d" } as Policy;
    expect(await allowed(object, 5, weekly)).toBe(4);
    expect(await allowed(object, 5, { name: "other", algorithm: "fix_window", limit: 1, scale: "1d" })).toBe(
      1,
    );
    expect(await object.exceptions(api)).toEqual({
      until: start + 24 * hour,
      policies: { api: { limit: 4 }, ban: { for: 2 * hour } },
    });
  });

  it("is there until its end although its states have ended, and is then deleted", async () => {
    const object = objectOf("alarm");
    const lines = logged();
    await object.except(api, { deny: true }, { for: "30d" });
    const alarm = await runInDurableObject(object, (_, { storage }) => storage.getAlarm());
    expect(alarm).toBe(start + 30 * 24 * hour);
    vi.setSystemTime(start + 30 * 24 * hour - 1);
    await evictDurableObject(object);
    expect((await object.hit(api)).reason).toBe("denied");
    vi.setSystemTime(start + 30 * 24 * hour);
    await evictDurableObject(object);
    await runDurableObjectAlarm(object);
    expect(await runInDurableObject(object, (_, { storage }) => storage.list())).toEqual(new Map());
    expect(lines.lines("expired")).toMatchObject([{ policy: "", algorithm: "exception", count: 0 }]);
  });

  it("is written at once and closes the credit; credit that follows ends with it", () =>
    runInDurableObject(objectOf("credit"), async (_, state) => {
      const hot: Policy = { name: "api", algorithm: "fix_window", limit: 100_000, scale: "1d" };
      const own = { ...env, TOLLGATE: { credit: true } } as unknown as TollgateEnv;
      let rows = 0;
      const real = state.storage;
      const kv = {
        get: (key: string) => real.kv.get(key),
        put: (key: string, value: unknown) => {
          rows += 1;
          real.kv.put(key, value);
        },
        delete: (key: string) => real.kv.delete(key),
      };
      const storage = { kv, setAlarm: (time: number) => real.setAlarm(time) };
      Object.defineProperty(state, "storage", { value: storage, configurable: true });
      const object = new RateLimiterObject(state, own);
      for (let count = 0; count < 200; count += 1) object.hit(hot);
      expect(rows).toBeLessThan(60);
      rows = 0;
      object.except(hot, { api: { limit: 1_000_000 } }, { for: "10s" });
      expect(rows).toBe(1);
      // Another object has only the row: without the credit.
      expect(new RateLimiterObject(state, own).get(hot)).toBe(200);
      for (let count = 0; count < 200; count += 1) object.hit(hot);
      expect(rows).toBeLessThan(60);
      vi.setSystemTime(start + 10_000);
      // What the credit covered is used, and no more.
      const after = new RateLimiterObject(state, own).get(hot);
      expect(after).toBeGreaterThanOrEqual(400);
      object.except(hot, { allow: true }, { for: "1h" });
      rows = 0;
      for (let count = 0; count < 500; count += 1) object.hit(hot);
      expect(rows).toBe(0);
      expect(object.get(hot)).toBe(400);
    }));

  it("rejects what no policy can take, and changes nothing", () =>
    runInDurableObject(objectOf("wrong"), (object: RateLimiterObject) => {
      const end = { for: "1h" } as const;
      const error = (work: () => unknown) => {
        try {
          work();
        } catch (error) {
          return String((error as Error).message);
        }
        return "no error";
      };
      const wrong = (exception: unknown, at: object = end) =>
        error(() => object.except(policies, exception as never, at as never));
      expect(wrong({ other: { limit: 1 } })).toMatch(/"other" is not/);
      expect(wrong({ api: { limit: 0 } })).toMatch(/limit: 0 is not an integer/);
      expect(wrong({ api: { limit: Number.NaN } })).toMatch(/NaN/);
      expect(wrong({ api: { scale: "1m" } })).toMatch(/"scale" is not a field of an exception/);
      expect(wrong({})).toMatch(/exception/);
      expect(wrong("allow")).toMatch(/exception/);
      expect(wrong({ allow: true }, {})).toMatch(/until/);
      expect(wrong({ allow: true }, { for: "401d" })).toMatch(/for.*400 days/);
      expect(wrong({ allow: true }, { until: start })).toMatch(/until.*400 days/);
      expect(wrong({ allow: true }, { until: start + 401 * 24 * hour })).toMatch(/until.*400 days/);
      expect(object.exceptions(policies)).toBe(null);
    }));
});
