// Each denial and each error is one log line and one data point, whichever way it came in.

import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../../js/cloudflare/index.ts";
import type { Policy } from "../../../js/types.ts";
import { logged, start, token, workerWith } from "../lib.ts";

const policies = {
  one: { algorithm: "fix_window", limit: 1, scale: "1h" },
  nine: { algorithm: "fix_window", limit: 9, scale: "1h" },
};
const hash = expect.stringMatching(/^[0-9a-f]{24}$/);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function measured(more: Record<string, unknown> = {}) {
  const points: AnalyticsEngineDataPoint[] = [];
  const TOLLGATE_METRICS = { writeDataPoint: (point: AnalyticsEngineDataPoint) => points.push(point) };
  return { points, ...workerWith({ policies }, { TOLLGATE_METRICS, ...more }) };
}

const post = (worker: ReturnType<typeof measured>, operation: string, body: unknown) =>
  worker.fetch(`/_tollgate/v1/${operation}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

const failing = {
  LIMITERS: { getByName: () => ({ count: () => Promise.reject(new Error("broken")) }) },
};

describe("one line and one data point for a denial", () => {
  it("through the HTTP API, for each item of a batch", async () => {
    const log = logged();
    const worker = measured();
    const item = { policy: ["nine", "one"], key: "log:api" };
    await post(worker, "hit", [item, item, { policy: "one", key: "log:other", cost: 2 }]);
    await post(worker, "peek", { ...item, cost: 3 });
    // All items are asked at once, so that either may be answered first.
    const lines = log.lines("denied").toSorted((one, other) => one.cost - other.cost);
    expect(lines).toEqual([
      { event: "denied", via: "api", operation: "hit", key: hash, cost: 1, policies: ["one"] },
      { event: "denied", via: "api", operation: "hit", key: hash, cost: 2, policies: ["one"] },
    ]);
    const [first, second] = lines;
    expect(first.key).not.toBe(second.key);
    const cost = ({ doubles }: AnalyticsEngineDataPoint) => doubles?.[0] ?? 0;
    expect(worker.points.toSorted((one, other) => cost(one) - cost(other))).toEqual([
      { indexes: [first.key], blobs: ["denied", first.key, "one", "api"], doubles: [1] },
      { indexes: [second.key], blobs: ["denied", second.key, "one", "api"], doubles: [2] },
    ]);
  });

  it("through the entrypoint", async () => {
    const log = logged();
    const bound = exports.Tollgate;
    await bound.hit("login", "log:rpc", 5);
    expect(log.text()).toBe("");
    await bound.hit("login", "log:rpc");
    await bound.peek("login", "log:rpc");
    expect(log.lines("denied")).toMatchObject([{ via: "rpc", policies: ["login"], cost: 1 }]);
  });

  it("on the object itself, which names its key as the Worker does", async () => {
    const log = logged();
    const policy: Policy = { algorithm: "fix_window", limit: 1, scale: "1h", name: "own" };
    const object = env.LIMITERS.getByName("log:object");
    await object.hit(policy, 2);
    await object.peek(policy, 2);
    expect(log.lines("denied")).toEqual([
      { event: "denied", via: "object", key: hash, policies: ["own"], cost: 2 },
    ]);
  });

  it("through the demo", async () => {
    const log = logged();
    const { fetch } = measured();
    for (let count = 0; count < 12; count += 1)
      await fetch("/demo/hit", { headers: { "CF-Connecting-IP": "203.0.113.200" } });
    expect(log.lines("denied")).toMatchObject([{ via: "demo" }, { via: "demo" }]);
  });
});

describe("one line and one data point for an error", () => {
  it("through the HTTP API", async () => {
    const log = logged();
    const worker = measured(failing);
    const response = await post(worker, "get", { policy: "one", key: "a" });
    expect([response.status, response.headers.get("Retry-After")]).toEqual([503, "1"]);
    expect(log.lines("error")).toMatchObject([
      {
        via: "api",
        operation: "get",
        failure: "failed",
        cause: "Error: broken",
        policies: ["one"],
        key: hash,
      },
    ]);
    expect(worker.points).toMatchObject([{ blobs: ["error", hash, "one", "api"] }]);
  });

  it("through the entrypoint, which throws a typed error", async () => {
    const log = logged();
    const worker = measured(failing);
    const context = {} as ExecutionContext;
    const bound = new Tollgate(context, worker.env);
    await expect(bound.hit("one", "a")).rejects.toMatchObject({ name: "TollgateError", code: "unanswered" });
    expect(log.lines("error")).toMatchObject([{ via: "rpc", operation: "hit", failure: "failed" }]);
    expect(worker.points).toHaveLength(1);
  });

  it("through the demo", async () => {
    const log = logged();
    const response = await measured(failing).fetch("/demo/hit");
    expect(response.status).toBe(503);
    expect(log.lines("error")).toMatchObject([{ via: "demo", failure: "failed" }]);
  });
});
