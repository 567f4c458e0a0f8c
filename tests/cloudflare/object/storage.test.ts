// An object writes as few rows as documented, and deletes what has ended.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { Policy } from "../../../js/types.ts";

/** Far ahead of the real clock, by which workerd rings alarms: none rings before a test says so. */
const start = Date.UTC(2100, 0, 1);
const policy: Policy = { algorithm: "token_bucket", capacity: 3, refillRate: 1, per: "1h" };
const minutes = (count: number) => count * 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A storage that counts at the call: a put and a delete write a row each, and so does an alarm that is set. */
function counted(storage: DurableObjectStorage) {
  let counts = { rows: 0, alarms: [] as number[] };
  const kv = {
    get: (key: string) => storage.kv.get(key),
    put: (key: string, value: unknown) => {
      counts.rows += 1;
      storage.kv.put(key, value);
    },
    delete: (key: string) => {
      counts.rows += 1;
      return storage.kv.delete(key);
    },
  };
  const setAlarm = (time: number) => {
    counts.alarms.push(time - start);
    return storage.setAlarm(time);
  };
  const take = () => {
    const taken = counts;
    counts = { rows: 0, alarms: [] };
    return taken;
  };
  return { storage: { kv, setAlarm } as unknown as DurableObjectStorage, take };
}

const onCounted = (
  name: string,
  work: (object: RateLimiterObject, take: () => { rows: number; alarms: number[] }) => void | Promise<void>,
) =>
  runInDurableObject(env.LIMITERS.getByName(name), async (_, state) => {
    const { storage, take } = counted(state.storage);
    Object.defineProperty(state, "storage", { value: storage });
    await work(new RateLimiterObject(state, env), take);
  });

const stored = ({ kv }: DurableObjectStorage) => [...kv.list()].map(([key]) => key);

const rowsOf = (name: string) =>
  runInDurableObject(env.LIMITERS.getByName(name), (_, { storage }) => stored(storage));

describe("the rows written", () => {
  it("are one for an allowed hit, none for a denied one, and an alarm now and then", () =>
    onCounted("counts", (object, take) => {
      object.hit(policy);
      expect(take()).toEqual({ rows: 1, alarms: [minutes(60)] });

      object.hit(policy);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      object.hit(policy);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      for (let count = 0; count < 100; count += 1) expect(object.hit(policy).allowed).toBe(false);
      expect(take()).toEqual({ rows: 0, alarms: [] });

      object.peek(policy);
      object.get(policy);
      object.expiresAt(policy);
      object.hit(policy, 0);
      expect(take()).toEqual({ rows: 0, alarms: [] });
      object.inc(policy);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      object.set(policy, 2);
      expect(take()).toEqual({ rows: 1, alarms: [] });
    }));

  it("are none for a key that is only read", () =>
    onCounted("looked", (object, take) => {
      object.peek(policy);
      object.get(policy);
      object.reset(policy);
      object.hit(policy, 9);
      expect(take()).toEqual({ rows: 0, alarms: [] });
    }));

  it("do not include denied hits that are counted", () =>
    onCounted("count", (object, take) => {
      const counting: Policy = { algorithm: "fix_window", limit: 1, scale: "1h", denied: "count" };
      object.hit(counting);
      take();
      object.hit(counting);
      expect(object.hit(counting)).toMatchObject({ allowed: false, count: 3 });
      expect(take()).toEqual({ rows: 0, alarms: [] });
    }));

  it("include a state that was moved to a clock far behind", () =>
    onCounted("followed", (object, take) => {
      for (const denied of ["count", "free"] as const) {
        const window: Policy = { algorithm: "fix_window", limit: 1, scale: "1m", denied, name: denied };
        object.reset(window);
        vi.setSystemTime(start + minutes(60));
        object.hit(window);
        take();
        vi.setSystemTime(start);
        expect(object.hit(window).allowed).toBe(false);
        expect(take().rows).toBe(1);
        object.hit(window);
        expect(take().rows).toBe(0);
      }
    }));

  it("are one, whatever else is stored of the key", () =>
    onCounted("others", (object, take) => {
      const other: Policy = { algorithm: "leaky_bucket", capacity: 3, leakRate: 1, per: "1h" };
      object.hit(policy);
      object.hit(other);
      take();
      object.hit(policy);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      object.hit(other);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      object.reset(policy);
      expect(take()).toEqual({ rows: 1, alarms: [] });
      expect(object.get(other)).toBe(2);
    }));

  it("are one, whatever the number of policies", () =>
    onCounted("policies", (object, take) => {
      const several: Policy[] = ["a", "b", "c"].map((name) => ({
        algorithm: "sliding_window",
        limit: 9,
        scale: "1h",
        name,
      }));
      object.hit(several);
      take();
      object.hit(several);
      expect(take()).toEqual({ rows: 1, alarms: [] });
    }));
});

