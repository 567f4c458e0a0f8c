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

function messageOf({ violated, retryAfter, limit, reason }: Decision, reserved: Reserved): string {
  if (reason === "full" || reason === "error") return `the budget denies the call: ${reasons[reason]}`;
  const [name = ""] = violated;
  const amount = reserved[name];
  const policies = violated.join(", ");
  if (retryAfter !== Number.POSITIVE_INFINITY)
    return `the budget denies the call by ${policies}: try again in ${Math.ceil(retryAfter / 1_000)} s`;
  return amount === undefined
    ? `the budget never allows the call by ${policies}`
    : `the budget never allows the call by ${policies}: it may use ${amount} of ${limit}; set its most output tokens, or the option estimate`;
}

const reasons = { full: "the limiter is full", error: "the limiter failed" } as const;
