// The demo's route limits by address, exactly, and says when to come back.

import { evictDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Decision } from "../../../js/types.ts";

/** Far ahead of the real clock, by which workerd rings alarms: none rings before a test says so. */
const start = Date.UTC(2100, 0, 1);

interface Body {
  type?: string;
  decision: Decision;
  "violated-policies"?: string[];
}

async function hit(address: string) {
  const headers = { "CF-Connecting-IP": address };
  const response = await exports.default.fetch("https://example.com/demo/hit", { headers });
  return { status: response.status, headers: response.headers, body: await response.json<Body>() };
}

async function hitTimes(times: number, address: string) {
  const answers = [];
  for (let count = 0; count < times; count += 1) answers.push(await hit(address));
  return answers;
}

const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status);
const times = (count: number, status: number) => Array<number>(count).fill(status);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("/demo/hit", () => {
  it("allows until the limit, then denies and says when to come back", async () => {
    const answers = await hitTimes(11, "192.0.2.1");
    expect(statuses(answers)).toEqual([...times(10, 200), 429]);

    const [first, denied] = [answers[0], answers[10]];
    expect(first?.headers.get("RateLimit-Policy")).toBe('"demo";q=10;w=10');
    expect(first?.headers.get("RateLimit")).toBe('"demo";r=9;t=1');
    expect(first?.headers.has("Retry-After")).toBe(false);
    expect(first?.body.decision).toMatchObject({ allowed: true, remaining: 9, retryAfter: 0, violated: [] });

    expect(denied?.headers.get("Retry-After")).toBe("1");
    expect(denied?.headers.get("Content-Type")).toBe("application/problem+json");
    expect(denied?.body.type).toBe("https://iana.org/assignments/http-problem-types#quota-exceeded");
    expect(denied?.body["violated-policies"]).toEqual(["demo"]);
    expect(denied?.body.decision).toMatchObject({ allowed: false, remaining: 0, retryAfter: 1_000 });
  });

  it("allows again exactly when it said", async () => {
    await hitTimes(10, "192.0.2.2");
    vi.setSystemTime(start + 999);
    expect((await hit("192.0.2.2")).status).toBe(429);
    vi.setSystemTime(start + 1_000);
    expect(statuses(await hitTimes(2, "192.0.2.2"))).toEqual([200, 429]);
  });

  it("keeps a budget for each address", async () => {
    await hitTimes(10, "192.0.2.3");
    expect((await hit("192.0.2.3")).status).toBe(429);
    expect((await hit("192.0.2.4")).status).toBe(200);
  });

  it("admits exactly the limit when all hits come at once", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => hit("192.0.2.5")));
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(10);
    expect(statuses(answers).filter((status) => status === 429)).toHaveLength(40);
  });

  it("repeats a denial without the object, for as long as it is certain", async () => {
    await hitTimes(11, "192.0.2.7");
    const object = env.LIMITERS.getByName("/ip=9:192.0.2.7");
    // Whatever the object would say now is not asked for.
    await object.reset({ algorithm: "token_bucket", capacity: 10, refillRate: 1, name: "demo" });
    const denied = await hit("192.0.2.7");
    expect([denied.status, denied.headers.get("Retry-After")]).toEqual([429, "1"]);
    expect(denied.body.decision).toMatchObject({ allowed: false, violated: ["demo"] });
    vi.setSystemTime(start + 1_000);
    expect((await hit("192.0.2.7")).status).toBe(200);
  });

  it("goes on where it was after the object was evicted", async () => {
    await hitTimes(7, "192.0.2.6");
    await evictDurableObject(env.LIMITERS.getByName("/ip=9:192.0.2.6"));
    expect(statuses(await hitTimes(4, "192.0.2.6"))).toEqual([...times(3, 200), 429]);
  });
});
