import { copiedOptions } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import { Account } from "./account.ts";
import { type BudgetOptions, checkEstimate, type Estimate, readOptions } from "./options.ts";

/** Work to charge. */
export interface BudgetWork extends Estimate {
  /** The name of the model, for its price. */
  readonly model?: string | undefined;
  /** Ends a wait for the budget. */
  readonly signal?: AbortSignal | undefined;
}

/** The argument of charged work. */
export interface BudgetUse {
  /**
   * Reports the usage that a provider says, in the form of OpenAI, Anthropic, Gemini or the AI SDK, or as
   * `{ inputTokens, outputTokens }`. A later report replaces an earlier one: report a sum once.
   *
   * @throws TollgateError if the usage does not say the tokens of the input and the output. The work is then charged as
   * reserved, if no later report says them.
   */
  report(usage: unknown): void;
  /**
   * Adds the usage of one of several calls to what was reported.
   *
   * @throws TollgateError as `report` does. The work is then charged as reserved, at least.
   */
  add(usage: unknown): void;
}

/** Runs work under a budget. */
export type BudgetRun = <Result>(
  work: (use: BudgetUse) => Awaitable<Result>,
  of?: BudgetWork,
) => Promise<Result>;

/**
 * Returns a function that runs any work under a budget: a batch of hours, a tool, a message of a socket. The amounts are
 * reserved before, and the reservation is extended while the work runs. What the work reported is charged in the end; if it
 * reported nothing, what was reserved, or nothing if it threw.
 *
 * @throws TollgateError if an option is invalid. A denied run rejects with `BudgetDenied`.
 *
 * @example
 * ```ts
 * import { RateLimiter } from "tollgate";
 * import { budgetRun } from "tollgate/ai";
 *
 * const limiter = new RateLimiter({ name: "tokens", algorithm: "fix_window", limit: 5_000_000, scale: "1d" });
 * const run = budgetRun({ limiter, key: "tenant:7" });
 * const usage = { inputTokens: 180_000, outputTokens: 31_000 };
 * await run(({ report }) => report(usage), { inputTokens: 200_000, outputTokens: 50_000 });
 * console.log(limiter.get("tenant:7")); // => 211000
 * ```
 */
export function budgetRun(options: BudgetOptions): BudgetRun {
  const account = new Account(readOptions(options, []));
  return async (work, of = {}) => {
    if (typeof work !== "function") throw invalidField("invalid_option", "work", work, "a function");
    const {
      model = "",
      signal,
      ...estimate
    } = copiedOptions(of, ["model", "signal", "inputTokens", "outputTokens", "usd"]);
    const charge = await account.open({
      model,
      params: of,
      input: "",
      mostOutput: 0,
      signal,
      estimate: checkEstimate(estimate),
    });
    let hasReported = false;
    const reported = (usage: unknown, isMore: boolean) => {
      hasReported = true;
      charge.delivered.report(usage, isMore);
    };
    const use: BudgetUse = {
      report: (usage) => reported(usage, false),
      add: (usage) => reported(usage, true),
    };
    try {
      const result = await work(use);
      await (hasReported ? charge.settleDelivered() : charge.settleInFull());
      return result;
    } catch (error) {
      await (hasReported ? charge.settleDelivered() : charge.cancel());
      throw error;
    }
  };
}
