// The code of learned limits, a file of its own: a page loads it when a throttle has the option `learn`.

export { LearnedLimits } from "./learned-limits.ts";
