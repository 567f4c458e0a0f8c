// The object's class in Rust works without its TypeScript: JSON over fetch, and its alarm.

import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { call } from "../../../js/cloudflare/wasm.ts";
import type { Policy } from "../../../js/types.ts";
import { start } from "../lib.ts";

/** The object as a Worker in Rust exports it: no class of TypeScript's around it. */
const inRust = <Result>(
  name: string,
  work: (
    object: {
      fetch(request: Request): Promise<Response>;
      alarm(): Promise<Response>;
    },
    storage: DurableObjectStorage,
    id: string,
  ) => Promise<Result>,
) =>
  runInDurableObject(env.LIMITERS.getByName(name), (_, state) =>
    work(
      call((rust) => new rust.RateLimiterObject(state, env)),
      state.storage,
      state.id.toString(),
    ),
  );

const policy: Policy = { algorithm: "fix_window_per_key", limit: 2, scale: "1h", name: "api" };
const hit = () =>
  new Request("https://tollgate.invalid/", {
    method: "POST",
    body: JSON.stringify({ operation: "hit", policies: policy }),
  });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

it("reads the time by itself, and returns JSON", () =>
  inRust("rust: hits", async (object) => {
    const response = await object.fetch(hit());
    expect(response.headers.get("Content-Type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ decision: { allowed: true, resetAfter: 3_600_000 } });
    vi.setSystemTime(start + 1_000);
    expect(await (await object.fetch(hit())).json()).toMatchObject({ decision: { resetAfter: 3_599_000 } });
    expect(await (await object.fetch(hit())).json()).toMatchObject({ decision: { allowed: false } });
  }));

it("takes exceptions as Limits sends them, and keeps them by its alarm", () =>
  inRust("rust: exceptions", async (object, storage) => {
    const ask = async (question: object) => {
      const body = JSON.stringify({ policies: policy, ...question });
      return (await object.fetch(new Request("https://tollgate.invalid/", { method: "POST", body }))).json();
    };
    const exceptions = () => ask({ operation: "exceptions" });
    expect(await exceptions()).toEqual({ excepted: { exception: null, until: 0 } });
    const until = start + 7_200_000;
    const exception = { api: { limit: 9 } };
    expect(await ask({ operation: "except", exception, until })).toEqual({ number: until });
    expect(await exceptions()).toEqual({ excepted: { exception, until } });
    expect(await (await object.fetch(hit())).json()).toMatchObject({ decision: { limit: 9, remaining: 8 } });
    vi.setSystemTime(until - 1);
    await object.alarm();
    expect(await exceptions()).toEqual({ excepted: { exception, until } });
    expect(await ask({ operation: "except", exception: { deny: true }, for: 1_000 })).toEqual({
      number: until + 999,
    });
    expect(await (await object.fetch(hit())).json()).toMatchObject({ decision: { reason: "denied" } });
    for (const wrong of [{ exception }, { exception, for: "soon" }, { exception: { deny: 1 }, for: 1 }])
      expect(await ask({ operation: "except", ...wrong })).toMatchObject({
        error: { code: "invalid_option" },
      });
    expect(await ask({ operation: "except" })).toEqual({ number: until + 999 });
    expect(await exceptions()).toEqual({ excepted: { exception: null, until: 0 } });
    vi.setSystemTime(until + 999);
    await object.alarm();
    expect(await storage.list()).toEqual(new Map());
  }));

it("keeps a key that is in use when its alarm rings, and deletes one that has ended", () =>
  inRust("rust: alarm", async (object, storage, id) => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    await object.fetch(hit());
    vi.setSystemTime(start + 1_800_000);
    await object.alarm();
    expect([...storage.kv.list()]).toHaveLength(1);
    expect(await storage.getAlarm()).toBe(start + 3_600_000);
    expect(lines).not.toHaveBeenCalled();

    vi.setSystemTime(start + 3_600_000);
    await object.alarm();
    expect([...storage.kv.list()]).toEqual([]);
    expect(lines.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
      {
        event: "expired",
        object: id,
        policy: "api",
        algorithm: "fix_window_per_key",
        count: 1,
        expiredAt: start + 3_600_000,
      },
    ]);
    lines.mockRestore();
    expect(await (await object.fetch(hit())).json()).toMatchObject({ decision: { allowed: true, count: 1 } });
  }));
