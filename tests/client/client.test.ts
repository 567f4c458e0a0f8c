// `RemoteLimiter` and the RPC entrypoint have the methods of `RateLimiter`, its errors, and `onError`.

import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { hitAll, RemoteLimiter, type RemoteOptions } from "../../js/client/index.ts";
import { Tollgate } from "../../js/cloudflare/index.ts";
import { start, token, workerWith } from "../cloudflare/lib.ts";

const worker = workerWith({
  prefix: "/limits",
  policies: {
    api: { algorithm: "fix_window", limit: 3, scale: "1h" },
    day: { algorithm: "fix_window", limit: 9, scale: "1d" },
    running: { algorithm: "concurrency", limit: 2, ttl: "30s" },
  },
});

function limiter(options: Partial<RemoteOptions> = {}) {
  const requests: Request[] = [];
  const fetch = async (request: Request) => {
    requests.push(request.clone());
    const { pathname } = new URL(request.url);
    return worker.fetch(pathname, { method: "POST", headers: request.headers, body: await request.text() });
  };
  const url = "https://example.com/limits/";
  return { requests, limiter: new RemoteLimiter({ url, token, policy: "api", fetch, ...options }) };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

it("rejects policies of a call, whose numbers are the Worker's", async () => {
  const { limiter: remote, requests } = limiter();
  const policies = { algorithm: "fix_window", limit: 1_000, scale: "1h" } as never;
  for (const call of [
    () => remote.hit("policies", 1, policies),
    () => remote.peek("policies", 1, policies),
    () => remote.reserve("policies", 1, { policies }),
  ])
    await expect(call()).rejects.toMatchObject({ code: "invalid_option" });
  expect(requests).toEqual([]);
});

it("has the methods of RateLimiter", async () => {
  const { limiter: remote } = limiter();
  expect(await remote.hit("methods")).toMatchObject({ allowed: true, remaining: 2, policy: "api" });
  expect(await remote.peek("methods", 4)).toMatchObject({
    allowed: false,
    retryAfter: Number.POSITIVE_INFINITY,
  });
  expect(await remote.inc("methods")).toBe(2);
  expect(await remote.set("methods", 3)).toBe(3);
  expect(await remote.get("methods")).toBe(3);
  expect(await remote.expiresAt("methods")).toBe(start + 3_600_000);
  expect(await remote.reset("methods")).toBe(true);
  expect(await remote.reset("methods")).toBe(false);
});

it("sets, shows and lifts exceptions, also of a rule's key", async () => {
  const { limiter: remote, requests } = limiter();
  const until = start + 86_400_000;
  expect(await remote.exceptions("excepted")).toBe(null);
  expect(await remote.except("excepted", { api: { limit: 30 } }, { for: "1d" })).toBe(until);
  expect(await remote.exceptions("excepted")).toEqual({ until, policies: { api: { limit: 30 } } });
  expect(await remote.hit("excepted", 20)).toMatchObject({ allowed: true, limit: 30 });
  expect(await remote.get("excepted")).toBe(20);
  // The numbers of an only policy need no name.
  expect(await remote.except("excepted", { limit: 25 }, { until: new Date(until) })).toBe(until);
  expect(await remote.exceptions("excepted")).toEqual({ until, policies: { api: { limit: 25 } } });
  expect(await remote.except("excepted", { deny: true }, { until })).toBe(until);
  expect(await remote.hit("excepted")).toMatchObject({ allowed: false, reason: "denied" });
  expect(await remote.except("excepted", null)).toBe(until);
  expect(await remote.except("excepted", null)).toBe(0);
  const rule = remote.ofRule("ip=192.0.2.77");
  expect(await rule.except({ allow: true }, { for: "1d" })).toBe(until);
  expect(await rule.exceptions()).toEqual({ until, allow: true });
  const sent = requests.length;
  const wrong = { api: { limit: Number.POSITIVE_INFINITY } };
  await expect(remote.except("excepted", wrong, { for: "1d" })).rejects.toThrow(/api\.limit/);
  await expect(remote.except("excepted", { allow: true }, {})).rejects.toThrow(/until/);
  expect(requests.length).toBe(sent);
});

it("sends the operations of one tick in one request, at most a hundred", async () => {
  const { limiter: remote, requests } = limiter();
  const decisions = await Promise.all(Array.from({ length: 150 }, () => remote.hit("ticks")));
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3);
  expect(requests).toHaveLength(2);
  await Promise.all([remote.get("ticks"), remote.hit("ticks"), remote.get("ticks")]);
  expect(requests).toHaveLength(4);
});

it("decides several policies as one", async () => {
  const { limiter: remote } = limiter({ policy: ["api", "day"] });
  expect(await remote.hit("several", 4)).toMatchObject({ allowed: false, violated: ["api"] });
  expect(await remote.inc("several", 2, "day")).toBe(2);
  await expect(remote.get("several")).rejects.toMatchObject({ code: "unknown_policy" });
});

