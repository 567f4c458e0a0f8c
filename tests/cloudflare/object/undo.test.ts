// A hit of a decision over several keys is charged at once, and can be undone, once.

import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../../js/cloudflare/index.ts";
import { start, token, workerWith } from "../lib.ts";

const window = { algorithm: "fix_window", limit: 10, scale: "1h" } as const;
const json = JSON.stringify({ ...window, denied: "free" });

const objectOf = (name: string) => env.LIMITERS.getByName(`undo ${name}`);
const at = (milliseconds: number) => vi.setSystemTime(start + milliseconds);
const idOf = (text: unknown) => (text as string).slice((text as string).lastIndexOf(" ") + 1);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a hit that can be undone", () => {
  it("is charged with a row, and given back with a row, once", () =>
    runInDurableObject(objectOf("once"), (object, { storage }) => {
      const put = vi.spyOn(storage.kv, "put");
      const hit = (cost: number) => object.hitUndoable(json, cost) as string;
      const first = hit(6);
      expect(first).toMatch(/^1 6 10 4 0 3600000 0 0 3600000 [0-9a-f]{16}\.\w+\.0$/);
      expect(object.get(window)).toBe(6);
      // What was just charged may be undone, so the denial is not certain, and writes no row.
      expect(hit(5)).toMatch(/^2 6 10 4 \d+ 3600000 0 1 \d+$/);
      expect(put).toHaveBeenCalledTimes(1);
      const second = hit(2);
      expect(object.undo(json, 6, idOf(first))).toBe("6");
      expect(put).toHaveBeenCalledTimes(3);
      expect(object.undo(json, 6, idOf(first))).toBe("0");
      expect(put).toHaveBeenCalledTimes(3);
      expect([object.get(window), object.expiresAt(window)]).toEqual([2, start + 3_600_000]);
      hit(8);
      at(1_000);
      expect(hit(1)).toMatch(/^0 10 10 0 /);
      at(10_001);
      expect(object.undo(json, 2, idOf(second))).toBe("0");
      expect(object.get(window)).toBe(10);
      // Its mark neither denies nor counts as a reservation.
      expect(object.reserve(window, 1).decision.reason).toBeUndefined();
      expect(object.undo(json, 1, "lost")).toMatchObject({ code: "invalid_option" });
    }));

  it("is given back once also if the object is evicted in between, or its policies change", async () => {
    const object = objectOf("evicted");
    const first = idOf(await object.hitUndoable(json, 3));
    await object.hitUndoable(json, 4);
    await evictDurableObject(object);
    expect(await object.undo(json, 3, first)).toBe("3");
    await evictDurableObject(object);
    expect(await object.undo(json, 3, first)).toBe("0");
    const daily = { ...window, scale: "1d" } as const;
    await object.hit(daily, 1);
    expect(await object.undo(json, 3, first)).toBe("0");
    expect([await object.get(window), await object.get(daily)]).toEqual([4, 1]);
  });

  it("over HTTP says so, and is undone by the item", async () => {
    const { fetch } = workerWith({ policies: { api: window, tokens: { ...window, limit: 100 } } });
    const call = async (operation: string, item: unknown) => {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const body = JSON.stringify(item);
      return (await fetch(`/_tollgate/v1/${operation}`, { method: "POST", headers, body })).json();
    };
    const own = { policy: ["api", "tokens"], key: "undo over HTTP", cost: { tokens: 40 } };
    const made = (await call("hit", { ...own, undoable: true })) as { id: string };
    expect(made).toEqual({
      decision: expect.objectContaining({ allowed: true }),
      id: expect.stringMatching(/^[0-9a-f]{16}\.\w+\.0$/),
    });
    const count = (of: string) => call("get", { policy: own.policy, key: own.key, of });
    expect([await count("api"), await count("tokens")]).toEqual([{ count: 1 }, { count: 40 }]);
    const { id } = made;
    expect(await call("undo", [{ ...own, id }])).toEqual([{ undone: true }]);
    expect(await call("undo", { ...own, id })).toEqual({ undone: false });
    expect([await count("api"), await count("tokens")]).toEqual([{ count: 0 }, { count: 0 }]);
    const never = { ...own, cost: 101, undoable: true };
    expect(await call("hit", never)).toMatchObject({ decision: { allowed: false }, id: null });
  });

  it("by RPC has an id, and is undone by it", async () => {
    const worker = workerWith({ policies: { api: window, tokens: { ...window, limit: 100 } } });
    const bound = new Tollgate({} as ExecutionContext, worker.env);
    const [policy, key, cost] = [["api", "tokens"], "undo by RPC", { tokens: 40 }];
    const { id, ...made } = await bound.hitUndoable(policy, key, cost);
    expect(made).toEqual({ allowed: true, decision: expect.objectContaining({ allowed: true }) });
    expect(await bound.get(policy, key, "tokens")).toBe(40);
    expect([await bound.undo(policy, key, id, cost), await bound.undo(policy, key, id, cost)]).toEqual([
      true,
      false,
    ]);
    expect([await bound.get(policy, key, "api"), await bound.get(policy, key, "tokens")]).toEqual([0, 0]);
    expect(await bound.hitUndoable("api", key, 11)).toMatchObject({ allowed: false, id: "" });
    await expect(bound.undo("api", key, "lost")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(bound.undo("api", key, 7 as never)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(bound.undo("api", "", id)).rejects.toMatchObject({ code: "invalid_key" });
    await expect(bound.hitUndoable("api", key, -1)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(bound.hitUndoable("api", key, Number.NaN)).rejects.toMatchObject({ code: "invalid_cost" });
  });
});
