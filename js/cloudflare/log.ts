import type { Costs } from "../types.ts";
import type { TollgateEnv } from "./env.ts";

/** How a question came in. */
export type Via = "gateway" | "demo" | "api" | "rpc" | "object";

/** A hit that was denied, or something that could not be asked. */
export interface Trouble {
  readonly event: "denied" | "error";
  readonly via: Via;
  readonly key: string;
  /** Those that denied; those that could not be asked. */
  readonly policies: readonly string[];
  readonly cost: number;
  readonly [more: string]: unknown;
}

/** A state that has ended: what `beforeClean` is told elsewhere. */
export interface Ended {
  readonly policy: string;
  readonly algorithm: string;
  readonly count: number;
  readonly expiredAt: number;
}

/** Costs as a log has them: the highest of several, and all of them. */
export const inLog = (costs: Costs): { readonly cost: number; readonly costs?: Costs } =>
  typeof costs === "number" ? { cost: costs } : { cost: Math.max(0, ...Object.values(costs)), costs };

/** One structured line. */
export const say = (line: { readonly event: string; readonly [name: string]: unknown }): void =>
  console.log(JSON.stringify(line));

/** One line and one data point for a denial or an error. */
export function report(env: TollgateEnv, trouble: Trouble): void {
  const { event, via, key, policies, cost } = trouble;
  say(trouble);
  measure(env, [event, key, policies.join("+"), via], [cost]);
}

/** One line and one data point for a state that has ended. */
export function reportEnded(env: TollgateEnv, key: string, ended: Ended): void {
  const { policy, algorithm, count, expiredAt } = ended;
  say({ event: "expired", key, ...ended });
  measure(env, ["expired", key, policy, algorithm], [count, expiredAt]);
}

/** A data point, where there is a place for it, indexed by the key: an index has 96 bytes at the most. */
function measure(
  env: TollgateEnv,
  blobs: [event: string, key: string, ...string[]],
  doubles: number[],
): void {
  env.TOLLGATE_METRICS?.writeDataPoint({ indexes: [blobs[1].slice(0, 32)], blobs, doubles });
}