it("separates the errors of callers whose items share a request", async () => {
  const { limiter: remote } = limiter();
  const [bad, good] = await Promise.allSettled([remote.hit("", 1), remote.hit("fine")]);
  expect(bad).toMatchObject({ status: "rejected", reason: { name: "TollgateError", code: "invalid_key" } });
  expect(good.status).toBe("fulfilled");
  await expect(remote.hit(7 as never)).rejects.toMatchObject({ code: "invalid_key" });
  await expect(remote.hit("\ud800")).rejects.toMatchObject({ code: "invalid_key" });
  const [long, short] = await Promise.allSettled([remote.hit("k".repeat(2 ** 21)), remote.hit("fine")]);
  expect(long).toMatchObject({ status: "rejected", reason: { code: "invalid_key" } });
  expect(short.status).toBe("fulfilled");
  await expect(limiter({ token: "wrong" }).limiter.hit("a")).rejects.toMatchObject({ code: "unauthorized" });
  const allowing = { onError: "allow", url: "https://example.com/limits/v1/hit/.." } as const;
  await expect(limiter(allowing).limiter.hit("a")).rejects.toMatchObject({ code: "invalid_request" });
  await expect(limiter({ policy: "none" }).limiter.hit("a")).rejects.toMatchObject({
    code: "unknown_policy",
  });
  for (const wrong of [
    { url: "nowhere" },
    { url: "ftp://limits.example.com" },
    // Without its prefix, the token would go to the origin.
    { url: "https://limits.example.com" },
    { url: "https://limits.example.com/" },
    { url: "https://ann:hunter2@limits.example.com/_tollgate" },
    { token: "" },
    { policy: "" },
    { policy: [] },
    { timeout: 0 },
    { timeout: "2 s" as never },
    { timeout: "25d" as const },
    { onError: "panic" as never },
    { fetch: 5 as never },
    { onerror: "allow" },
  ]) {
    expect(() => limiter(wrong)).toThrow(expect.objectContaining({ code: "invalid_option" }));
  }
  // In JSON some of these would be null.
  const { limiter: right } = limiter({});
  for (const cost of [Number.NaN, Number.POSITIVE_INFINITY, "1", null, {}, [], { api: null }] as never[])
    await expect(right.hit("a", cost)).rejects.toMatchObject({ code: "invalid_cost" });
  await expect(right.set("a", Number.NaN)).rejects.toMatchObject({ code: "invalid_count" });
});

it("decides by onError if there is no response", async () => {
  const broken = () => Promise.reject(new TypeError("network"));
  const gone = async () => new Response("<html>", { status: 502 });
  const late = (request: Request) =>
    new Promise<Response>((_, reject) =>
      request.signal.addEventListener("abort", () => reject(request.signal.reason)),
    );
  for (const fetch of [broken, gone, late]) {
    const { limiter: throwing } = limiter({ fetch, timeout: 5 });
    await expect(throwing.hit("a")).rejects.toMatchObject({
      code: "unanswered",
      message: expect.stringContaining(
        fetch === gone ? "responded with 502 and no JSON" : "did not respond: ",
      ),
    });
    expect(await limiter({ fetch, timeout: "5ms", onError: "allow" }).limiter.hit("a")).toMatchObject({
      allowed: true,
      retryAfter: 0,
      reason: "error",
    });
    expect(await limiter({ fetch, timeout: 5, onError: "deny" }).limiter.hit("a")).toMatchObject({
      allowed: false,
      retryAfter: 1_000,
      reason: "error",
    });
    await expect(limiter({ fetch, timeout: 5, onError: "allow" }).limiter.get("a")).rejects.toMatchObject({
      code: "unanswered",
    });
  }
});

