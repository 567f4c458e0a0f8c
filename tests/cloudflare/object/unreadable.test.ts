// A stored row that cannot be read is an error once, is set aside, and the limit holds after it.

import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { Policy } from "../../../js/types.ts";
import { logged, someone, start, statuses, token, workerWith } from "../lib.ts";

const policy: Policy = { algorithm: "fix_window", limit: 3, scale: "1d" };
const week = 7 * 86_400_000;

/** Rows that are not states: no bytes, a later format, lengths that lie, no bytes at all, another type. */
const garbage: Record<string, unknown> = {
  "no bytes": new Uint8Array(),
  "a later format": new Uint8Array([9, 1, 2, 3]),
  "a length that is wrong": new Uint8Array([6, 0, 255, 255, 255, 255, 15]),
  "bytes at random": Uint8Array.from({ length: 200 }, (_, at) => (at * 37 + 6) % 256),
  "a text": "states",
  "an object": { states: [] },
};

const write = (object: DurableObjectStub<RateLimiterObject>, row: unknown) =>
  runInDurableObject(object, (_, { storage }) => storage.kv.put("states", row));

const stored = (object: DurableObjectStub<RateLimiterObject>) =>
  runInDurableObject(object, (_, { storage }) => Object.fromEntries(storage.kv.list()));

let errors: ReturnType<typeof vi.spyOn>;
const lines = () => errors.mock.calls.map(([line]: unknown[]) => JSON.parse(String(line)));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
  errors = vi.spyOn(console, "error").mockImplementation(() => {});
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(Object.entries(garbage))("a row that is %s", (name, row) => {
  it("is an error once, is logged once and set aside, and the limit holds after it", async () => {
    const object = env.LIMITERS.getByName(`garbage: ${name}`);
    await write(object, row);
    const code = name === "a later format" ? "unsupported_version" : "invalid_state";
    expect(await object.count("hit", JSON.stringify(policy), 1)).toMatchObject({ code });
    expect(lines()).toMatchObject([
      {
        event: "unreadable",
        object: expect.stringMatching(/^[0-9a-f]{64}$/),
        code,
        message: expect.stringMatching(/./),
      },
    ]);
    expect(await stored(object)).toEqual({ unreadable: row });
    for (const allowed of [true, true, true, false, false])
      expect(await object.hit(policy)).toMatchObject({ allowed });
    expect(lines()).toHaveLength(1);
  });
});

it("is logged with its bytes", async () => {
  const object = env.LIMITERS.getByName("garbage: logged");
  await write(object, new Uint8Array([9, 255, 0, 16]));
  await object.count("get", JSON.stringify(policy), 0);
  expect(lines()).toMatchObject([{ bytes: 4, row: "09ff0010" }]);
});

it("is also one whose numbers are not those of the algorithm", async () => {
  const object = env.LIMITERS.getByName("garbage: numbers");
  await object.hit(policy);
  const { states } = (await stored(object)) as { states: Uint8Array };
  // The count of the window becomes negative, in zigzag. After it comes the count for the log.
  const wrong = states.slice();
  const at = wrong.length - 2;
  expect(wrong[at]).toBe(2);
  wrong[at] = 1;
  await runInDurableObject(object, (_, { storage }) => storage.kv.put("states", wrong));
  await runInDurableObject(object, (_, state) => {
    const fresh = new RateLimiterObject(state, env);
    expect(() => fresh.hit(policy)).toThrow(expect.objectContaining({ code: "invalid_state" }));
    expect(fresh.hit(policy)).toMatchObject({ allowed: true, count: 1 });
  });
  expect(lines()).toHaveLength(1);
});

it("is set aside by the alarm, too, and deleted a week later", async () => {
  const object = env.LIMITERS.getByName("garbage: alarm");
  await runInDurableObject(object, async (_, { storage }) => {
    storage.kv.put("states", new Uint8Array([9]));
    await storage.setAlarm(start + 1);
  });
  expect(await runDurableObjectAlarm(object)).toBe(true);
  expect(lines()).toHaveLength(1);
  expect(await stored(object)).toEqual({ unreadable: new Uint8Array([9]) });
  await runInDurableObject(object, async (_, { storage }) => {
    expect(await storage.getAlarm()).toBe(start + week);
  });
  vi.setSystemTime(start + week);
  expect(await runDurableObjectAlarm(object)).toBe(true);
  expect(await stored(object)).toEqual({});
  expect(lines()).toHaveLength(1);
});

describe("in front of it", () => {
  const config = (onError: "allow" | "deny") => ({
    upstream: "ORIGIN",
    onError,
    policies: { few: { algorithm: "fix_window", limit: 2, scale: "1d" } },
    rules: [{ path: "/*", key: "ip", policies: "few" }],
  });

  const through = async (onError: "allow" | "deny") => {
    logged();
    const { fetch } = workerWith(config(onError));
    const headers = someone();
    const address = headers["CF-Connecting-IP"] as string;
    await write(env.LIMITERS.getByName(`/ip=${address.length}:${address}`), new Uint8Array([9]));
    return statuses(5, () => fetch("/", { headers }));
  };

  it("the gateway allows one request under onError allow, then limits", async () => {
    expect(await through("allow")).toEqual([200, 200, 200, 429, 429]);
  });

  it("the gateway denies one request under onError deny, then limits", async () => {
    expect(await through("deny")).toEqual([503, 200, 200, 429, 429]);
  });

  it("the API says that the object failed", async () => {
    const { fetch } = workerWith({ policies: { few: policy } });
    await write(env.LIMITERS.getByName("/key=1:a"), new Uint8Array([9]));
    const hit = () =>
      fetch("/_tollgate/v1/hit", {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ policy: "few", key: "a" }),
      });
    const failed = await hit();
    expect([failed.status, await failed.json()]).toMatchObject([503, { code: "unsupported_version" }]);
    expect((await hit()).status).toBe(200);
  });
});
