// The shared vectors hold through the Durable Object and the HTTP API.

import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Policy } from "../../../js/types.ts";
import fixWindow from "../../vectors/fix_window.json?raw";
import fixWindowPerKey from "../../vectors/fix_window_per_key.json?raw";
import leakyBucket from "../../vectors/leaky_bucket.json?raw";
import slidingWindow from "../../vectors/sliding_window.json?raw";
import tokenBucket from "../../vectors/token_bucket.json?raw";
import { token, workerWith } from "../lib.ts";

type Name = "hit" | "inc" | "set" | "get" | "expires_at";

interface Op {
  at: number;
  op: Name;
  key: string;
  cost?: number;
  count?: number;
  expect: { allow?: number; deny?: number | "any" | "never"; value?: number };
}

interface Trace {
  policy: Policy & { scale?: number };
  ops: Op[];
}

const files = { fixWindow, fixWindowPerKey, slidingWindow, tokenBucket, leakyBucket };

afterEach(() => {
  vi.useRealTimers();
});

/** A century later, in whole windows: workerd's own clock then rings no alarm. */
const shiftOf = ({ scale = 1_000 }: Trace["policy"]) => Math.ceil(3_155_760_000_000 / scale) * scale;

/** Hammer counts what it denies; in the Worker that has to be said. */
const asHammer = (policy: Trace["policy"]): Policy =>
  policy.algorithm.endsWith("bucket") ? policy : ({ ...policy, denied: "count" } as Policy);

function check({ expect: expected, op }: Op, answer: unknown, shift: number, context: string): void {
  if (expected.value !== undefined) {
    const value = op === "expires_at" && expected.value > 0 ? expected.value + shift : expected.value;
    expect(answer, context).toBe(value);
  } else if (expected.allow !== undefined) {
    expect(answer, context).toMatchObject({ allowed: true, count: expected.allow, retryAfter: 0 });
  } else {
    const { allowed, retryAfter } = answer as { allowed: boolean; retryAfter: number };
    expect(allowed, context).toBe(false);
    if (expected.deny === "any") expect(retryAfter, context).toBeGreaterThan(0);
    else
      expect(retryAfter, context).toBe(expected.deny === "never" ? Number.POSITIVE_INFINITY : expected.deny);
  }
}

async function replay(traces: Trace[], ask: (number: number, trace: Trace, op: Op) => Promise<unknown>) {
  vi.useFakeTimers({ toFake: ["Date"] });
  for (const [number, trace] of traces.entries()) {
    const shift = shiftOf(trace.policy);
    for (const [position, op] of trace.ops.entries()) {
      vi.setSystemTime(op.at + shift);
      const context = `trace ${number}, operation ${position} (${op.op} at ${op.at})`;
      check(op, await ask(number, trace, op), shift, context);
    }
  }
}

describe.each(Object.entries(files))("the traces of %s", (name, text) => {
  const traces: Trace[] = JSON.parse(text);

  it("through the object", () =>
    replay(traces, (number, trace, { op, key, cost = 0, count = 0 }) => {
      const object = env.LIMITERS.getByName(`${name}:${number}:${key}`);
      const policy = asHammer(trace.policy);
      if (op === "hit") return object.hit(policy, cost);
      if (op === "inc") return object.inc(policy, cost);
      if (op === "set") return object.set(policy, count);
      return op === "get" ? object.get(policy) : object.expiresAt(policy);
    }));

  it("through the HTTP API", async () => {
    const few = traces.slice(0, 2);
    const policies = Object.fromEntries(
      few.map(({ policy }, number) => [`${name}-${number}`, asHammer(policy)]),
    );
    const { fetch } = workerWith({ policies });
    await replay(few, async (number, _, { op, ...item }) => {
      const amount =
        op === "set" ? { count: item.count } : op === "get" || op === "expires_at" ? {} : { cost: item.cost };
      const body = JSON.stringify({ policy: `${name}-${number}`, key: item.key, ...amount });
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const response = await fetch(`/_tollgate/v1/${op}`, { method: "POST", headers, body });
      const answer = await response.json<Record<string, unknown>>();
      if (op !== "hit") return answer["count"] ?? answer["expiresAt"];
      return { ...answer, retryAfter: answer["retryAfter"] ?? Number.POSITIVE_INFINITY };
    });
  });
});
