import { checkVersion, storedVersion } from "../checks.ts";
import { invalidField, reserveOnly, wrongAmount, wrongInc } from "../errors/error.ts";
import { ReadPolicies } from "../policy/policies.ts";
import { isTime } from "../time.ts";
import type { Decision, Origin, Policies, State } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { operation as counting, hitKind, status } from "../wasm/generated.ts";
import { Results } from "../wasm/results.ts";
import { outOfMemory, Slab } from "../wasm/slab.ts";
import {
  type CopiedStates,
  copiedLists,
  copiedStates,
  loadable,
  saved,
  unreadable,
  unreadableAs,
} from "../wasm/states.ts";
import { readOptions } from "./options.ts";

/** The operations on a key. */
export type Operation = "hit" | "peek" | "inc" | "set" | "get" | "expiresAt" | "reset";

const operations: readonly string[] = ["hit", "peek", "inc", "set", "get", "expiresAt", "reset"];

/** Operations that only read. No write is needed after them, even if the stored state has ended. */
const reads: readonly string[] = ["peek", "get", "expiresAt"];

/** The result of a step. */
export interface Step {
  /** The decision of a hit or a peek. */
  readonly decision?: Decision;
  /** The result of `inc`, `set` and `get` (the count), and of `expiresAt` (a time). */
  readonly value?: number;
  /** The state to store now; `null` if the key is as if never used. */
  readonly state: State | null;
  /** True if that differs from the stored state. */
  readonly changed: boolean;
  /** When the state ends, in milliseconds since the epoch; 0 if there is none. */
  readonly expiresAt: number;
  /** The names of the policies that started afresh because their algorithm changed. */
  readonly afresh: readonly string[];
}

/**
 * Performs one operation on the stored state of a key. Any store that can load, compare and save can be built on it.
 * `amount` is the cost, or for `set` the count. With several policies, `policy` names one for all but hit, peek and
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
  const afresh = new Set<string>();
  const stored = state == null ? undefined : readState(state);
  const slab = new Slab(own, readOptions({}), false, true);
  try {
    if (stored !== undefined) {
      const numbers = loadable(stored, stored.policies, own.origins, afresh);
      const code = slab.load(-1, now, numbers, true);
      if (code <= status.at) throw unreadableAs(own.origins[status.at - code]);
      if (code < 0) throw outOfMemory();
    }
    const result = work(slab, own, operation, amount, now, policy);
    const slot = operation === "reset" ? -1 : slotIn(slab);
    const expiresAt =
      slot < 0 ? 0 : slab.run(({ save }, index, generation) => save(index, generation, slot, now));
    if (expiresAt < 0) throw outOfMemory();
    const after =
      expiresAt === 0
        ? null
        : { version: storedVersion, policies: own.origins, ...saved(slab.instance.list(), own.names.length) };
    const changed = plain(after) !== plain(stored) && !(after === null && reads.includes(operation));
    return { ...result, state: after, changed, expiresAt, afresh: [...afresh] };
  } finally {
    slab.free();
  }
}

/** Returns the only slot of a slab; -1 if it has none. */
const slotIn = (slab: Slab): number => slab.moves()[0] ?? -1;

/** Performs the operation. Returns the decision or the number; neither for `reset`. */
function work(
  slab: Slab,
  own: ReadPolicies,
  operation: Operation,
  amount: number,
  now: number,
  policy: string | undefined,
): Pick<Step, "decision" | "value"> {
  if (operation === "reset") return {};
  const slot = slotIn(slab);
  if (operation === "hit" || operation === "peek") {
    const code = slab.run(({ hit_with }, index, generation) =>
      hit_with(index, generation, slot, amount, now, 0, hitKind[operation]),
    );
    if (code === status.outOfMemory) throw outOfMemory();
    checkCountable(own, operation, code);
    if (code < 0) throw wrongAmount("cost", amount);
    return { decision: new Results(own.names).decision(slab.instance, code) };
  }
  const position = own.position(policy);
  const count = (kind: number) =>
    slab.run(({ count }, index, generation) => count(index, generation, kind, slot, amount, now, position));
  const value = count(counting[operation]);
  if (value === status.outOfMemory) throw outOfMemory();
  checkCountable(own, operation, value);
  if (value < 0)
    throw operation === "set" ? wrongAmount("count", amount, count(counting.maxCount)) : wrongInc(amount);
  return { value };
}

/** Throws `reserve_only` if the status says that a policy counts reservations alone. */
function checkCountable(own: ReadPolicies, operation: Operation, code: number): void {
  if (code > status.reserveOnly || code <= status.at) return;
  throw reserveOnly(own.names[status.reserveOnly - code], operation);
}

/** A state that was copied. */
type Copied = Pick<State, "policies"> & CopiedStates;

/** Copies a stored state, each part read once, and checks the copy. */
function readState(state: State): Copied {
  if (typeof state !== "object")
    throw invalidField("invalid_state", "state", state, "a state that step returned");
  const { version, policies, states, earlier, reservations } = state;
  if (!Array.isArray(policies))
    throw invalidField("invalid_state", "state.policies", policies, "an array that step returned");
  const origins = elements(policies).map((origin) => {
    const { name, algorithm, scale } = (origin ?? {}) as Partial<Origin>;
    if (typeof name !== "string" || typeof algorithm !== "string" || typeof scale !== "number")
      throw invalidField("invalid_state", "state.policies", policies, "an array that step returned");
    return { name, algorithm, scale };
  });
  if (!Number.isSafeInteger(version)) throw unreadable("it has no version");
  checkVersion(version);
  return {
    policies: origins,
    states: copiedStates(states, origins.length),
    earlier: copiedLists(earlier ?? []),
    reservations: copiedLists(reservations ?? []),
  };
}

/** Returns a text for comparing states. */
const plain = (state: Copied | null | undefined): string =>
  state == null
    ? ""
    : JSON.stringify([
        state.policies.map(({ name, algorithm, scale }) => [name, algorithm, scale]),
        state.states,
        state.earlier,
        state.reservations,
      ]);
