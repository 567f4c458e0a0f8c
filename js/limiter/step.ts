import { invalidField, wrongAmount } from "../errors/error.ts";
import { banLength } from "../policy/bans.ts";
import { isTime } from "../time.ts";
import type { Decision, Policies, State } from "../types.ts";
import { hitKind } from "../wasm/generated.ts";
import { LoadedKey } from "./loaded-key.ts";

/** The operations on a key. */
export type Operation = "hit" | "peek" | "inc" | "set" | "get" | "expiresAt" | "ban" | "unban" | "reset";

const operations: readonly string[] = [
  "hit",
  "peek",
  "inc",
  "set",
  "get",
  "expiresAt",
  "ban",
  "unban",
  "reset",
];

/** The result of a step. */
export interface Step {
  /** The decision of a hit or a peek. */
  readonly decision?: Decision;
  /**
   * The result of `inc`, `set` and `get` (the count), of `expiresAt` and `ban` (a time), and of `unban`: when the ban would
   * have ended, 0 if none held.
   */
  readonly value?: number;
  /** The state to store now; `null` if the key is as if never used. */
  readonly state: State | null;
  /** True if the operation changed the state, so that it must be stored. A state that has ended counts as none, except for a reset. */
  readonly changed: boolean;
  /** When the state ends, in milliseconds since the epoch; 0 if there is none. */
  readonly expiresAt: number;
  /** The names of the policies that started unused because their algorithm, `scale` or `per` changed. */
  readonly afresh: readonly string[];
}

/**
 * Performs one operation on the stored state of a key. Any store that can load, compare and save can be built on it.
 * `amount` is the cost, for `set` the count, for `ban` its length in milliseconds. With several policies, `policy` names one for all but hit, peek and
 * reset.
 *
 * @example
 * ```ts
 * import { step } from "tollgate";
 *
 * const policy = { algorithm: "fix_window", limit: 1, scale: "1m" } as const;
 * const first = step(policy, null, "hit", 1, Date.now());
 * const second = step(policy, first.state, "hit", 1, Date.now());
 * console.log(second.decision?.allowed); // => false
 * ```
 */
export function step(
  policies: Policies,
  state: State | null,
  operation: Operation,
  amount: number,
  now: number,
  policy?: string,
): Step {
  if (!operations.includes(operation))
    throw invalidField("invalid_operation", "operation", operation, `one of ${operations.join(", ")}`);
  if (typeof amount !== "number") throw wrongAmount("cost", amount);
  if (!isTime(now)) throw invalidField("invalid_time", "now", now, "a time in milliseconds since the epoch");
  if (policy !== undefined && typeof policy !== "string")
    throw invalidField("unknown_policy", "policy", policy, "the name of a policy");
  const key = new LoadedKey(policies);
  try {
    const afresh = key.load(now, state);
    const result = performed(key, operation, amount, now, policy);
    const saved = key.save(now);
    // A stored state that has ended is removed by a reset: it would come back if the clock stepped back.
    const isGone = operation === "reset" && saved.state === null && state != null;
    return { ...result, ...saved, changed: saved.changed || isGone, afresh };
  } finally {
    key.limiter.free();
  }
}

/** Performs an operation. Returns the decision or the number. */
function performed(
  key: LoadedKey,
  operation: Operation,
  amount: number,
  now: number,
  policy: string | undefined,
): Pick<Step, "decision" | "value"> {
  switch (operation) {
    case "hit":
    case "peek":
      return { decision: key.decide(now, hitKind[operation], amount) };
    case "reset":
      key.reset(now, false);
      return {};
    default:
      return { value: key.number(now, operation, operation === "ban" ? banLength(amount) : amount, policy) };
  }
}
