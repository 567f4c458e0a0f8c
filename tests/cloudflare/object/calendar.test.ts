// Calendar windows hold in the object, the gateway and over HTTP, to the last millisecond.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RemoteLimiter } from "../../../js/client/index.ts";
import type { Policy } from "../../../js/types.ts";
import { logged, someone, token, workerWith } from "../lib.ts";

/** A day before the end of February in a leap year, by UTC. */
const start = Date.UTC(2104, 1, 28, 23);
const march = Date.UTC(2104, 2, 1);
const hour = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("holds a month through an eviction, to its last millisecond, and deletes it after that", async () => {
  const log = logged();
  const policy: Policy = { algorithm: "fix_window", limit: 2, scale: "month", name: "monthly" };
  const object = env.LIMITERS.getByName("month");
  expect(await object.hit(policy, 2)).toMatchObject({ allowed: true, resetAfter: march - start });
  await evictDurableObject(object);
  expect(await object.expiresAt(policy)).toBe(march);
  vi.setSystemTime(march - 1);
  expect(await object.hit(policy)).toMatchObject({ allowed: false, retryAfter: 1 });
  vi.setSystemTime(march);
  expect(await runDurableObjectAlarm(object)).toBe(true);
  expect(log.lines("expired")).toMatchObject([{ policy: "monthly", count: 2, expiredAt: march }]);
  expect(await runInDurableObject(object, (_, { storage }) => [...storage.kv.list()])).toEqual([]);
  expect(await object.hit(policy)).toMatchObject({ allowed: true, resetAfter: 31 * 24 * hour });
});

it("reads rows of another unit, offset or duration, and admits no more", async () => {
  const object = env.LIMITERS.getByName("changes");
  const policyOf = (scale: object) =>
    ({ algorithm: "fix_window", limit: 3, name: "api", ...scale }) as Policy;
  const scales = [
    { scale: "day", utcOffset: "+05:30" },
    { scale: "month" },
    { scale: "1h" },
    { scale: "week" },
  ];
  expect(await object.hit(policyOf({ scale: "month" }), 3)).toMatchObject({ allowed: true });
  for (let hours = 0; hours < 25; hours += 1) {
    vi.setSystemTime(start + hours * hour);
    await evictDurableObject(object);
    const scale = scales[hours % scales.length] as object;
    const { allowed } = await object.hit(policyOf(scale));
    if ("scale" in scale && scale.scale === "month") expect([hours, allowed]).toEqual([hours, false]);
  }
});

it("is configured for the gateway, whose headers have the end of the month", async () => {
  const tokens = { algorithm: "fix_window", limit: 1, scale: "month", utcOffset: "+02:00" };
  const { fetch } = workerWith({
    upstream: "ORIGIN",
    policies: { tokens },
    rules: [{ path: "/*", policies: ["tokens"] }],
  });
  const headers = someone();
  const left = (march - 2 * hour - start) / 1_000;
  const allowed = await fetch("/", { headers });
  expect(allowed.headers.get("RateLimit-Policy")).toBe('"tokens";q=1');
  expect(allowed.headers.get("RateLimit")).toBe(`"tokens";r=0;t=${left}`);
  const denied = await fetch("/", { headers });
  expect([denied.status, denied.headers.get("Retry-After")]).toEqual([429, `${left}`]);
});

it("reports an invalid offset in the configuration", async () => {
  const log = logged();
  const policies = { api: { algorithm: "fix_window", limit: 1, scale: "1d", utc_offset: "+02:00" } };
  const { fetch } = workerWith({ upstream: "ORIGIN", policies, rules: [{ path: "/*", policies: ["api"] }] });
  expect((await fetch("/", { headers: someone() })).status).toBe(500);
  expect(log.text()).toContain("policies.api.utcOffset");
  expect(log.text()).toContain("is not accepted with a duration");
});

it("is decided for a client over HTTP", async () => {
  const worker = workerWith({ policies: { week: { algorithm: "fix_window", limit: 1, scale: "week" } } });
  const limiter = new RemoteLimiter({
    url: "https://example.com/_tollgate",
    token,
    policy: "week",
    fetch: async (request) =>
      worker.fetch(new URL(request.url).pathname, {
        method: "POST",
        headers: request.headers,
        body: await request.text(),
      }),
  });
  // 28 February 2104 is a Thursday.
  const monday = Date.UTC(2104, 2, 3);
  expect(await limiter.hit("weekly")).toMatchObject({ allowed: true, resetAfter: monday - start });
  expect(await limiter.hit("weekly")).toMatchObject({ allowed: false, retryAfter: monday - start });
  expect(await limiter.expiresAt("weekly")).toBe(monday);
});
