import { outOfMemory } from "../../errors/error.ts";
import { readState, stateOf } from "../../limiter/stored-states.ts";
import type { ReadPolicies } from "../../policy/policies.ts";
import { algorithms, schema, status, storedLimitText } from "../../wasm/generated.ts";
import type { KeyStates } from "../../wasm/one-key.ts";
import { type SavedState, ShapeNames, saved } from "../../wasm/states.ts";
import type { StepOn } from "../shared.ts";

/** A state of a shape that no policy has, and when it ends. */
interface Former {
  readonly state: SavedState;
  readonly endsAt: number;
}

/**
 * Returns what `step` does for hits and peeks, by the small wasm, whose class is an argument: it is in another file. That
 * wasm knows one shape for each policy, so the states of former shapes stay here.
 */
export const keyStep = (policies: ReadPolicies, States: typeof KeyStates): StepOn => {
  /** Returns when a state ends by its own numbers; undefined if it is invalid. */
  const endOf = ({ shape: [, algorithm, scale], state, open }: SavedState, now: number) => {
    // Reservations alone make a state of it, and a shared budget has none.
    if (algorithm === algorithms.concurrency.position) return open.length > 0 ? undefined : 0;
    const key = new States(ofShape, flat([{ shape: [0, algorithm, scale], state, open }]));
    const code = key.load(now);
    if (code === status.outOfMemory) throw outOfMemory();
    if (code < 0) return undefined;
    return key.saved(true).expiresAt;
  };
  const isOwn = ({ shape: [name, algorithm, scale] }: SavedState) =>
    name < policies.names.length && policies.algorithm(name) === algorithm && policies.scale(name) === scale;

  return (state, operation, cost, now) => {
    const tooLong = policies.origins.findIndex(
      ({ algorithm }, at) => algorithm === "sliding_window" && policies.limit(at) > schema.maxStoredLog,
    );
    if (tooLong >= 0) throw policies.unfit(status.at - tooLong, storedLimitText);
    const names = new ShapeNames(policies.names);
    const before = state === null ? undefined : readState(state, names);
    const all = saved(before?.numbers ?? []);
    const ends = all.map((each, index) => {
      const endsAt = endOf(each, now);
      if (endsAt === undefined) throw before?.error(index);
      return endsAt;
    });
    const own = all.filter(isOwn);
    const live = new Set(
      own.filter((each) => (ends[all.indexOf(each)] as number) > now).map(({ shape }) => shape[0]),
    );
    const others = all.filter((each) => !isOwn(each));
    const former = kept(
      others.map((state) => ({ state, endsAt: ends[all.indexOf(state)] as number })),
      now,
    );
    const key = new States(policies, flat(own));
    if (key.load(now, former.length > 0) < 0) throw outOfMemory();
    const formerNumbers = flat(former.map(({ state }) => state)).numbers;
    const loaded = [...key.saved(true).numbers, ...formerNumbers];
    const decision = key.hit(cost, now, operation === "hit");
    const after = key.saved(true);
    const numbers = [...after.numbers, ...formerNumbers];
    const expiresAt = Math.max(after.expiresAt, ...former.map(({ endsAt }) => endsAt));
    const afresh = new Set(others.map(({ shape }) => shape[0]));
    return {
      decision,
      state: stateOf(numbers, names),
      changed: `${numbers}` !== `${loaded}`,
      expiresAt,
      afresh: policies.names.filter((_, position) => afresh.has(position) && !live.has(position)),
    };
  };
};

/** Without policies, the shape of a state is all that is known. */
const ofShape = { numbers: [], names: [], denied: 0 };

/** Returns states in the format that Rust loads. */
const flat = (states: readonly SavedState[]) => ({
  numbers: states.flatMap(({ shape, state, open }) => {
    const numbers = [...shape, state.length, ...state, ...open.flat()];
    return [numbers.length, ...numbers];
  }),
  expiresAt: 0,
});

/** Returns the states that have not ended; of more than `maxFormer` not those that end first. */
function kept(former: readonly Former[], now: number): Former[] {
  const live = former.filter(({ endsAt }) => endsAt > now);
  while (live.length > schema.maxFormer) {
    const first = Math.min(...live.map(({ endsAt }) => endsAt));
    live.splice(
      live.findIndex(({ endsAt }) => endsAt === first),
      1,
    );
  }
  return live;
}
