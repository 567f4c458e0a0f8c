// A class that extends the object hears of its direct decisions, and what it throws breaks nothing.

import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { RateLimiterObject } from "../../../js/cloudflare/object/object.ts";
import type { DecisionMessage } from "../../../js/events/messages.ts";
import type { Decision, Policy } from "../../../js/types.ts";
import { logged } from "../lib.ts";

const policy: Policy = { algorithm: "fix_window", limit: 2, scale: "1h", name: "two" };

afterEach(() => {
  vi.restoreAllMocks();
});

describe("onDecision", () => {
  it("is called with each decision of hit and reserve, and with no other", () =>
    runInDurableObject(env.LIMITERS.getByName("heard"), async (_, state) => {
      const heard: [Decision, DecisionMessage][] = [];
      class Heard extends RateLimiterObject {
        override onDecision(decision: Decision, message: DecisionMessage) {
          heard.push([decision, message]);
        }
      }
      logged();
      const object = new Heard(state, env);
      const decision = object.hit(policy);
      const { decision: reserved } = object.reserve(policy, 1, { ttl: "1m" });
      const denied = object.hit(policy, 2);
      object.peek(policy);
      object.get(policy);
      object.count("hit", JSON.stringify(policy), 1);
      expect(heard.map(([decision]) => decision)).toEqual([decision, reserved, denied]);
      const common = { limiter: "object", key: "heard", by: "limiter", duration: expect.any(Number) };
      expect(heard.map(([, message]) => message)).toEqual([
        { ...common, operation: "hit", cost: 1, decision, allowed: true },
        { ...common, operation: "reserve", cost: 1, decision: reserved, allowed: true },
        { ...common, operation: "hit", cost: 2, decision: denied, allowed: false },
      ]);
    }));

  it("changes no decision when it throws", () =>
    runInDurableObject(env.LIMITERS.getByName("failing"), (_, state) => {
      const errors = vi.spyOn(console, "error").mockImplementation(() => {});
      class Failing extends RateLimiterObject {
        override onDecision() {
          throw new Error("broken");
        }
      }
      expect(new Failing(state, env).hit(policy)).toMatchObject({ allowed: true, remaining: 1 });
      expect(errors.mock.calls.flat().join(" ")).toContain("broken");
    }));
});