it("other Workers call the entrypoint", async () => {
  const bound = exports.Tollgate;
  expect(await bound.hit("login", "rpc", 5)).toMatchObject({ allowed: true, remaining: 0, policy: "login" });
  expect(await bound.hit("login", "rpc")).toMatchObject({ allowed: false, violated: ["login"] });
  expect(await bound.peek(["api", "login"], "rpc", 101)).toMatchObject({
    retryAfter: Number.POSITIVE_INFINITY,
  });
  expect(await bound.get("login", "rpc")).toBe(5);
  expect(await bound.inc("login", "rpc")).toBe(6);
  expect(await bound.set("login", "rpc", 1)).toBe(1);
  expect(await bound.expiresAt("login", "rpc")).toBe(start + 60_000);
  expect(await bound.reset("login", "rpc")).toBe(true);
  const mistake = async (policy: string, key: string) => {
    try {
      return await bound.hit(policy, key);
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  expect(await mistake("none", "rpc")).toBe("unknown_policy");
  expect(await mistake("login", "")).toBe("invalid_key");
});

it("the entrypoint rejects values of the wrong type, which RPC does not", async () => {
  const bound = new Tollgate({} as ExecutionContext, worker.env);
  const refuses = (given: unknown[], code: string) =>
    expect(bound.hit(...(given as [string, string])), String(code)).rejects.toMatchObject({ code });
  for (const key of ["", "\ud800", "a\udc00b", "k".repeat(1_025), 7, null])
    await refuses(["api", key], "invalid_key");
  for (const policy of ["none", 7, [7], null, undefined]) await refuses([policy, "rpc"], "unknown_policy");
  for (const cost of ["1", null, {}, [], -1, 0.5]) await refuses(["api", "rpc", cost], "invalid_cost");
  await expect(bound.set("api", "rpc", -1)).rejects.toMatchObject({ code: "invalid_count" });
  await expect(bound.get("api", "rpc", 7 as never)).rejects.toMatchObject({ code: "unknown_policy" });
  expect(await bound.get("api", "rpc")).toBe(0);
});

it("reserves, settles, cancels and extends, also by the id alone after a restart", async () => {
  const policy = ["api", "day", "running"];
  const { limiter: remote } = limiter({ policy });
  const reservation = await remote.reserve("reserved", { day: 4 }, { ttl: "2m" });
  expect(reservation).toMatchObject({ allowed: true, key: "reserved", expiresAt: start + 120_000 });
  expect(await remote.get("reserved", "day")).toBe(4);
  expect(await reservation.extend("5m")).toBe("extended");
  expect(reservation.expiresAt).toBe(start + 300_000);
  expect(await reservation.settle({ day: 2 })).toBe("settled");
  expect([await reservation.settle(), await reservation.cancel(), await reservation.extend(1)]).toEqual([
    "closed",
    "closed",
    "closed",
  ]);
  expect([await remote.get("reserved", "day"), await remote.get("reserved", "running")]).toEqual([2, 0]);

  const { id } = await remote.reserve("reserved");
  const { limiter: restarted } = limiter({ policy });
  expect(await restarted.extend(id, "1m")).toBe("extended");
  expect(await restarted.cancel(id)).toBe("settled");
  expect(await restarted.settle(id)).toBe("closed");

  const late = await remote.reserve("reserved", 1, { ttl: 1_000 });
  vi.setSystemTime(start + 1_000);
  expect([await late.extend("1m"), await late.settle(0)]).toEqual(["expired", "expired"]);
  expect(await remote.get("reserved", "api")).toBe(2);
});

it("charges a reservation that its scope leaves open in full", async () => {
  const { limiter: remote } = limiter();
  {
    await using reservation = await remote.reserve("scope", 2);
    expect(reservation.allowed).toBe(true);
  }
  {
    await using reservation = await remote.reserve("scope", 1);
    await reservation.cancel();
  }
  expect(await remote.reset("scope")).toBe(true);
  expect(await remote.reset("scope")).toBe(false);
  await remote.reserve("scope", 2);
  await remote.reset("scope");
  expect(await remote.get("scope")).toBe(2);
  expect(await remote.reset("scope", { reservations: true })).toBe(true);
  expect(await remote.get("scope")).toBe(0);
});

it("takes costs by policy, denies a reservation like a hit, and refunds by a negative inc", async () => {
  const { limiter: remote } = limiter({ policy: ["api", "day"] });
  expect(await remote.hit("costs", { day: 8 })).toMatchObject({ allowed: true, policy: "day", remaining: 1 });
  expect(await remote.peek("costs", { day: 2 })).toMatchObject({ allowed: false, violated: ["day"] });
  const denied = await remote.reserve("costs", { day: 2 });
  expect([denied.allowed, denied.id, denied.expiresAt]).toEqual([false, "", 0]);
  expect(denied.decision).toMatchObject({ allowed: false, violated: ["day"] });
  expect([await denied.settle(), await denied.extend("1m")]).toEqual(["closed", "closed"]);
  expect(await remote.inc("costs", -3, "day")).toBe(5);
});

it("rejects invalid reservations, and decides by onError if there is no response", async () => {
  const { limiter: remote } = limiter();
  const { id } = await remote.reserve("wrong", { api: 1 });
  await expect(remote.reserve("wrong", Number.NaN)).rejects.toMatchObject({ code: "invalid_cost" });
  await expect(remote.reserve("wrong", { api: "1" as never })).rejects.toMatchObject({
    code: "invalid_cost",
  });
  await expect(remote.reserve("wrong", { day: 1 })).rejects.toMatchObject({ code: "unknown_policy" });
  await expect(remote.reserve("wrong", 1, { ttl: "2d" })).rejects.toMatchObject({ code: "invalid_option" });
  await expect(remote.reserve("wrong", 1, { ttl: "soon" as never })).rejects.toMatchObject({
    code: "invalid_option",
  });
  await expect(remote.reserve("wrong", 1, { policies: {} } as never)).rejects.toMatchObject({
    code: "invalid_option",
  });
  await expect(remote.reserve("wrong", 1, { tll: 1 } as never)).rejects.toMatchObject({
    code: "invalid_option",
  });
  await expect(remote.settle("lost")).rejects.toMatchObject({ code: "invalid_reservation" });
  await expect(remote.settle(7 as never)).rejects.toMatchObject({ code: "invalid_reservation" });
  await expect(remote.settle("x".repeat(2 ** 21))).rejects.toMatchObject({ code: "invalid_reservation" });
  await expect(remote.settle(id, 1)).rejects.toMatchObject({ code: "invalid_cost" });
  await expect(remote.inc("wrong", 0.5)).rejects.toMatchObject({ code: "invalid_request" });
  await expect(remote.inc("wrong", Number.NaN)).rejects.toMatchObject({ code: "invalid_cost" });
  await expect(remote.reset("wrong", { reservations: 1 } as never)).rejects.toMatchObject({
    code: "invalid_option",
  });
  expect(await remote.cancel(id)).toBe("settled");
  const fetch = () => Promise.reject(new TypeError("network"));
  await expect(limiter({ fetch }).limiter.reserve("a")).rejects.toMatchObject({ code: "unanswered" });
  for (const onError of ["allow", "deny"] as const) {
    const reservation = await limiter({ fetch, onError }).limiter.reserve("a");
    expect(reservation).toMatchObject({
      allowed: onError === "allow",
      id: "",
      decision: { reason: "error" },
    });
    expect(await reservation.settle()).toBe("closed");
  }
});

it("hits one key several times in one decision of the sum", async () => {
  const { limiter: day, requests } = limiter({ policy: "day" });
  const of = (...costs: number[]) => hitAll(costs.map((cost) => ({ limiter: day, key: "sum", cost })));
  const never = { allowed: false, retryAfter: Number.POSITIVE_INFINITY };
  expect(await of(5, 5)).toMatchObject({ allowed: false, decisions: [never, never] });
  expect(requests).toHaveLength(1);
  const once = { allowed: true, remaining: 2 };
  expect(await of(3, 4)).toMatchObject({ allowed: true, decisions: [once, once] });
  expect(requests).toHaveLength(2);
  expect(await day.get("sum")).toBe(7);
  // By the policies of both limiters.
  const both = limiter({ policy: ["api", "day"] }).limiter;
  const hits = [{ api: 2 }, { day: 4 }].map((cost) => ({ limiter: both, key: "sum:both", cost }));
  expect((await hitAll(hits)).allowed).toBe(true);
  expect([await both.get("sum:both", "api"), await both.get("sum:both", "day")]).toEqual([3, 5]);
  const policies = { algorithm: "fix_window", limit: 20, scale: "1d" } as const;
  const wrong = hitAll([
    { limiter: day, key: "sum" },
    { limiter: day, key: "sum", policies },
  ]);
  await expect(wrong).rejects.toMatchObject({ code: "invalid_option" });
});

it("hits several keys, all or nothing", async () => {
  const [api, day] = [limiter(), limiter({ policy: "day" })];
  const hits = (cost: number) =>
    hitAll([
      { limiter: api.limiter, key: "all:user" },
      { limiter: day.limiter, key: "all:team", cost },
    ]);
  expect(await hits(4)).toMatchObject({ allowed: true, decisions: [{ remaining: 2 }, { remaining: 5 }] });
  expect(await hits(5)).toMatchObject({ allowed: true, decisions: [{ remaining: 1 }, { remaining: 0 }] });
  // One message to each key: it is charged at once.
  expect([api.requests.length, day.requests.length]).toEqual([2, 2]);
  expect(await hits(1)).toMatchObject({
    allowed: false,
    decisions: [{ allowed: true }, { violated: ["day"] }],
  });
  // The second message gives back.
  expect([api.requests.length, day.requests.length]).toEqual([4, 3]);
  expect([await api.limiter.get("all:user"), await day.limiter.get("all:team")]).toEqual([2, 9]);
  await hitAll([{ limiter: day.limiter, key: "all:last", cost: 5 }]);
  await day.limiter.reset("all:last");
  expect(await day.limiter.get("all:last")).toBe(0);
  const wrong = hitAll([
    { limiter: api.limiter, key: "all:user" },
    { limiter: day.limiter, key: "" },
  ]);
  await expect(wrong).rejects.toMatchObject({ code: "invalid_key" });
  expect(await api.limiter.get("all:user")).toBe(2);
  expect(await hitAll([])).toEqual({ allowed: true, decisions: [] });
});
