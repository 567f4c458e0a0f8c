import { checkFunctions, copiedOptions } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { Store } from "../store/index.ts";
import { limiterCases } from "./limiter-cases.ts";
import { type Setting, settingOf } from "./setting.ts";
import { valueCases } from "./value-cases.ts";

/** A test of a store. */
export interface StoreCase {
  /** The tested behaviour. */
  readonly name: string;
  /** Resolves if the store does what the case demands. Rejects with an error that says what a store must do. */
  readonly run: () => Promise<void>;
}

/** The options of the cases. */
export interface StoreCasesOptions {
  /** Lets so many milliseconds pass for the store, at most 50; by default it waits for so long. */
  readonly passTime?: ((ms: number) => PromiseLike<unknown> | unknown) | undefined;
}

/**
 * Returns tests that every store of a `StoreLimiter` must pass, for any test runner. `makeStore` is called several times
 * in each case, and returns clients of one and the same database, like those of several processes. The cases use keys of
 * their own, and may run at the same time.
 *
 * @example
 * ```ts
 * import { memoryStore, storeCases } from "tollgate/testing";
 *
 * const store = memoryStore();
 * for (const { name, run } of storeCases(() => store, { passTime: () => {} })) {
 *   await run(); // In a test runner: test(name, run).
 *   console.log(name);
 * }
 * ```
 */
export function storeCases(
  makeStore: () => Store | PromiseLike<Store>,
  options: StoreCasesOptions = {},
): StoreCase[] {
  const copy = copiedOptions(options, ["passTime"]);
  checkFunctions(copy, ["passTime"]);
  if (typeof makeStore !== "function")
    throw invalidField("invalid_option", "makeStore", makeStore, "a function that returns a store");
  const passTime: Setting["passTime"] =
    copy.passTime ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)));
  return [...valueCases, ...limiterCases].map(({ name, run }) => ({
    name,
    run: async () => run(await settingOf(makeStore, passTime)),
  }));
}
