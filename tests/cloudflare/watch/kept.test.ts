// What the watch object keeps is bounded, forgets what is old, and survives a restart but for a minute.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchName } from "../../../js/cloudflare/object/ask.ts";
import { Book, type View } from "../../../js/cloudflare/watch/book.ts";
import type { Denial, Report } from "../../../js/cloudflare/watch/report.ts";
import { Ring } from "../../../js/cloudflare/watch/ring.ts";
import { WatchObject } from "../../../js/cloudflare/watch/watch-object.ts";
import { logged, seeded, start } from "../lib.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

const objectOf = (key: string) => `#${key}`.slice(0, 65);

const denial = (key: string, at: number, more: Partial<Denial> = {}): Denial => ({
  key,
  object: objectOf(key),
  at,
  first: at,
  times: 1,
  via: "gateway",
  rule: "/*",
  mode: "enforce",
  policies: ["login"],
  policy: "login",
  count: 5,
  limit: 5,
  remaining: 0,
  cost: 1,
  retryAfter: 1_000,
  banned: false,
  ...more,
});

const report = (keys: readonly string[], at: number, rule = "/*"): Report => ({
  counts: [
    {
      via: "gateway",
      rule,
      policies: ["login"],
      mode: "enforce",
      allowed: 1,
      denied: keys.length,
      errors: 0,
    },
  ],
  top: keys.map((key) => ({ key, object: objectOf(key), denied: 1, error: 0 })),
  denials: keys.map((key) => denial(key, at, { rule })),
});

describe("a ring", () => {
  it("counts as a list of all times does, also when the clock goes back", () => {
    const random = seeded(7);
    for (let round = 0; round < 200; round += 1) {
      const length = 1 + random(8);
      let ring = new Ring(10, length);
      const all = new Map<number, number>();
      let now = start;
      let newest = 0;
      for (let time = 0; time < 60; time += 1) {
        now += random(40) - (random(10) === 0 ? 50 : 0);
        newest = Math.max(newest, Math.floor(now / 10));
        if (random(10) < 7) {
          ring.add(time, now);
          all.set(newest, (all.get(newest) ?? 0) + time);
        }
        if (random(10) === 0) ring = new Ring(10, length, JSON.parse(JSON.stringify(ring.stored())));
        const expected = Array.from({ length }, (_, at) => all.get(newest - length + 1 + at) ?? 0);
        expect(ring.counts(now)).toEqual(expected);
      }
    }
  });
});

describe("the book", () => {
  it("joins denials that follow each other, and keeps the last twenty stretches of a key for a day", () => {
    const book = new Book();
    for (let time = 0; time < 100; time += 1) {
      const at = start + time * 5_000;
      book.add({ counts: [], top: [], denials: [denial("a", at, { times: 3, count: time })] }, at);
    }
    const now = start + 500_000;
    expect(book.denialsOf("#a", now)).toMatchObject([
      { first: start, at: start + 495_000, times: 300, count: 99 },
    ]);
    for (let time = 0; time < 30; time += 1) {
      const at = now + time * 2 * minute;
      book.add({ counts: [], top: [], denials: [denial("a", at)] }, at);
    }
    const kept = book.denialsOf("#a", now + 60 * minute);
    expect([kept.length, kept[0]?.at]).toEqual([20, now + 58 * minute]);
    const rest = book.denialsOf("#a", now + 58 * minute + day - 1);
    expect(rest).toHaveLength(1);
    expect(book.denialsOf("#a", now + 58 * minute + day)).toEqual([]);
  });

  it("is bounded, whatever is reported", () => {
    const book = new Book();
    for (let time = 0; time < 200; time += 1) {
      const at = start + time * 5_000;
      const keys = Array.from({ length: 100 }, (_, key) => `${time}-${key}`.padEnd(500, "x"));
      book.add(report([...keys, "always"], at, `/${time}`.padEnd(300, "y")), at);
      for (let more = 0; more < 3; more += 1) book.add(report([], at, `/${time}/${more}`), at);
    }
    const now = start + 1_000_000;
    const view = book.view(now);
    expect([view.rules.length, view.top.length, view.denials.length]).toEqual([201, 50, 50]);
    expect(view.rules.find(({ via }) => via === "other")).toBeDefined();
    expect(JSON.stringify(view).length).toBeLessThan(400_000);
    expect(view.top[0]).toMatchObject({ key: "always" });
    const { denied = 0, error = 0 } = view.top[0] ?? {};
    expect(denied - error).toBeLessThanOrEqual(200);
    expect(denied).toBeGreaterThanOrEqual(200);
    const json = book.stored(now) as string;
    expect((JSON.parse(json) as { denials: object[] }).denials.length).toBeLessThanOrEqual(4_000);
    expect(json.length).toBeLessThan(5_000_000);
    expect(new Book(json).view(now)).toEqual(view);
  });

  it("forgets counts after a day and top keys after an hour", () => {
    const book = new Book();
    book.add(report(["a"], start), start);
    expect(book.view(start + 50 * minute).top).toHaveLength(1);
    expect(book.view(start + 60 * minute).top).toEqual([]);
    expect(book.view(start + day - 1).rules).toHaveLength(1);
    expect(book.view(start + day).rules).toEqual([]);
    expect(book.stored(start + day)).toBeUndefined();
    expect(new Book().view(start)).toMatchObject({ since: null, rules: [], top: [], denials: [] });
  });
});

