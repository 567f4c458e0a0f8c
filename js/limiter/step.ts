import { invalidField, outOfMemory, wrongAmount, wrongInc } from "../errors/error.ts";
import { banLength, banPosition, uncountable } from "../policy/bans.ts";
import { ReadPolicies } from "../policy/policies.ts";
import { isTime } from "../time.ts";
import type { Decision, Policies, State } from "../types.ts";
import { operation as counting, hitKind, status } from "../wasm/generated.ts";
import { Results } from "../wasm/results.ts";
import { SlotLimiter } from "../wasm/slot-limiter.ts";
import { ShapeNames } from "../wasm/states.ts";
import { readOptions } from "./options.ts";
import { loadStates, noRoom, readState, savedNumbers, stateOf } from "./stored-states.ts";

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
  const own = new ReadPolicies(policies);
  const names = new ShapeNames(own.names);
  const before = state == null ? undefined : readState(state, names);
  const limiter = new SlotLimiter(own, readOptions({}), false, true);
  try {
    const afresh = loadStates(limiter, before, now);
    // Without what has ended: a read or a denied hit needs no write for that.
    const loaded = `${savedNumbers(limiter, slotIn(limiter), now)[1]}`;
    const result = operation === "reset" ? undefined : work(limiter, own, operation, amount, now, policy);
    const isGone = result === undefined && !isLeftAfterReset(limiter, now);
    const [expiresAt, after] = savedNumbers(limiter, isGone ? -1 : slotIn(limiter), now);
    return {
      ...result,
      state: stateOf(after, names, now),
      // A stored state that has ended is removed by a reset: it would come back if the clock stepped back.
      changed: `${after}` !== loaded || (isGone && before !== undefined),
      expiresAt,
      afresh: own.names.filter((_, position) => (afresh >>> position) & 1),
    };
  } finally {
    limiter.free();
  }
}

/** Returns the only slot of a limiter; -1 if it has none. */
const slotIn = (limiter: SlotLimiter): number => limiter.moves()[0] ?? -1;

/** Resets the states. Returns true if something is left: open reservations, or states of other names. */
function isLeftAfterReset(limiter: SlotLimiter, now: number): boolean {
  const slot = slotIn(limiter);
  if (slot < 0) return false;
  const left = limiter.run(({ reset }, index, generation) => reset(index, generation, slot, 0, now));
  if (left < 0) throw outOfMemory();
  return left > 0;
}

/** Performs an operation other than `reset`. Returns the decision or the number. */
function work(
  limiter: SlotLimiter,
  own: ReadPolicies,
  operation: Exclude<Operation, "reset">,
  amount: number,
  now: number,
  policy: string | undefined,
): Pick<Step, "decision" | "value"> {
  const slot = slotIn(limiter);
  if (operation === "hit" || operation === "peek") {
    const code = limiter.run(({ hit_with }, index, generation) =>
      hit_with(index, generation, slot, amount, now, 0, hitKind[operation]),
    );
    checkStatus(own, operation, code);
    if (code < 0) throw wrongAmount("cost", amount);
    return { decision: new Results(own.names).decision(limiter.instance, code) };
  }
  const isBan = operation === "ban" || operation === "unban";
  if (operation === "ban") banLength(amount);
  const position = isBan ? banPosition(own, policy) : own.position(policy);
  const count = (kind: number) =>
    limiter.run(({ count }, index, generation) =>
      count(index, generation, kind, slot, amount, now, position),
    );
  const value = count(counting[operation]);
  checkStatus(own, operation, value);
  if (value < 0)
    throw operation === "set" ? wrongAmount("count", amount, count(counting.maxCount)) : wrongInc(amount);
  return { value };
}

/** Throws if the status says that there is no memory, or that a policy counts reservations alone. */
function checkStatus(own: ReadPolicies, operation: Operation, code: number): void {
  if (code === status.outOfMemory || code === status.manyRows) throw noRoom(code);
  if (code > status.uncountable || code <= status.at) return;
  throw uncountable(own, status.uncountable - code, operation);
}
