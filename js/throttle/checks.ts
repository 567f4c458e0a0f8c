import { checkFunctions, checkNames } from "../checks.ts";
import { refused } from "../error.ts";
import type { ThrottleOptions } from "./throttle.ts";

// Written out, since a bundler could not leave out what is worked out here.

/** What can be asked for. */
export const acquireNames = ["key", "cost", "signal", "maxWait", "priority"];
/** What can be asked for by every call of a function. */
export const wrapNames = ["key", "cost", "maxWait", "priority"];
const optionNames = [
  "clock",
  "timer",
  "maxQueue",
  "shared",
  "keyOf",
  "retries",
  "maxWait",
  "maxHold",
  "fetch",
];

/** Checks the options of a throttle; its limiter checks the policies. */
export function checkThrottleOptions(options: ThrottleOptions): void {
  checkNames(options, optionNames);
  checkFunctions(options, ["clock", "timer", "keyOf", "fetch"]);
  const { maxQueue = 0, maxWait = 0, maxHold = 0, retries = 0, shared } = options;
  checkFromZero("maxQueue", maxQueue, "calls");
  checkFromZero("maxWait", maxWait, "milliseconds");
  checkFromZero("maxHold", maxHold, "milliseconds");
  checkFromZero("retries", retries, "times");
  if (shared !== undefined && typeof shared !== "string")
    throw refused("invalid_option", "shared", shared, "a string, the name that all tabs share the budget by");
}

/** Checks that a number is 0 or more; infinity is accepted. */
export function checkFromZero(name: string, given: unknown, what: string): void {
  if (typeof given !== "number" || !(given >= 0))
    throw refused("invalid_option", name, given, `a number of ${what}, 0 or more`);
}
