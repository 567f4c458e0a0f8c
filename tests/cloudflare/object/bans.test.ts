// A banned key in an object: by its denials, by hand, after evictions, with credit, and at no cost to the row.

import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TollgateEnv } from "../../../js/cloudflare/env.ts";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { Policy } from "../../../js/types.ts";
import { start } from "../lib.ts";

const hour = 3_600_000;
const policies: Policy[] = [
  { algorithm: "fix_window", limit: 2, scale: "1d" },
  { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

const objectOf = (name: string) => env.LIMITERS.getByName(`bans:${name}`);

/** Runs `work` on an object of its own with or without credit. `rows` returns how many rows it wrote since the last call. */
async function counting(
  name: string,
  credit: boolean,
  work: (object: RateLimiterObject, rows: () => number) => void | Promise<void>,
): Promise<void> {
  await runInDurableObject(objectOf(name), async (_, state) => {
    let rows = 0;
    const real = state.storage;
    const put = (key: string, value: unknown) => {
      rows += 1;
      real.kv.put(key, value);
    };
    const kv = {
      get: (key: string) => real.kv.get(key),
      put,
      delete: (key: string) => real.kv.delete(key),
    };
    const storage = { kv, setAlarm: (time: number) => real.setAlarm(time) };
    Object.defineProperty(state, "storage", { value: storage, configurable: true });
    const own = { ...env, TOLLGATE: { credit } } as unknown as TollgateEnv;
    await work(new RateLimiterObject(state, own), () => {
      const count = rows;
      rows = 0;
      return count;
    });
  });
}

describe("an object with a ban", () => {
  it("counts each of a thousand parallel denials once", async () => {
    const many: Policy[] = [
      { algorithm: "fix_window", limit: 100, scale: "1d" },
      { algorithm: "ban", after: 1_000, scale: "10m", for: "1h" },
    ];
    const hits = await Promise.all(Array.from({ length: 1_000 }, () => objectOf("parallel").hit(many)));
    expect(hits.filter(({ allowed }) => allowed).length).toBe(100);
    expect(hits.filter(({ reason }) => reason === "banned").length).toBe(0);
    expect(await objectOf("parallel").get(many, "ban")).toBe(900);
  });

  it("counts no denial that open reservations alone cause", async () => {
    const object = objectOf("at once");
    const all = await Promise.all(Array.from({ length: 20 }, () => object.reserve(policies)));
    const reasons = all.filter(({ allowed }) => !allowed).map(({ decision }) => decision.reason);
    expect(reasons).toEqual(Array.from({ length: 18 }, () => "reserved"));
    expect(await object.get(policies, "ban")).toBe(0);
    for (const { id } of all) if (id) await object.cancel(policies, id);
    expect((await object.hit(policies, 2)).allowed).toBe(true);
    expect((await object.hit(policies)).reason).toBe(undefined);
    expect(await object.get(policies, "ban")).toBe(1);
  });

  it("keeps what it counted, and the ban, when it is evicted", async () => {
    const object = objectOf("evicted");
    for (let count = 1; count <= 2; count += 1) expect((await object.hit(policies)).allowed).toBe(true);
    for (let count = 1; count <= 2; count += 1) {
      expect((await object.hit(policies)).reason).toBe(undefined);
      await evictDurableObject(object);
    }
    expect(await object.get(policies, "ban")).toBe(2);
    const banned = await object.hit(policies);
    expect(banned).toMatchObject({
      reason: "banned",
      policy: "ban",
      violated: ["ban"],
      remaining: 0,
      // The ban ends after an hour, but nothing is left of the day then.
      moreAfter: 24 * hour,
    });
    await evictDurableObject(object);
    vi.setSystemTime(start + hour - 1);
    expect(await object.peek(policies)).toMatchObject({ reason: "banned", moreAfter: 23 * hour + 1 });
    vi.setSystemTime(start + hour);
    expect((await object.hit(policies)).reason).toBe(undefined);
  });

  it.each([false, true])(
    "writes each violation, and nothing for a flood on a banned key: credit %s",
    (credit) =>
      counting(`rows:${credit}`, credit, (object, rows) => {
        for (let count = 1; count <= 2; count += 1) object.hit(policies);
        rows();
        for (let count = 1; count <= 3; count += 1) {
          object.hit(policies);
          expect(rows()).toBe(1);
        }
        for (let count = 1; count <= 1_000; count += 1) expect(object.hit(policies).reason).toBe("banned");
        expect(rows()).toBe(0);
      }),
  );

  it("is banned by hand, and freed", async () => {
    const object = objectOf("hand");
    expect(await object.ban(policies, "2h")).toBe(start + 2 * hour);
    expect(await object.hit(policies)).toMatchObject({ reason: "banned", retryAfter: 2 * hour });
    expect(await object.ban(policies, "1m")).toBe(start + 60_000);
    expect(await object.unban(policies)).toBe(true);
    expect(await object.unban(policies)).toBe(false);
    expect((await object.hit(policies)).allowed).toBe(true);
    await runInDurableObject(object, (own: RateLimiterObject) => {
      expect(() => own.ban(policies[0] as Policy, "1h")).toThrow("this limiter has no ban");
      expect(() => own.ban(policies, "soon" as never)).toThrow("for");
      expect(() => own.inc(policies, 1, "ban")).toThrow('"ban" is a ban, which inc cannot change');
    });
  });

  it("settles reservations during a ban, and denies new ones", async () => {
    const object = objectOf("reserved");
    const { id } = await object.reserve(policies, 2);
    await object.ban(policies, "1h");
    expect((await object.reserve(policies)).decision.reason).toBe("banned");
    expect(await object.settle(policies, id, 1)).toBe("settled");
    expect(await object.get(policies, "fix_window")).toBe(1);
    expect(await object.get(policies, "ban")).toBe(0);
  });

  it("rejects a cost that names it, and charges nothing", async () => {
    await runInDurableObject(objectOf("cost"), (object: RateLimiterObject) => {
      const cost = { ban: 2 };
      const message = '"ban" is a ban, which a cost cannot change; use ban or unban; see docs/bans.md';
      for (const work of [() => object.hit(policies, cost), () => object.reserve(policies, cost)])
        expect(work).toThrow(expect.objectContaining({ code: "ban_only", message }));
      expect(object.get(policies, "fix_window")).toBe(0);
    });
  });

  it("finds its ban again after a deploy without it", async () => {
    const object = objectOf("deploy");
    await object.ban(policies, "1h");
    expect((await object.hit(policies[0] as Policy)).allowed).toBe(true);
    await evictDurableObject(object);
    const changed = [policies[0], { algorithm: "ban", after: 9, scale: "1d", for: "1m" }] as Policy[];
    expect((await object.hit(changed)).retryAfter).toBe(hour);
  });
});
