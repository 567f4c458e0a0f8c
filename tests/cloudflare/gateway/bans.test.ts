// Bans through the gateway, the HTTP API and RPC: a banned visitor gets a 429 that says so, and an operator lifts it.

import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { logged, someone, start, statuses, token, workerWith } from "../lib.ts";

const policies = {
  pages: { algorithm: "fix_window", limit: 2, scale: "1d" },
  scraper: { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
  users: { algorithm: "fix_window", limit: 99, scale: "1d" },
};
const rule = { path: "/*", key: ["ip"], policies: ["pages", "scraper"] };
const config = { upstream: "ORIGIN", policies, rules: [rule] };

let log: ReturnType<typeof logged>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
  log = logged();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("the gateway", () => {
  it("bans a visitor after some denials, and says so", async () => {
    const { fetch, reached } = workerWith(config);
    const headers = someone();
    expect(await statuses(4, () => fetch("/a", { headers }))).toEqual([200, 200, 429, 429]);
    const banned = await fetch("/a", { headers });
    expect(banned.status).toBe(429);
    expect(log.lines("denied").at(-1)).toMatchObject({ policies: ["scraper"], reason: "banned" });
    expect(log.lines("denied")[0]).not.toHaveProperty("reason");
    expect(await banned.json()).toEqual({
      type: "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
      title: "Request not satisfied due to detection of abnormal request pattern",
      status: 429,
      "violated-policies": ["scraper"],
    });
    expect(banned.headers.get("RateLimit-Policy")).toBe('"pages";q=2;w=86400');
    expect(banned.headers.get("RateLimit")).toBe('"pages";r=0;t=86400');
    expect(banned.headers.get("Retry-After")).toBe("86400");
    expect(reached.length).toBe(2);
    expect((await fetch("/a", { headers: someone() })).status).toBe(200);
  });

  it("counts a denial at each object, and repeats only a ban from its cache", async () => {
    const messages: string[] = [];
    const LIMITERS = {
      getByName: (name: string) => {
        const stub = env.LIMITERS.getByName(name);
        return {
          count: (...call: Parameters<typeof stub.count>) => {
            messages.push(call[0]);
            return stub.count(...call);
          },
        };
      },
    };
    const { fetch } = workerWith(config, { LIMITERS });
    const headers = someone();
    await statuses(5, () => fetch("/a", { headers }));
    expect(messages.length).toBe(5);
    await statuses(9, () => fetch("/a", { headers }));
    expect(messages.length).toBe(5);
    vi.setSystemTime(start + 2_001);
    await fetch("/a", { headers });
    expect(messages.length).toBe(6);
  });

  it("counts one denial for each key that denies a request, and none for the others", async () => {
    const limits = [
      { key: "ip", policies: ["pages", "scraper"] },
      { key: "header:X-Api-Key", policies: ["users", "scraper"] },
    ];
    const { fetch } = workerWith({ ...config, rules: [{ path: "/*", limits }] });
    const headers = { ...someone(), "X-Api-Key": "bans" };
    expect(await statuses(5, () => fetch("/a", { headers }))).toEqual([200, 200, 429, 429, 429]);
    const other = { ...someone(), "X-Api-Key": "bans" };
    expect((await fetch("/a", { headers: other })).status).toBe(200);
    const banned = await fetch("/a", { headers });
    expect(JSON.parse(await banned.text())["violated-policies"]).toEqual(["scraper"]);
  });
});

describe("the HTTP API", () => {
  const ask = async (fetch: ReturnType<typeof workerWith>["fetch"], operation: string, item: unknown) => {
    const response = await fetch(`/_tollgate/v1/${operation}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...someone() },
      body: JSON.stringify(item),
    });
    return (await response.json()) as Record<string, unknown>;
  };
  const policy = ["pages", "scraper"];

  it("bans a key, and lifts the ban", async () => {
    const { fetch } = workerWith(config);
    const key = "api:bans";
    expect(await ask(fetch, "ban", { policy, key, for: "2h" })).toEqual({ until: start + 7_200_000 });
    expect(await ask(fetch, "hit", { policy, key })).toMatchObject({ allowed: false, reason: "banned" });
    expect(await ask(fetch, "reserve", { policy, key })).toMatchObject({ decision: { reason: "banned" } });
    expect(await ask(fetch, "unban", { policy, key, of: "scraper" })).toEqual({ unbanned: true });
    expect(await ask(fetch, "unban", { policy, key })).toEqual({ unbanned: false });
    expect(await ask(fetch, "peek", { policy, key })).toMatchObject({ allowed: true });
  });

  it("rejects what is no ban", async () => {
    const { fetch } = workerWith(config);
    const error = async (operation: string, item: object) =>
      (await ask(fetch, operation, { key: "k", ...item }))["title"];
    expect(await error("ban", { policy })).toMatch(/^for: is required/);
    expect(await error("ban", { policy, for: "soon" })).toMatch(/^for: "soon" is not a duration/);
    expect(await error("ban", { policy: "pages", for: "1h" })).toMatch(/this limiter has no ban/);
    expect(await error("ban", { policy, for: "1h", of: "pages" })).toMatch(
      /"pages" is not a ban of this limiter/,
    );
    expect(await error("unban", { policy, for: "1h" })).toMatch(/for/);
    expect(await error("set", { policy, count: 1, of: "scraper" })).toMatch(/"scraper" is a ban/);
  });

  it("unblocks a visitor by the parts of a rule's key", async () => {
    const { fetch } = workerWith(config);
    const headers = someone();
    await statuses(5, () => fetch("/a", { headers }));
    const parts = `ip=${headers["CF-Connecting-IP"]}`;
    expect(await ask(fetch, "unban", { policy, parts })).toEqual({ unbanned: true });
    vi.setSystemTime(start + 2_001);
    expect(JSON.parse(await (await fetch("/a", { headers })).text())["violated-policies"]).toEqual(["pages"]);
  });
});