describe("the watch object", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: start });
  });

  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    await runInDurableObject(object(), (_, { storage }) => storage.deleteAll());
    await evictDurableObject(object());
  });

  const object = () => env.LIMITERS.getByName(watchName);
  const send = (keys: readonly string[]) =>
    object().watch(JSON.stringify({ report: report(keys, Date.now()) }));
  const view = async () => JSON.parse(await object().watch(`{"view":true}`)) as View;
  const rows = () => runInDurableObject(object(), (_, { storage }) => [...storage.kv.list()].length);
  const alarm = () =>
    runInDurableObject(object(), async (_, { storage }) => ((await storage.getAlarm()) ?? start) - start);

  it("writes a minute after a report, and shows the same after a restart", async () => {
    await send(["a"]);
    await send(["a", "b"]);
    expect([await rows(), await alarm()]).toEqual([0, minute]);
    vi.setSystemTime(start + minute);
    await runDurableObjectAlarm(object());
    expect([await rows(), await alarm()]).toEqual([1, 2 * minute]);
    const before = await view();
    expect(before.rules).toMatchObject([{ rule: "/*" }]);
    await send(["c"]);
    await evictDurableObject(object());
    expect(await view(), "the last minute is lost").toEqual(before);
    expect(await alarm()).toBe(2 * minute);
  });

  it("writes nothing while nothing is reported, and deletes everything a day later", async () => {
    await send(["a"]);
    vi.setSystemTime(start + minute);
    await runDurableObjectAlarm(object());
    vi.setSystemTime(start + 2 * minute);
    await runDurableObjectAlarm(object());
    expect(await alarm()).toBe(2 * minute + day);
    vi.setSystemTime(start + 10 * minute);
    await send(["a"]);
    expect(await alarm(), "a report brings the save forward").toBe(11 * minute);
    await evictDurableObject(object());
    vi.setSystemTime(start + 11 * minute);
    await runDurableObjectAlarm(object());
    expect(await alarm()).toBe(11 * minute + day);
    vi.setSystemTime(start + 11 * minute + day);
    await runDurableObjectAlarm(object());
    expect([await rows(), await alarm()]).toEqual([0, 0]);
  });

  it("counts the rows that it writes: one for a save and one for its alarm", () =>
    runInDurableObject(object(), async (_, { storage }) => {
      let written = 0;
      const kv = {
        get: (key: string) => storage.kv.get(key),
        put: (key: string, value: unknown) => {
          written += 1;
          storage.kv.put(key, value);
        },
        delete: (key: string) => {
          written += 1;
          return storage.kv.delete(key);
        },
      };
      const setAlarm = async () => {
        written += 1;
      };
      const counted = { kv, setAlarm, getAlarm: async () => null } as unknown as DurableObjectStorage;
      const watch = new WatchObject(counted);
      for (let time = 0; time < 60 * 12; time += 1) {
        const now = start + time * 5_000;
        if (time % 12 === 0 && time > 0) await watch.ring(now);
        await watch.ask(JSON.stringify({ report: report(["a", "b"], now) }), now);
      }
      expect(written).toBe(1 + 59 * 2);
    }));

  it("keeps more than a row can have", async () => {
    const keys = (round: number) =>
      Array.from({ length: 200 }, (_, key) => `${round}-${key}`.padEnd(500, "x"));
    for (let round = 0; round < 15; round += 1) await send(keys(round));
    await runDurableObjectAlarm(object());
    expect(await rows()).toBeGreaterThan(2);
    const before = await view();
    await evictDurableObject(object());
    expect(await view()).toEqual(before);
    vi.setSystemTime(start + day + minute);
    await send(["a"]);
    await runDurableObjectAlarm(object());
    expect(await rows()).toBe(1);
  });

  it("begins afresh if what is stored cannot be read", async () => {
    const log = logged();
    await runInDurableObject(object(), (_, { storage }) => storage.kv.put("watch:0", "{"));
    expect((await view()).rules).toEqual([]);
    expect(log.lines("unreadable")).toMatchObject([{ via: "watch" }]);
    await send(["a"]);
    expect((await view()).rules).toHaveLength(1);
  });
});