describe("the alarm", () => {
  it("is ten minutes away at least, and is not moved by every hit", () =>
    onCounted("alarm", (object, take) => {
      const short: Policy = { algorithm: "fix_window", limit: 1_000, scale: "1s" };
      object.hit(short);
      expect(take().alarms).toEqual([minutes(10)]);
      for (let second = 1; second < 600; second += 1) {
        vi.setSystemTime(start + second * 1_000);
        object.hit(short);
      }
      expect(take()).toEqual({ rows: 599, alarms: [] });
    }));

  it("writes no row when it rings on a key in use, and one when a state has ended", () =>
    onCounted("in use", async (object, take) => {
      const window = (name: string, scale: "1h" | "3h"): Policy => ({
        algorithm: "fix_window_per_key",
        limit: 9,
        scale,
        name,
      });
      object.hit(window("short", "1h"));
      object.hit(window("long", "3h"));
      take();
      vi.setSystemTime(start + minutes(30));
      await object.alarm();
      expect(take()).toEqual({ rows: 0, alarms: [minutes(180)] });
      vi.setSystemTime(start + minutes(60));
      await object.alarm();
      expect(take()).toEqual({ rows: 1, alarms: [minutes(180)] });
      object.hit(window("long", "3h"));
      expect(take()).toEqual({ rows: 1, alarms: [] });
    }));

  it("keeps denials that were counted in memory when it rings", () =>
    onCounted("counted when it rings", async (object, take) => {
      const counting: Policy = { algorithm: "fix_window", limit: 1, scale: "1h", denied: "count" };
      object.hit(counting);
      object.hit(counting);
      take();
      vi.setSystemTime(start + minutes(20));
      await object.alarm();
      expect(take().rows).toBe(0);
      expect(object.get(counting)).toBe(2);
    }));

  it("deletes everything when the key has expired, and logs it", async () => {
    const lines = vi.spyOn(console, "log");
    const object = env.LIMITERS.getByName("expired");
    await object.hit(policy, 3);
    vi.setSystemTime(start + minutes(181));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    expect(await rowsOf("expired")).toEqual([]);
    const told = lines.mock.calls.map(([line]) => JSON.parse(line)).find(({ event }) => event === "expired");
    expect(told).toEqual({
      event: "expired",
      key: expect.stringMatching(/^[0-9a-f]{24}$/),
      policy: "token_bucket",
      algorithm: "token_bucket",
      count: 0,
      expiredAt: start + minutes(180),
    });
    expect(await object.hit(policy, 3)).toMatchObject({ allowed: true });
    expect(await object.hit(policy)).toMatchObject({ allowed: false });
    lines.mockRestore();
  });

  it("logs each ended state with its count, to Analytics Engine too, and keeps the others", () =>
    runInDurableObject(env.LIMITERS.getByName("some"), async (_, state) => {
      const points: AnalyticsEngineDataPoint[] = [];
      const TOLLGATE_METRICS = { writeDataPoint: (point: AnalyticsEngineDataPoint) => points.push(point) };
      const object = new RateLimiterObject(state, { ...env, TOLLGATE_METRICS } as never);
      const window = (name: string, scale: "1h" | "2h"): Policy => ({
        algorithm: "fix_window_per_key",
        limit: 9,
        scale,
        name,
      });
      const lines = vi.spyOn(console, "log").mockImplementation(() => {});
      object.hit(window("short", "1h"), 4);
      object.hit(window("long", "2h"), 5);
      vi.setSystemTime(start + minutes(60));
      await object.alarm();
      const key = points[0]?.indexes?.[0] as string;
      const ended = { policy: "short", algorithm: "fix_window_per_key", count: 4 };
      const expiredAt = start + minutes(60);
      expect(lines.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
        { event: "expired", key, ...ended, expiredAt },
      ]);
      expect(points).toEqual([
        { indexes: [key], blobs: ["expired", key, "short", "fix_window_per_key"], doubles: [4, expiredAt] },
      ]);
      expect([object.get(window("short", "1h")), object.get(window("long", "2h"))]).toEqual([0, 5]);
      expect(await state.storage.getAlarm()).toBe(start + minutes(120));
      vi.setSystemTime(start + minutes(120));
      await object.alarm();
      expect(lines).toHaveBeenCalledTimes(2);
      expect(stored(state.storage)).toEqual([]);
      lines.mockRestore();
    }));

  it("keeps a key that was hit again, and rings again", async () => {
    const object = env.LIMITERS.getByName("kept");
    await object.hit(policy, 1);
    vi.setSystemTime(start + minutes(59));
    await object.hit(policy, 2);
    vi.setSystemTime(start + minutes(60));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    expect(await object.get(policy)).toBe(1);
    await runInDurableObject(object, async (_, { storage }) => {
      expect(await storage.getAlarm()).toBe(start + minutes(180));
    });
    vi.setSystemTime(start + minutes(180));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    expect(await rowsOf("kept")).toEqual([]);
  });

  it("is set again when it rings before the key has expired, as by another clock", async () => {
    const object = env.LIMITERS.getByName("early");
    await object.hit(policy, 1);
    vi.setSystemTime(start + minutes(20));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    await runInDurableObject(object, async (_, { storage }) => {
      expect(await storage.getAlarm()).toBe(start + minutes(60));
    });
    expect(await object.get(policy)).toBe(2);
  });

  it("may ring twice, and logs once", () =>
    runInDurableObject(env.LIMITERS.getByName("twice"), async (object) => {
      const lines = vi.spyOn(console, "log").mockImplementation(() => {});
      object.hit(policy, 1);
      vi.setSystemTime(start + minutes(60));
      await object.alarm();
      await object.alarm();
      expect(lines).toHaveBeenCalledTimes(1);
      lines.mockRestore();
    }));

  it("cleans up after a reset", async () => {
    const object = env.LIMITERS.getByName("reset");
    await object.hit(policy);
    await object.reset(policy);
    expect(await runDurableObjectAlarm(object)).toBe(true);
    expect(await rowsOf("reset")).toEqual([]);
  });
});

