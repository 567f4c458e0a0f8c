import { Area } from "./core/area.ts";
import { giveNumbers, giveText, numbers, text } from "./core/border.ts";
import { failure, notNumbers } from "./core/failure.ts";
import { flat, lists } from "./core/states.ts";
import { between, clean, parts } from "./core/text.ts";
import { rust } from "./core/wasm.ts";
import { refused } from "./error.ts";
import { readPolicies } from "./policies.ts";
import type { Decision, Policies, State } from "./types.ts";

/** What can be asked of a key. */
export type Operation = "hit" | "peek" | "inc" | "set" | "get" | "expiresAt" | "reset";

/** In the order of their numbers in Rust. */
const operations: readonly string[] = ["hit", "peek", "inc", "set", "get", "expiresAt", "reset"];

/** Those that ask one policy. */
const namesPolicy: readonly string[] = operations.slice(2, 6);

/** What a step comes to. */
export interface Step {
  /** The answer to a hit or a peek. */
  readonly decision?: Decision;
  /** The answer to `inc`, `set` and `get` (the count), and to `expiresAt` (a time). */
  readonly value?: number;
  /** What is to be stored now; `null` when the key is as if it had never been used. */
  readonly state: State | null;
  /** Whether that differs from what was stored. */
  readonly changed: boolean;
  /** When what is stored ends, in milliseconds since the epoch; 0 when there is nothing. */
  readonly expiresAt: number;
  /** The names of the policies that started afresh because their algorithm changed. */
  readonly afresh: readonly string[];
}

/**
 * Does one operation on what was stored of a key. Any store that can load, compare and save can be built on it.
 * `amount` is the cost, or for `set` the count. With several policies, `policy` names one for all but hit, peek and reset.
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
  const number = operations.indexOf(operation);
  if (number < 0)
    throw refused("invalid_operation", "operation", operation, `one of ${operations.join(", ")}`);
  if (typeof amount !== "number" || typeof now !== "number") throw notNumbers(amount, now);
  if (policy !== undefined && typeof policy !== "string")
    throw refused("unknown_policy", "policy", policy, "a policy's name");
  const read = readPolicies(policies);
  const position = namesPolicy.includes(operation) ? read.position(policy) : 0;
  const version = state == null ? -1 : give(state);
  const status = rust().step(read.number, version, number, amount, now, position);
  if (status < 0) throw failure(status, amount, now);
  const [changed, expiresAt, ...states] = numbers() as [number, number, ...number[]];
  const rest = {
    state: expiresAt === 0 ? null : { version: 1 as const, policies: read.origins, states: lists(states) },
    changed: changed === 1,
    expiresAt,
    afresh: parts(text()),
  };
  if (operation === "reset") return rest;
  const area = new Area(read.names);
  if (operation === "hit" || operation === "peek") return { decision: area.decision(status), ...rest };
  return { value: area.number(), ...rest };
}

/** Gives Rust what was stored. Answers its version. */
function give(state: State): number {
  if (typeof state !== "object" || !Array.isArray(state.policies)) {
    throw refused("invalid_state", "state", state, "what step answered, or null");
  }
  const madeBy = state.policies.map((policy) => {
    const { name, algorithm, scale } = policy ?? {};
    if (typeof name !== "string" || typeof algorithm !== "string" || typeof scale !== "number")
      throw refused("invalid_state", "state.policies", state.policies, "what step answered");
    return clean(name) + between + clean(algorithm) + between + scale + between;
  });
  giveText(madeBy.join(""));
  giveNumbers(flat(state.states));
  return typeof state.version === "number" && state.version >= 0 ? state.version : Number.NaN;
}
