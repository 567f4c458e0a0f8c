import type { RedisStats } from "./types.ts";

/** The counters of a limiter. */
export type Counters = { -readonly [Name in Exclude<keyof RedisStats, "keys">]: number };

export const newCounters = (): Counters => ({
  calls: 0,
  operations: 0,
  localDenials: 0,
  leased: 0,
  scriptLoads: 0,
  bases: 0,
  restored: 0,
  unanswered: 0,
  decidedWithout: 0,
  evicted: 0,
});
