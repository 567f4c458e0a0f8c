import { outOfMemory } from "../../errors/error.ts";
import { readState, stateOf } from "../../limiter/stored-states.ts";
import type { ReadPolicies } from "../../policy/policies.ts";
import { schema, status, storedLimitText } from "../../wasm/generated.ts";
import type { KeyStates } from "../../wasm/one-key.ts";
import { endOf, type SavedRow, ShapeNames, saved } from "../../wasm/states.ts";
import type { StepOn } from "../shared.ts";

/**
 * Returns what `step` does for hits and peeks, by the small wasm, whose class is an argument: it is in another file. That
 * wasm reads the rows of the policies; the others stay as they are.
 */
export const keyStep = (policies: ReadPolicies, States: typeof KeyStates): StepOn => {
  const isOwn = ([name, [algorithm, scale]]: SavedRow) =>
    name < policies.names.length && policies.algorithm(name) === algorithm && policies.scale(name) === scale;

  return (state, operation, cost, now) => {
    const tooLong = policies.origins.findIndex(
      ({ algorithm }, at) => algorithm === "sliding_window" && policies.limit(at) > schema.maxStoredLog,
    );
    if (tooLong >= 0) throw policies.unfit(status.at - tooLong, storedLimitText);
    const names = new ShapeNames(policies.names);
    const before = state === null ? undefined : readState(state, names);
    const rows = saved(before?.numbers ?? []);
    const own = rows.filter(isOwn);
    const others = rows.filter((row) => !isOwn(row) && endOf(row[1]) > now);
    const key = new States(policies, { numbers: flat(own), expiresAt: 0 });
    const code = key.load(now);
    if (code === status.outOfMemory) throw outOfMemory();
    if (code < 0) throw before?.error(rows.indexOf(own[status.at - code] as SavedRow));
    const loaded = key.saved(true).numbers;
    const decision = key.hit(cost, now, operation === "hit");
    const after = key.saved(true);
    const live = new Set(own.filter(([, row]) => endOf(row) > now).map(([name]) => name));
    return {
      decision,
      state: stateOf([...after.numbers, ...flat(others)], names, now),
      changed: `${after.numbers}` !== `${loaded}`,
      expiresAt: Math.max(after.expiresAt, ...others.map(([, row]) => endOf(row))),
      afresh: policies.names.filter((_, at) => !live.has(at) && others.some(([name]) => name === at)),
    };
  };
};

/** Returns rows in the format that Rust loads. */
const flat = (rows: readonly SavedRow[]): number[] =>
  rows.flatMap(([name, row]) => [row.length + 1, name, ...row]);
