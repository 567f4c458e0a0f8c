// Exceptions through the gateway, the HTTP API and RPC: set for a key or the key of a rule, without a deploy.

import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../../js/cloudflare/api/entrypoint.ts";
import { logged, someone, start, statuses, token, workerWith } from "../lib.ts";

const hour = 3_600_000;
const policies = {
  pages: { algorithm: "fix_window", limit: 2, scale: "1d" },
  scraper: { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
  users: { algorithm: "token_bucket", capacity: 2, refillRate: 1, per: "1d" },
};
const rule = { path: "/*", key: ["ip"], policies: ["pages", "scraper"] };
const config = { upstream: "ORIGIN", policies, rules: [rule] };
const policy = ["pages", "scraper"];

type Fetch = ReturnType<typeof workerWith>["fetch"];

let log: ReturnType<typeof logged>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
  log = logged();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const ask = async (fetch: Fetch, operation: string, item: unknown) => {
  const response = await fetch(`/_tollgate/v1/${operation}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...someone() },
    body: JSON.stringify(item),
  });
  return (await response.json()) as Record<string, unknown>;
};

const partsOf = (headers: Record<string, string>) => `ip=${headers["CF-Connecting-IP"]}`;

describe("the gateway", () => {
  it("limits a visitor by other numbers until the end of an exception", async () => {
    const { fetch } = workerWith(config);
    const headers = someone();
    const exception = { pages: { limit: 20 } };
    const item = { policy, parts: partsOf(headers), exception, for: "1h" };
    expect(await ask(fetch, "except", item)).toEqual({ until: start + hour });
    const passed = await statuses(20, () => fetch("/a", { headers }));
    expect(passed.every((status) => status === 200)).toBe(true);
    const denied = await fetch("/a", { headers });
    expect([denied.status, denied.headers.get("RateLimit")]).toEqual([429, '"pages";r=0;t=86400']);
    vi.setSystemTime(start + 24 * hour);
    expect(await statuses(3, () => fetch("/a", { headers }))).toEqual([200, 200, 429]);
  });

  it("never limits an address that is excepted, although it is banned", async () => {
    const { fetch, reached } = workerWith(config);
    const headers = someone();
    await statuses(6, () => fetch("/a", { headers }));
    await ask(fetch, "except", { policy, parts: partsOf(headers), exception: { allow: true }, for: "1d" });
    // A denial is repeated for two seconds.
    vi.setSystemTime(start + 2_001);
    expect(await statuses(9, () => fetch("/a", { headers }))).toEqual(Array(9).fill(200));
    expect(reached.length).toBe(11);
  });

  it("denies an address that is excepted, says so, and follows when that is lifted", async () => {
    const { fetch, reached } = workerWith(config);
    const headers = someone();
    const parts = partsOf(headers);
    await ask(fetch, "except", { policy, parts, exception: { deny: true }, until: start + hour });
    const denied = await fetch("/a", { headers });
    expect(denied.status).toBe(429);
    expect(await denied.json()).toMatchObject({
      title: "Request not satisfied due to detection of abnormal request pattern",
      status: 429,
    });
    expect(denied.headers.get("Retry-After")).toBe("3600");
    expect(log.lines("denied")).toMatchObject([{ policies: [], reason: "denied" }]);
    expect(denied.headers.get("RateLimit")).toBe('"pages";r=0;t=3600');
    expect((await fetch("/a", { headers: someone() })).status).toBe(200);
    expect(await ask(fetch, "except", { policy, parts, exception: null })).toEqual({ until: start + hour });
    vi.setSystemTime(start + 2_001);
    expect((await fetch("/a", { headers })).status).toBe(200);
    expect(reached.length).toBe(2);
  });

  it("repeats a denial by an exception from its cache, for two seconds", async () => {
    let messages = 0;
    const LIMITERS = {
      getByName: (name: string) => {
        const stub = env.LIMITERS.getByName(name);
        return {
          question: (json: string) => stub.question(json),
          count: (...call: Parameters<typeof stub.count>) => {
            messages += 1;
            return stub.count(...call);
          },
        };
      },
    };
    const { fetch } = workerWith(config, { LIMITERS });
    const headers = someone();
    await ask(fetch, "except", { policy, parts: partsOf(headers), exception: { deny: true }, for: "1h" });
    await statuses(9, () => fetch("/a", { headers }));
    expect(messages).toBe(1);
    vi.setSystemTime(start + 2_001);
    await fetch("/a", { headers });
    expect(messages).toBe(2);
  });

  it("excepts one of several keys of a rule: the others count as before", async () => {
    const limits = [
      { key: "ip", policies: ["pages", "scraper"] },
      { key: "header:X-Api-Key", policies: ["users"] },
    ];
    const { fetch } = workerWith({ ...config, rules: [{ path: "/*", limits }] });
    const headers = { ...someone(), "X-Api-Key": "excepted" };
    const [parts, ofUser] = [partsOf(headers), "header:X-Api-Key=excepted"];
    await ask(fetch, "except", { policy, parts, exception: { allow: true }, for: "1h" });
    await ask(fetch, "except", {
      policy: "users",
      parts: ofUser,
      exception: { users: { capacity: 4 } },
      for: "1h",
    });
    expect(await statuses(5, () => fetch("/a", { headers }))).toEqual([200, 200, 200, 200, 429]);
    expect(await ask(fetch, "get", { policy, parts, of: "pages" })).toMatchObject({ count: 0 });
    await ask(fetch, "except", { policy, parts, exception: null });
    await ask(fetch, "except", { policy: "users", parts: ofUser, exception: { deny: true }, for: "1h" });
    vi.setSystemTime(start + 10_001);
    expect((await fetch("/a", { headers })).status).toBe(429);
    // What the other key had reserved is given back.
    expect(await ask(fetch, "get", { policy, parts, of: "pages" })).toEqual({ count: 0 });
  });
});

describe("the HTTP API", () => {
  it("sets, shows and lifts an exception of a key", async () => {
    const { fetch } = workerWith(config);
    const key = "api:exceptions";
    const exception = { pages: { limit: 9 } };
    expect(await ask(fetch, "exceptions", { policy, key })).toEqual({ exception: null });
    expect(await ask(fetch, "get", { policy, key, of: "pages" })).toEqual({ count: 0 });
    const until = start + 7 * 24 * hour;
    expect(await ask(fetch, "except", { policy, key, exception, until })).toEqual({ until });
    expect(await ask(fetch, "hit", { policy, key })).toMatchObject({ limit: 9, remaining: 8 });
    expect(await ask(fetch, "get", { policy, key, of: "pages" })).toEqual({ count: 1, exception, until });
    expect(await ask(fetch, "exceptions", { policy, key })).toEqual({ exception, until });
    // The numbers of the only policy may be without its name.
    await ask(fetch, "except", { policy: "pages", key, exception: { limit: 5 }, for: "1h" });
    expect(await ask(fetch, "exceptions", { policy, key })).toEqual({
      exception: { pages: { limit: 5 } },
      until: start + hour,
    });
    expect(await ask(fetch, "except", { policy, key, exception: null })).toEqual({ until: start + hour });
    expect(await ask(fetch, "exceptions", { policy, key })).toEqual({ exception: null });
  });

  it("rejects what is no exception", async () => {
    const { fetch } = workerWith(config);
    const error = async (item: object, operation = "except") => {
      const { code, title } = await ask(fetch, operation, { policy, key: "k", ...item });
      return `${code}: ${title}`;
    };
    const [exception, end] = [{ deny: true }, { for: "1h" }];
    expect(await error({})).toMatch(/^invalid_request: exception: is required/);
    expect(await error({ exception })).toMatch(/^invalid_request: until: is required/);
    expect(await error({ exception, ...end, until: start + 1 })).toMatch(/^invalid_request: for: .*use one/);
    expect(await error({ exception, for: "soon" })).toMatch(/^invalid_option: for: "soon"/);
    expect(await error({ exception, for: "401d" })).toMatch(/^invalid_option: for: .*400 days/);
    expect(await error({ exception, until: start })).toMatch(/^invalid_option: until: .*400 days/);
    expect(await error({ exception, until: "friday" })).toMatch(/^invalid_request: until: "friday"/);
    expect(await error({ exception: { deny: false }, ...end })).toMatch(
      /^invalid_option: exception: deny: false/,
    );
    expect(await error({ exception: { pages: { scale: "1m" } }, ...end })).toMatch(/"scale" is not a field/);
    expect(await error({ exception: { users: { capacity: 1 } }, ...end })).toMatch(
      /^unknown_policy: .*"users"/,
    );
    expect(await error({ exception: [], ...end })).toMatch(/^invalid_option: exception/);
    expect(await error({ exception: {}, ...end })).toMatch(/^invalid_option: exception/);
    expect(await error({ exception: 7, ...end })).toMatch(/^invalid_option: exception/);
    expect(await error({ exception }, "exceptions")).toMatch(/^invalid_request: exception/);
  });
});

describe("RPC", () => {
  const targetOf = () => {
    const { env: own } = workerWith(config);
    return new Tollgate(createExecutionContext(), own);
  };

  it("sets, shows and lifts an exception, also of a rule's key", async () => {
    const target = targetOf();
    const until = start + hour;
    const exception = { users: { capacity: 9, refillRate: 3 } };
    expect(await target.except("users", "rpc:exceptions", exception, { for: "1h" })).toBe(until);
    expect(await target.exceptions("users", "rpc:exceptions")).toEqual({ until, policies: exception });
    expect(await target.hit("users", "rpc:exceptions")).toMatchObject({ limit: 9, remaining: 8 });
    expect(await target.get("users", "rpc:exceptions")).toBe(8);
    expect(await target.except("users", "rpc:exceptions", null)).toBe(until);
    expect(await target.exceptions("users", "rpc:exceptions")).toBe(null);

    const rule = target.ofRule("ip=203.0.113.9");
    expect(await rule.except(policy, { deny: true }, { until: new Date(until) })).toBe(until);
    expect(await rule.exceptions(policy)).toEqual({ until, deny: true });
    expect(await rule.peek(policy)).toMatchObject({ allowed: false, reason: "denied" });
  });

  it("rejects what would become null in JSON", async () => {
    const target = targetOf();
    const exception = { users: { capacity: Number.NaN } };
    await expect(target.except("users", "k", exception, { for: "1h" })).rejects.toThrow(
      "users.capacity: NaN",
    );
  });
});
