import { checkFunctions, checkNames } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { AcquireOptions, ThrottleOptions } from "./basic-throttle.ts";

// Written out, since a bundler cannot drop a computed list that is not used.

const acquireNames = ["key", "cost", "signal", "maxWait", "priority", "tenant", "onChange"];

/** The names of the options of `run`. */
export const runNames: readonly string[] = [
  ...["key", "cost", "signal", "maxWait", "priority", "tenant", "onChange"],
  ...["ttl", "cancelOnThrow"],
];
const optionNames = [
  "clock",
  "timer",
  "maxQueue",
  "shared",
  "keyOf",
  "retries",
  "retry",
  "retryBudget",
  "learn",
  "random",
  "fair",
  "maxWait",
  "maxHold",
  "fetch",
  "offline",
  "onChange",
];

/** Checks the options of a throttle; its limiter checks the policies. */
export function checkThrottleOptions(options: ThrottleOptions): void {
  checkNames(options, optionNames);
  checkFunctions(options, ["clock", "timer", "keyOf", "random", "fair", "fetch", "onChange"]);
  checkFromZero(options, "maxQueue", "calls");
  checkFromZero(options, "maxWait");
  checkFromZero(options, "maxHold");
  checkFromZero(options, "retries", "times");
  checkFromZero(options, "retryBudget", "retries");
  const { shared, offline = "fail", retry = "any", learn = false } = options;
  if (retry !== "any" && retry !== "safe")
    throw invalidField("invalid_option", "retry", retry, '"any" or "safe"');
  if (typeof learn !== "boolean") throw invalidField("invalid_option", "learn", learn, "a boolean");
  if (learn && shared !== undefined)
    throw invalidField(
      "invalid_option",
      "learn",
      learn,
      "accepted with shared: other tabs use the same limits",
    );
  if (offline !== "fail" && offline !== "wait")
    throw invalidField("invalid_option", "offline", offline, '"wait" or "fail"');
  if (shared !== undefined && typeof shared !== "string")
    throw invalidField("invalid_option", "shared", shared, "a string");
}

/** Checks the options of `acquire`, except the key and the cost, which the limiter checks. */
export function checkAcquireOptions(options: AcquireOptions): void {
  checkNames(options, acquireNames);
  checkFunctions(options, ["onChange"]);
  const { signal, priority = 0 } = options;
  if (signal !== undefined && !isSignal(signal))
    throw invalidField("invalid_option", "signal", signal, "an AbortSignal");
  checkFromZero(options, "maxWait");
  if (typeof priority !== "number" || Number.isNaN(priority))
    throw invalidField("invalid_option", "priority", priority, "a number");
}

/** Checks the tenant of a call, if it has one. */
export function checkTenant(tenant: unknown): void {
  if (
    tenant !== undefined &&
    typeof tenant !== "bigint" &&
    typeof tenant !== "string" &&
    !Number.isFinite(tenant)
  )
    throw invalidField("invalid_option", "tenant", tenant, "a string, finite number or bigint");
}

/** Returns whether a value has the methods of a signal that are used: a missing one would fail halfway. */
const isSignal = (signal: Partial<AbortSignal> | null) =>
  typeof signal?.throwIfAborted === "function" &&
  typeof signal.addEventListener === "function" &&
  typeof signal.removeEventListener === "function";

/** Checks that an option, if present, is a number of at least 0; infinity is accepted. */
export function checkFromZero<Name extends string>(
  options: { readonly [name in Name]?: unknown },
  name: Name,
  what = "milliseconds",
): void {
  const { [name]: given = 0 } = options;
  if (typeof given !== "number" || !(given >= 0))
    throw invalidField("invalid_option", name, given, `a number of ${what}, 0 or more`);
}