describe("between evictions", () => {
  it("nothing changes", async () => {
    const object = env.LIMITERS.getByName("evicted");
    await object.hit(policy, 2);
    await evictDurableObject(object);
    expect(await object.hit(policy)).toMatchObject({ allowed: true, remaining: 0 });
    await evictDurableObject(object);
    vi.setSystemTime(start + minutes(59));
    expect(await object.hit(policy)).toMatchObject({ allowed: false, retryAfter: minutes(1) });
  });

  it("each policy keeps its own state, alone or with others", async () => {
    const object = env.LIMITERS.getByName("all policies");
    const bucket: Policy = {
      algorithm: "token_bucket",
      capacity: 3,
      refillRate: 1,
      per: "1h",
      name: "bucket",
    };
    const window: Policy = { algorithm: "fix_window", limit: 5, scale: "1h", name: "window", denied: "free" };
    const counting: Policy = {
      algorithm: "fix_window",
      limit: 1,
      scale: "1h",
      name: "counting",
      denied: "count",
    };
    await object.hit(bucket, 2);
    await object.hit(window, 3);
    await object.hit(counting);
    await object.hit(counting);
    expect(await object.hit([window, bucket])).toMatchObject({
      allowed: true,
      remaining: 0,
      policy: "bucket",
    });
    expect(await object.hit([bucket, window])).toMatchObject({ allowed: false, violated: ["bucket"] });
    // Denials that were counted in memory are not forgotten over other policies, nor over a mistake.
    await runInDurableObject(object, (own) => {
      expect(() => own.hit({ ...window, limit: 0 })).toThrow();
      expect(() => own.get([bucket, window], "none")).toThrow();
    });
    expect(await object.get(counting)).toBe(2);
    await evictDurableObject(object);
    expect(await object.get(window)).toBe(4);
    expect(await object.get(bucket)).toBe(0);
  });

  it("a policy whose scale changes starts unused, and finds its former state again until that ends", async () => {
    const window = (scale: "1h" | "2h"): Policy => ({ algorithm: "fix_window_per_key", limit: 2, scale });
    const object = env.LIMITERS.getByName("shapes");
    await object.hit(window("1h"), 2);
    vi.setSystemTime(start + minutes(30));
    expect(await object.hit(window("2h"), 2)).toMatchObject({ allowed: true, count: 2 });
    await evictDurableObject(object);
    expect(await object.hit(window("1h"))).toMatchObject({ allowed: false, retryAfter: minutes(30) });
    vi.setSystemTime(start + minutes(61));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    await evictDurableObject(object);
    expect(await object.hit(window("2h"))).toMatchObject({ allowed: false, retryAfter: minutes(89) });
    expect(await object.hit(window("1h"), 2)).toMatchObject({ allowed: true });
  });

  it("reading under another shape writes nothing", () =>
    onCounted("other shapes", (object, take) => {
      const bucket = (per: "1h" | "7h"): Policy => ({
        algorithm: "leaky_bucket",
        capacity: 2,
        leakRate: 1,
        per,
      });
      object.hit(bucket("1h"), 2);
      take();
      object.get(bucket("7h"));
      expect(take().rows).toBe(0);
      object.hit(bucket("7h"), 2);
      expect(take().rows).toBe(1);
      for (let count = 0; count < 9; count += 1) object.hit(bucket("7h"));
      for (let count = 0; count < 9; count += 1) object.hit(bucket("1h"));
      expect(take().rows).toBe(0);
    }));

  it("two versions that alternate admit the limit of each", async () => {
    const versions: Policy[] = [
      { algorithm: "fix_window", limit: 20, scale: "1h", name: "api" },
      { algorithm: "sliding_window", limit: 20, scale: "1h", name: "api" },
      { algorithm: "token_bucket", capacity: 20, refillRate: 1, per: "1h", name: "api" },
      { algorithm: "token_bucket", capacity: 20, refillRate: 1, per: "2h", name: "api" },
      { algorithm: "fix_window_per_key", limit: 20, scale: "2h", name: "api" },
      { algorithm: "sliding_counter", limit: 20, scale: "1h", name: "api" },
    ];
    const object = env.LIMITERS.getByName("alternating");
    const admitted = versions.map(() => 0);
    for (let round = 0; round < 30; round += 1)
      for (const [index, version] of versions.entries()) {
        const { allowed } = await object.hit(version);
        admitted[index] = (admitted[index] as number) + Number(allowed);
        if (round % 7 === 0) await evictDurableObject(object);
      }
    expect(admitted).toEqual(versions.map(() => 20));
  });

  it("a bucket flows at the faster of its own rate and the policy's, and ends by its own", async () => {
    const bucket = (refillRate: number): Policy => ({ ...policy, capacity: 3, refillRate }) as Policy;
    const object = env.LIMITERS.getByName("slower");
    await object.hit(bucket(1), 3);
    expect(await object.peek(bucket(3))).toMatchObject({ allowed: false, retryAfter: minutes(20) });
    await evictDurableObject(object);
    vi.setSystemTime(start + minutes(61));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    expect([await object.get(bucket(1)), await object.get(bucket(3))]).toEqual([1, 3]);
  });

  it("a policy may change: another limit keeps the used amount, another algorithm starts unused", async () => {
    const warned = vi.spyOn(console, "warn");
    const object = env.LIMITERS.getByName("deployed");
    const window = (limit: number): Policy => ({
      algorithm: "fix_window_per_key",
      limit,
      scale: "1h",
      name: "api",
    });
    await object.hit(window(5), 4);
    await evictDurableObject(object);
    expect(await object.get(window(9))).toBe(4);
    expect(await object.hit(window(3))).toMatchObject({ allowed: false });
    await evictDurableObject(object);
    const other: Policy = { algorithm: "leaky_bucket", capacity: 5, leakRate: 1, name: "api" };
    expect(await object.hit(other)).toMatchObject({ allowed: true, count: 1 });
    expect(await object.get(window(9))).toBe(4);
    expect(warned.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
      { event: "afresh", policies: ["api"] },
    ]);
    warned.mockRestore();
  });
});
