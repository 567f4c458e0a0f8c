import type { TollgateEnv } from "./env.ts";

/** One structured line. */
export const say = (line: { readonly event: string; readonly [name: string]: unknown }): void =>
  console.log(JSON.stringify(line));

/** A data point, where there is a place for it: the event and the key, indexed by the key. */
export function measure(env: TollgateEnv, event: string, key: string, cost: number): void {
  env.TOLLGATE_METRICS?.writeDataPoint({ indexes: [key.slice(0, 96)], blobs: [event, key], doubles: [cost] });
}
