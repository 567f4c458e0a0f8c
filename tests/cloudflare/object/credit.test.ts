// With credit, an object writes less and decides the same; an eviction loses at most the credit.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TollgateEnv } from "../../../js/cloudflare/env.ts";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { Policy } from "../../../js/types.ts";
import { seeded, start } from "../lib.ts";

const seconds = (count: number) => count * 1_000;
const policy: Policy = { algorithm: "fix_window", limit: 10_000, scale: "1h" };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

const policies: Policy[] = [
  { algorithm: "fix_window", limit: 300, scale: "1h" },
  { algorithm: "fix_window_per_key", limit: 300, scale: "1h" },
  { algorithm: "sliding_window", limit: 300, scale: "1h" },
  { algorithm: "sliding_counter", limit: 300, scale: "1h" },
  { algorithm: "token_bucket", capacity: 300, refillRate: 1, per: "1d" },
  { algorithm: "leaky_bucket", capacity: 300, leakRate: 1, per: "1d" },
];

/** An object with credit, and how many rows it has written. */
async function withCredit(
  name: string,
  work: (object: RateLimiterObject, rows: () => number, alarm: () => number) => void | Promise<void>,
): Promise<void> {
  await runInDurableObject(env.LIMITERS.getByName(name), async (_, state) => {
    let rows = 0;
    let alarm = 0;
    const real = state.storage;
    const { kv } = real;
    const put = (key: string, value: unknown) => {
      rows += 1;
      kv.put(key, value);
    };
    const storage = {
      kv: { get: (key: string) => kv.get(key), put, delete: (key: string) => kv.delete(key) },
      setAlarm: (time: number) => {
        alarm = time;
        return real.setAlarm(time);
      },
    };
    Object.defineProperty(state, "storage", { value: storage, configurable: true });
    const own = { ...env, TOLLGATE: { credit: true } } as unknown as TollgateEnv;
    const written = () => {
      const count = rows;
      rows = 0;
      return count;
    };
    await work(new RateLimiterObject(state, own), written, () => alarm);
  });
}

const json = (policy: Policy) => JSON.stringify([policy]);

describe("credit", () => {
  it("writes one row for many hits, and decides each exactly", () =>
    withCredit("many", (object, rows) => {
      for (let count = 1; count <= 2_000; count += 1) {
        vi.setSystemTime(start + count * 10);
        expect(object.hit(policy)).toMatchObject({ allowed: true, count, remaining: 10_000 - count });
      }
      expect(rows()).toBeLessThan(20);
    }));

  it("writes every hit of a cold key, and of one near its limit", () =>
    withCredit("cold", (object, rows) => {
      for (let count = 1; count <= 20; count += 1) {
        vi.setSystemTime(start + count * seconds(16));
        object.hit(policy);
        expect(rows()).toBe(1);
      }
      for (let count = 1; count <= 15; count += 1) {
        object.hit({ ...policy, limit: 15, name: "near" });
        expect(rows()).toBe(1);
      }
    }));

  it("is written back by an alarm when the key goes quiet, and no timer keeps the object in memory", () =>
    withCredit("quiet", async (object, rows, alarm) => {
      for (let count = 0; count < 90; count += 1) object.hit(policy);
      expect(vi.getTimerCount()).toBe(0);
      expect(alarm()).toBe(start + seconds(7));
      vi.setSystemTime(start + seconds(6));
      object.hit(policy);
      rows();
      vi.setSystemTime(alarm());
      await object.alarm();
      // It is in use.
      expect([rows(), alarm()]).toEqual([0, start + seconds(14)]);
      vi.setSystemTime(alarm());
      await object.alarm();
      expect(rows()).toBe(1);
      // What is left is the alarm of the key's end.
      expect(alarm()).toBeGreaterThanOrEqual(start + seconds(600));
      expect(object.get(policy)).toBe(91);
      expect(vi.getTimerCount()).toBe(0);
    }));

  it("ends at an operator's set, reset, inc and refunds, which are written at once", () =>
    withCredit("operator", (object, rows) => {
      const acts = [
        () => object.inc(policy),
        () => object.inc(policy, -1),
        () => object.set(policy, 5),
        () => object.reset(policy),
      ];
      for (const act of acts) {
        for (let count = 0; count < 50; count += 1) object.hit(policy);
        rows();
        act();
        expect(rows()).toBe(1);
      }
    }));
});

