import { checkVersion } from "./checks.ts";
import { Area, takenBit } from "./core/area.ts";
import { answered, giveNumbers, numbers } from "./core/border.ts";
import { failed, failure, isTime, notNumbers } from "./core/failure.ts";
import { held, kept } from "./core/held.ts";
import { lists, placed, unreadable, unreadableAs } from "./core/states.ts";
import { rust } from "./core/wasm.ts";
import { refused, wrongAmount } from "./error.ts";
import { most } from "./numbers.ts";
import { defaults } from "./options.ts";
import { type ReadPolicies, readPolicies } from "./policies.ts";
import type { Decision, Origin, Policies, State } from "./types.ts";

/** What can be asked of a key. */
export type Operation = "hit" | "peek" | "inc" | "set" | "get" | "expiresAt" | "reset";

/** How Rust is asked, of a key in a slot. */
const asked: Record<
  Operation,
  (desk: number, slot: number, amount: number, now: number, position: number) => number
> = {
  hit: (desk, slot, cost, now) => rust().hit(desk, slot, cost, now),
  peek: (desk, slot, cost, now) => rust().hit_with(desk, slot, cost, now, 0, 0),
  inc: (desk, slot, cost, now, position) => rust().inc(desk, slot, cost, now, position),
  set: (desk, slot, count, now, position) => rust().set(desk, slot, count, now, position),
  get: (desk, slot, _, now, position) => rust().get(desk, slot, now, position, 0),
  expiresAt: (desk, slot, _, now, position) => rust().get(desk, slot, now, position, 1),
  reset: () => 0,
};

// Marked, so that a bundler can leave this out where step is not used.
const operations = /* @__PURE__ */ Object.keys(asked);

/** Those that ask one policy. */
const namesPolicy = /* @__PURE__ */ operations.slice(2, 6);

/** Those that need not be followed by a write, though what was stored may have ended. */
const reads = ["peek", "get", "expiresAt"];

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
  if (!operations.includes(operation))
    throw refused("invalid_operation", "operation", operation, `one of ${operations.join(", ")}`);
  if (typeof amount !== "number") throw notNumbers(amount, now);
  if (!isTime(now))
    throw refused("invalid_time", "now", now, `milliseconds since the epoch, from 0 to ${most}`);
  if (policy !== undefined && typeof policy !== "string")
    throw refused("unknown_policy", "policy", policy, "a policy's name");
  const own = readPolicies(policies);
  const desk = deskOf(own);
  const { names, origins } = own;
  const position = namesPolicy.includes(operation) ? own.position(policy) : 0;
  const area = new Area(names);
  const afresh = new Set<string>();
  let slot = -1;
  const done = (status: number): number => {
    if (status === failed) throw wrongAmount("count", amount, answered());
    if (status < 0) throw failure(status, amount, now);
    if ((status & takenBit) !== 0) slot = area.slot();
    return status;
  };
  try {
    if (state != null) {
      giveNumbers(read(state, origins, afresh));
      const status = rust().load(desk, -1, now, 1);
      if (status === failed) throw unreadableAs(origins[answered()] as Origin);
      done(status);
    }
    const status = done(asked[operation](desk, slot, amount, now, position));
    const answer = answerTo(operation, area, status);
    rust().save(desk, operation === "reset" ? -1 : slot, now);
    const expiresAt = area.number();
    const after =
      expiresAt === 0 ? null : { version: 2 as const, policies: origins, states: lists(numbers()) };
    const changed = plain(after) !== plain(state) && !(after === null && reads.includes(operation));
    return { ...answer, state: after, changed, expiresAt, afresh: [...afresh] };
  } finally {
    if (slot >= 0) rust().release(desk, slot);
  }
}

const desks = /* @__PURE__ */ new WeakMap<ReadPolicies, number>();

/** The slab in which one key's states at a time are worked on. */
function deskOf(policies: ReadPolicies): number {
  let desk = desks.get(policies);
  if (desk === undefined) {
    const { slab, drop_slab: drop } = rust();
    desk = kept(policies, slab(held(policies), 0, 1, ...defaults), drop, tooLong);
    desks.set(policies, desk);
  }
  return desk;
}

const tooLong = (limit: unknown) => {
  const accepts =
    "at most 1000 where a sliding_window's log is stored outside the process, or use sliding_counter";
  return refused("invalid_policy", "limit", limit, accepts);
};

/** What an operation answers: a decision, a number, or nothing. */
function answerTo(operation: Operation, area: Area, status: number): Pick<Step, "decision" | "value"> {
  if (operation === "reset") return {};
  return operation === "hit" || operation === "peek"
    ? { decision: area.decision(status) }
    : { value: area.number() };
}

/** A state as a text that is the same for the same state. */
const plain = (state: State | null): string =>
  state == null
    ? ""
    : JSON.stringify([
        state.policies.map(({ name, algorithm, scale }) => [name, algorithm, scale]),
        state.states,
      ]);

/** What was stored, as Rust takes it. */
function read({ version, policies, states }: State, own: readonly Origin[], afresh: Set<string>): number[] {
  const isNone = (policy: Origin | null | undefined) =>
    typeof policy?.name !== "string" ||
    typeof policy.algorithm !== "string" ||
    typeof policy.scale !== "number";
  // By findIndex, which does not pass over what a list lacks.
  if (!Array.isArray(policies) || policies.findIndex(isNone) >= 0)
    throw refused("invalid_state", "state.policies", policies, "what step answered");
  if (!Number.isSafeInteger(version)) throw unreadable("it has no version");
  checkVersion("stored state", version);
  return placed(states, policies, own, afresh);
}
