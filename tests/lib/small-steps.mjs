// Steps by the small core, and the traces of Hammer on it. Bundled by small-core.mjs, for Node and for browsers.

import { RateLimiter, step } from "tollgate";
import { instantiate } from "../../build/throttle/without-wasm.js";
import { ReadPolicies } from "../../js/policy/policies.ts";
import { KeyLimits } from "../../js/throttle/small/key-limits.ts";
import { keyStep } from "../../js/throttle/small/key-step.ts";
import { KeyStates, startWith } from "../../js/wasm/one-key.ts";
import { inWordsOf } from "./trace-words.mjs";

export { KeyLimits, RateLimiter, step };

/** Makes the core: of wasm, or of JavaScript. */
export function start(kind) {
  if (kind === "js") startWith(instantiate);
}

/** Does what `step` does for hits and peeks. */
export const smallStep = (policies, state, operation, cost, now) =>
  keyStep(new ReadPolicies(policies), KeyStates)(state, operation, cost, now);

/**
 * Runs traces over stored states: hits and peeks by the small core, other operations by the package. Returns how many hits
 * there were, and every result that is not the recorded one, or not that of the package.
 */
export function differences(traces) {
  const found = [];
  let hits = 0;
  for (const [number, { policy, ops }] of traces.entries()) {
    const stored = new Map();
    for (const [position, { at, op, key, cost, count, expect }] of ops.entries()) {
      const operation = op === "expires_at" ? "expiresAt" : op;
      const amount = (op === "set" ? count : cost) ?? 0;
      const before = JSON.parse(stored.get(key) ?? "null");
      const full = step(policy, before, operation, amount, at);
      const isHit = op === "hit";
      const stepped = isHit ? smallStep(policy, before, operation, amount, at) : full;
      const peeked = isHit ? smallStep(policy, before, "peek", amount, at).decision : stepped.decision;
      const words = inWordsOf(expect, stepped.decision ?? stepped.value);
      const isRight = same(words, expect) && same(stepped, full) && same(peeked, stepped.decision);
      if (!isRight) found.push({ number, position, op, at, expect, words, stepped, full, peeked });
      stored.set(key, JSON.stringify(stepped.state));
      hits += Number(isHit);
    }
  }
  return { hits, found };
}

/** Compares by JSON, in which "never" is not null. */
const same = (one, other) => written(one) === written(other);
const written = (value) =>
  JSON.stringify(sorted(value), (_, each) => (each === Number.POSITIVE_INFINITY ? "never" : each));
const sorted = (value) => value && Object.fromEntries(Object.entries(value).sort());