describe("an eviction", () => {
  it.each(policies)("under $algorithm costs at most the credit, and never admits more", async (policy) => {
    const random = seeded(7);
    const object = env.LIMITERS.getByName(`evicted:${policy.algorithm}`);
    const hit = async () => {
      const answer = await object.count("hit", json(policy), 1, undefined, true);
      return String(answer).startsWith("1 ");
    };
    let allowed = 0;
    for (let round = 0; round < 30; round += 1) {
      const hits = 1 + random(25);
      for (let count = 0; count < hits; count += 1) if (await hit()) allowed += 1;
      await evictDurableObject(object);
      vi.setSystemTime(Date.now() + random(2_000));
    }
    expect(allowed).toBeLessThanOrEqual(300);
    // What was lost with the memory is charged by now, and the rest is there.
    vi.setSystemTime(Date.now() + seconds(31));
    const { remaining } = await object.peek(policy);
    expect(remaining).toBeLessThanOrEqual(300 - allowed);
    for (let count = 0; count < remaining; count += 1) expect(await hit()).toBe(true);
    expect(await hit()).toBe(false);
  });

  it("after credit was written back costs nothing", async () => {
    const object = env.LIMITERS.getByName("written back");
    for (let count = 0; count < 100; count += 1) await object.count("hit", json(policy), 1, undefined, true);
    vi.setSystemTime(start + seconds(7));
    expect(await runDurableObjectAlarm(object)).toBe(true);
    await evictDurableObject(object);
    vi.setSystemTime(start + seconds(60));
    expect(await object.get(policy)).toBe(100);
  });

  it("with leases open leaves them to their holders or to their ends", async () => {
    const object = env.LIMITERS.getByName("evicted with leases");
    const lease = async (cost: number, report: string) =>
      String(await object.lease(json(policy), cost, report, true)).split(" ");
    let id = "";
    let used = 0;
    for (let round = 0; round < 20; round += 1) {
      const answer = await lease(1, `${id},${used},40,1000`);
      const [name = "", amount = "0"] = (answer[9] ?? "").split(",");
      [id, used] = [name, Math.min(30, Number(amount))];
      if (round % 3 === 0) await evictDurableObject(object);
      vi.setSystemTime(Date.now() + 200);
    }
    // 20 hits, and 30 of each lease but the last were reported.
    const count = await object.get(policy);
    expect(count).toBeGreaterThanOrEqual(20 + 19 * 30);
    vi.setSystemTime(Date.now() + seconds(31));
    expect(await object.get(policy)).toBeGreaterThanOrEqual(20 + 20 * 30);
  });
});

describe("a lease of an object", () => {
  const object = env.LIMITERS.getByName("hostile");

  it.each([
    "",
    "x",
    ",1,2",
    ",-1,1,1000",
    ",1.5,1,1000",
    "nobody,1,1,1000",
    ",1,1,99999",
    ",1,1,0",
    ",9007199254740992,1,1000",
  ])("rejects the report %j and changes nothing", async (report) => {
    const before = await object.get(policy);
    const answer = await object.lease(json(policy), 1, report);
    expect(answer).toMatchObject({ code: expect.stringMatching(/^invalid_/), message: expect.any(String) });
    expect(await object.get(policy)).toBe(before);
  });

  it("grants nothing where denied hits count, nor for concurrency", async () => {
    const counting = json({ ...policy, denied: "count" });
    for (let count = 0; count < 5; count += 1)
      expect(String(await object.lease(counting, 1, ",0,100,1000")).split(" ")).toHaveLength(9);
    const answer = await object.lease(json({ algorithm: "concurrency", limit: 5 }), 1, ",0,9,1000");
    expect(answer).toMatchObject({ code: "reserve_only" });
  });

  it("charges a report of more than there is, and none of an unknown lease", async () => {
    const own = env.LIMITERS.getByName("reports");
    const first = String(await own.lease(json(policy), 0, ",0,10,1000")).split(" ");
    const [id] = (first[9] ?? "").split(",");
    expect(await own.get(policy)).toBe(10);
    await own.lease(json(policy), 0, `${id},25,0,1000`);
    expect(await own.get(policy)).toBe(25);
    await own.lease(json(policy), 0, `${id},25,0,1000`);
    expect(await own.get(policy)).toBe(25);
  });
});
