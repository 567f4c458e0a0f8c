import { dollars } from "../policy/money.ts";
import type { Decision, Key } from "../types.ts";

/** The reserved amounts of a call, by the names of the policies. */
export type Reserved = Readonly<Record<string, number>>;

/**
 * The error of a call that its budget denies. Nothing was sent or charged.
 *
 * @example
 * ```ts
 * import { RateLimiter } from "tollgate";
 * import { BudgetDenied, budgetRun } from "tollgate/ai";
 *
 * const limiter = new RateLimiter({ name: "requests", algorithm: "token_bucket", capacity: 1, refillRate: 1 });
 * const run = budgetRun({ limiter, key: "user:42" });
 * const ask = () =>
 *   run(async () => "hello").catch((error: unknown) => {
 *     if (!(error instanceof BudgetDenied)) throw error;
 *     return `try again in ${error.retryAfter} ms`;
 *   });
 * await ask();
 * console.log(await ask()); // => "try again in 1000 ms"
 * ```
 */
export class BudgetDenied extends Error {
  /** The same for all such errors. */
  override readonly name = "BudgetDenied";
  /** The HTTP status that fits. */
  readonly status = 429;
  /** The decision. */
  readonly decision: Decision;
  /** Milliseconds until the same call is allowed, if no other comes before: `Infinity` for never. */
  readonly retryAfter: number;
  /** The key whose budget denied. */
  readonly key: Key;
  /** The amounts that the call would have reserved, by the names of the policies. */
  readonly reserved: Reserved;

  /** @internal */
  constructor(decision: Decision, key: Key, reserved: Reserved) {
    super(messageOf(decision, reserved));
    this.decision = decision;
    this.retryAfter = decision.retryAfter;
    this.key = key;
    this.reserved = reserved;
  }
}

function messageOf(decision: Decision, reserved: Reserved): string {
  const { violated, retryAfter, limit, reason, policy } = decision;
  if (reason === "full" || reason === "error") return `the budget denies the call: ${reasons[reason]}`;
  const policies = violated.join(", ");
  if (retryAfter !== Number.POSITIVE_INFINITY)
    return `the budget denies the call by ${policies}: try again in ${waitInWords(retryAfter)}`;
  // The limit is that of this policy.
  const amount = violated.includes(policy) ? reserved[policy] : undefined;
  return amount === undefined
    ? `the budget never allows the call by ${policies}`
    : `the budget never allows the call by ${policies}: it may use ${ofLimit(policy, amount, limit)}; set its most output tokens, or the option estimate`;
}

const reasons = { full: "the limiter is full", error: "the limiter failed" } as const;

const units: Readonly<Record<string, string>> = {
  tokens: " tokens",
  inputTokens: " input tokens",
  outputTokens: " output tokens",
};

/** Returns an amount and its limit, with their unit. */
function ofLimit(policy: string, amount: number, limit: number): string {
  if (policy === "usd") return `$${dollars(amount)} of $${dollars(limit)}`;
  return `${amount.toLocaleString("en-US")} of ${limit.toLocaleString("en-US")}${units[policy] ?? ""}`;
}

const times = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Returns a wait in its largest unit and the next one, rounded up. */
function waitInWords(milliseconds: number): string {
  const seconds = Math.max(Math.ceil(milliseconds / 1_000), 1);
  const at = times.findIndex(([, size]) => seconds >= size);
  const [unit, size] = times[at] ?? times[3];
  const [next, part] = times[at + 1] ?? times[3];
  const parts = Math.ceil(seconds / part);
  const whole = Math.floor((parts * part) / size);
  const rest = parts - (whole * size) / part;
  return rest === 0 ? counted(whole, unit) : `${counted(whole, unit)} ${counted(rest, next)}`;
}

const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? "" : "s"}`;
