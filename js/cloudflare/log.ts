import { printableJson } from "../printable.ts";
import type { Costs, Decision } from "../types.ts";
import type { TollgateEnv } from "./env.ts";

/** The interface by which an operation came in. */
export type Via = "gateway" | "demo" | "api" | "rpc" | "object";

/** A denied hit, or an operation whose object did not respond. */
export interface LogEntry {
  readonly event: "denied" | "error";
  readonly via: Via;
  readonly key: string;
  /** The policies that denied the hit; after a failure all policies of the operation. */
  readonly policies: readonly string[];
  /** Set if a ban or an exception denied the hit. */
  readonly reason?: Decision["reason"] | undefined;
  readonly cost: number;
  readonly [more: string]: unknown;
}

/** A state that has ended, as `beforeClean` of a limiter gets it. */
export interface Ended {
  readonly policy: string;
  readonly algorithm: string;
  readonly count: number;
  readonly expiredAt: number;
}

/** Returns the fields of costs in a log line: the highest of several, and all of them. */
export const inLog = (costs: Costs): { readonly cost: number; readonly costs?: Costs } =>
  typeof costs === "number" ? { cost: costs } : { cost: Math.max(0, ...Object.values(costs)), costs };

/** Logs one line of JSON. */
export const log = (line: { readonly event: string; readonly [name: string]: unknown }): void =>
  console.log(printableJson(line));

/** Logs one line and one data point for a denial or an error. */
export function report(env: TollgateEnv, entry: LogEntry): void {
  const { event, via, key, policies, cost } = entry;
  log(entry);
  measure(env, [event, key, policies.join("+"), via], [cost]);
}

/** Logs one line and one data point for a state that has ended. */
export function reportEnded(env: TollgateEnv, key: string, ended: Ended): void {
  const { policy, algorithm, count, expiredAt } = ended;
  log({ event: "expired", key, ...ended });
  measure(env, ["expired", key, policy, algorithm], [count, expiredAt]);
}

/** Writes a data point if there is a dataset, indexed by the start of the key: an index has at most 96 bytes. */
function measure(
  env: TollgateEnv,
  blobs: [event: string, key: string, ...string[]],
  doubles: number[],
): void {
  env.TOLLGATE_METRICS?.writeDataPoint({ indexes: [blobs[1].slice(0, 32)], blobs, doubles });
}
