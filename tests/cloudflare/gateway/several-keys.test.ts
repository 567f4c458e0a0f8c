// A rule with limits on several keys charges all or none, with one message to each.

import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import worker from "../../../js/cloudflare/worker.ts";
import { logged, someone, start, statuses, workerWith } from "../lib.ts";

const five = { algorithm: "fix_window", limit: 5, scale: "1h" };
const two = { algorithm: "fix_window", limit: 2, scale: "1h" };
const limits = [
  { key: "ip", policies: "five" },
  { key: "header:X-Api-Key", policies: "two", cost: 1 },
];
const config = (rule: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  upstream: "ORIGIN",
  policies: { five, two },
  rules: [{ path: "/*", limits, ...rule }],
  ...more,
});

const address = (headers: Record<string, string>) => headers["CF-Connecting-IP"] as string;
const keyOf = (kind: string, value: string) => `/${kind}=${value.length}:${value}`;
const objectOf = (kind: string, value: string) => env.LIMITERS.getByName(keyOf(kind, value));
const policyOf = (name: "five" | "two") =>
  ({ ...(name === "five" ? five : two), name, denied: "free" }) as never;

/** Counts the messages to objects, and lets some of them fail. */
function counted(fails: (operation: string, name: string) => boolean = () => false) {
  const messages: string[] = [];
  const LIMITERS = {
    getByName: (name: string) => {
      const stub = env.LIMITERS.getByName(name);
      const noted = (operation: string, send: () => Promise<unknown>) => {
        messages.push(operation);
        return fails(operation, name) ? Promise.reject(new Error("broken")) : send();
      };
      return {
        count: (...call: Parameters<typeof stub.count>) => noted(call[0], () => stub.count(...call)),
        hitUndoable: (...call: Parameters<typeof stub.hitUndoable>) =>
          noted("hit", () => stub.hitUndoable(...call)),
        undo: (...call: Parameters<typeof stub.undo>) => noted("undo", () => stub.undo(...call)),
      };
    },
  };
  return { messages, LIMITERS };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a rule with limits on several keys", () => {
  it("forwards a request that all of them allow, with the headers of all, for one message each", async () => {
    const { messages, LIMITERS } = counted();
    const { fetch, reached } = workerWith(config(), { LIMITERS });
    const headers = { ...someone(), "X-Api-Key": "allowed" };
    const response = await fetch("/a", { headers });
    expect([response.status, response.headers.get("RateLimit-Policy")]).toEqual([
      200,
      '"five";q=5;w=3600, "two";q=2;w=3600',
    ]);
    expect(response.headers.get("RateLimit")).toBe('"five";r=4;t=3600, "two";r=1;t=3600');
    expect(reached).toHaveLength(1);
    expect(messages).toEqual(["hit", "hit"]);
    await fetch("/a", { headers });
    expect(messages).toHaveLength(4);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(2);
    // Both are charged at once.
    expect(await objectOf("header:x-api-key", "allowed").reset(policyOf("two"))).toBe(true);
    expect(await objectOf("header:x-api-key", "allowed").get(policyOf("two"))).toBe(0);
  });

  it("makes one decision for limits with the same key and policies, with the sum of their costs", async () => {
    const { messages, LIMITERS } = counted();
    const sum = (...costs: number[]) => costs.map((cost) => ({ key: "ip", policies: "five", cost }));
    const { fetch } = workerWith(config({ limits: sum(3, 3) }), { LIMITERS });
    const headers = someone();
    const never = await fetch("/a", { headers });
    expect([never.status, never.headers.get("Retry-After")]).toEqual([429, null]);
    const fitting = workerWith(config({ limits: sum(1, 2) }), { LIMITERS });
    const response = await fitting.fetch("/a", { headers });
    expect([response.status, response.headers.get("RateLimit")]).toEqual([200, '"five";r=2;t=3600']);
    // One key needs no undo.
    expect(messages).toEqual(["hit", "hit"]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(3);
  });

  it("takes nothing from any of them if one denies, and remembers the denial", async () => {
    const { messages, LIMITERS } = counted();
    const { fetch, reached } = workerWith(config(), { LIMITERS });
    const log = logged();
    const headers = { ...someone(), "X-Api-Key": "denied" };
    expect(await statuses(3, () => fetch("/", { headers }))).toEqual([200, 200, 429]);
    expect(messages.slice(4)).toEqual(["hit", "hit", "undo"]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(2);
    expect(log.lines("denied")).toMatchObject([{ rule: 0, policies: ["two"], remembered: false }]);
    vi.setSystemTime(start + 1_000);
    // Now that nothing that was just charged may be undone, the denial is remembered.
    const sent = messages.length;
    const denied = await fetch("/", { headers });
    // The key that denied lately is asked first, and the other is not charged.
    expect(messages.slice(sent)).toEqual(["hit"]);
    expect([denied.status, await denied.json()]).toMatchObject([429, { "violated-policies": ["two"] }]);
    const before = messages.length;
    expect(await statuses(3, () => fetch("/", { headers }))).toEqual([429, 429, 429]);
    expect(messages).toHaveLength(before);
    expect(reached).toHaveLength(2);
    // Another key of the same address.
    const other = { ...headers, "X-Api-Key": "other" };
    expect(await statuses(3, () => fetch("/", { headers: other }))).toEqual([200, 200, 429]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(4);
  });

  it("admits exactly as many as the strictest allows of a parallel load", async () => {
    const { fetch } = workerWith(config());
    const headers = { ...someone(), "X-Api-Key": "parallel" };
    logged();
    const answers = await Promise.all(Array.from({ length: 40 }, () => fetch("/", { headers })));
    const allowed = answers.filter(({ status }) => status === 200).length;
    expect(allowed).toBeLessThanOrEqual(2);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(allowed);
    expect(await objectOf("header:x-api-key", "parallel").get(policyOf("two"))).toBe(allowed);
  });

  it.each([
    ["is not received", false],
    ["gets no reply", true],
  ])("repeats an undo that %s, and gives back once", async (_, isPerformed) => {
    let undos = 0;
    const { messages, LIMITERS } = counted();
    const inner = LIMITERS.getByName;
    LIMITERS.getByName = (name: string) => {
      const stub = inner(name);
      const undo = async (...call: Parameters<typeof stub.undo>) => {
        undos += 1;
        if (undos > 1) return stub.undo(...call);
        if (isPerformed) await stub.undo(...call);
        throw new Error("broken");
      };
      return { ...stub, undo };
    };
    const { fetch } = workerWith(config(), { LIMITERS });
    logged();
    const headers = { ...someone(), "X-Api-Key": `lost ${isPerformed}` };
    expect(await statuses(3, () => fetch("/", { headers }))).toEqual([200, 200, 429]);
    expect([undos, messages.filter((message) => message === "undo").length]).toEqual([
      2,
      isPerformed ? 2 : 1,
    ]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(2);
    expect(await objectOf("header:x-api-key", `lost ${isPerformed}`).get(policyOf("two"))).toBe(2);
  });

  it("leaves a key charged until its window ends if the undo is never received", async () => {
    // The time between two tries does not pass.
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: start });
    const { LIMITERS } = counted((operation) => operation === "undo");
    const { env: own } = workerWith(config(), { LIMITERS });
    logged();
    const headers = { ...someone(), "X-Api-Key": "gone" };
    const fetch = async () =>
      worker.fetch(new Request("https://example.com/", { headers }), own, createExecutionContext());
    expect(await statuses(3, fetch)).toEqual([200, 200, 429]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(3);
    vi.setSystemTime(start + 3_600_000);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(0);
  });

  it("counts a denial toward the ban of the key that denied, and no other", async () => {
    const ban = (name: string) => ({ name, algorithm: "ban", after: 2, scale: "1h", for: "1h" });
    const banned = {
      policies: { five, two, strict: ban("strict"), lenient: ban("lenient") },
      rules: [
        {
          path: "/*",
          limits: [
            { key: "ip", policies: ["five", "lenient"] },
            { key: "header:X-Api-Key", policies: ["two", "strict"] },
          ],
        },
      ],
    };
    const { fetch } = workerWith(config({}, banned));
    const log = logged();
    const headers = { ...someone(), "X-Api-Key": "banned" };
    expect(await statuses(5, () => fetch("/", { headers }))).toEqual([200, 200, 429, 429, 429]);
    expect(log.lines("denied").map(({ policies }) => policies)).toEqual([["two"], ["strict"], ["strict"]]);
    const other = { ...headers, "X-Api-Key": "not banned" };
    expect(await statuses(2, () => fetch("/", { headers: other }))).toEqual([200, 200]);
  });

  it.each([
    ["allow", [200, "failed; allowed"], 1],
    ["deny", [503, "failed; denied"], 0],
  ] as const)("does as it says when an object does not answer: %s", async (onError, expected, count) => {
    const { LIMITERS } = counted((_, name) => name.startsWith("/header"));
    const { fetch } = workerWith(config({ onError }), { LIMITERS });
    const log = logged();
    const headers = { ...someone(), "X-Api-Key": "silent" };
    const response = await fetch("/", { headers });
    expect([response.status, response.headers.get("Tollgate-Error")]).toEqual(expected);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(count);
    expect(log.lines("error")).toMatchObject([{ policies: ["two"], failure: "failed" }]);
  });

  it("counts by the address in the place of a key that is missing, or leaves that limit out", async () => {
    const headers = someone();
    const counts = async () => [
      await objectOf("ip", address(headers)).get(policyOf("five")),
      await objectOf("ip", address(headers)).get(policyOf("two")),
    ];
    await workerWith(config()).fetch("/", { headers });
    expect(await counts()).toEqual([1, 1]);
    await workerWith(config({ missing: "skip" })).fetch("/", { headers });
    expect(await counts()).toEqual([2, 1]);
    expect((await workerWith(config({ missing: "deny" })).fetch("/", { headers })).status).toBe(403);
  });

  it("only reports in the shadow, and takes nothing where it would have denied", async () => {
    const log = logged();
    const { fetch } = workerWith(config({ mode: "shadow" }));
    const headers = { ...someone(), "X-Api-Key": "shadow" };
    expect(await statuses(4, () => fetch("/", { headers }))).toEqual([200, 200, 200, 200]);
    expect(log.lines("denied")).toMatchObject([{ mode: "shadow" }, { mode: "shadow" }]);
    expect(await objectOf("ip", address(headers)).get(policyOf("five"))).toBe(2);
  });

  it("is read with its errors", async () => {
    const log = logged();
    const running = { algorithm: "concurrency", limit: 1 };
    const rules = [
      { path: "/*", key: "ip", policies: "five", limits },
      { path: "/*", limits: [] },
      { path: "/*", mode: "skip", limits },
      { path: "/*", limits: [{ key: "user", policies: "none", costs: 1 }, 7] },
      { path: "/*", policies: "running" },
    ];
    const own = workerWith(config({}, { policies: { five, two, running }, rules }));
    expect((await own.fetch("/")).status).toBe(500);
    const [{ errors }] = log.lines("misconfigured") as [{ errors: [string, string][] }];
    expect(errors.map(([path, problem]) => `${path}: ${problem}`)).toEqual([
      "rules[0].key: is not accepted beside limits; set it in each of the limits",
      "rules[0].policies: is not accepted beside limits; set it in each of the limits",
      "rules[1].limits: expected a list of 1 to 8",
      'rules[2].limits: is not accepted with mode "skip"',
      expect.stringMatching(/^rules\[3\]\.limits\[0\]\.key: "user" is not/),
      expect.stringMatching(/^rules\[3\]\.limits\[0\]\.policies: "none" is not one of/),
      expect.stringMatching(/^rules\[3\]\.limits\[0\]\.costs: unknown field/),
      "rules[3].limits[1]: 7 is not an object",
      expect.stringMatching(/^rules\[3\]\.limits\[1\]\.policies: is required/),
      expect.stringMatching(/^rules\[4\]\.policies: a concurrency policy counts reservations alone/),
    ]);
  });
});
