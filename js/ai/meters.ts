import { fieldError, invalidField, inWords } from "../errors/error.ts";
import type { Policies } from "../types.ts";
import type { ModelUsage } from "./usage.ts";

/**
 * The names by which a budget finds the policies of its limiter, each optional: `requests` and `running` count calls,
 * `tokens`, `inputTokens` and `outputTokens` what the provider counts, and `usd` its price in millionths of a dollar. A
 * policy of another name costs 1 a call.
 */
export type BudgetPolicy = "requests" | "tokens" | "inputTokens" | "outputTokens" | "usd" | "running";

/** Amounts by the policies that depend on the use of a call. */
export type Amounts = { [name in "tokens" | "inputTokens" | "outputTokens" | "usd"]?: number };

const metered = ["tokens", "inputTokens", "outputTokens", "usd"] as const;
const counted: readonly string[] = ["requests", "running"];

/** The policies of a limiter that a budget charges. */
export class Meters {
  readonly #metered: readonly (keyof Amounts)[];

  constructor(limiter: object, policy: Policies | undefined, hasPrices: boolean) {
    const names = namesOf(limiter, policy);
    this.#metered = metered.filter((name) => names.includes(name));
    if (this.#metered.length === 0 && !counted.some((name) => names.includes(name))) throw noMeter(names);
    if (hasPrices && !this.hasUsd)
      throw invalidField(
        "invalid_option",
        "prices",
        "given",
        'used with a policy named "usd", or the option onCharge',
      );
  }

  /** Whether calls are charged in money. */
  get hasUsd(): boolean {
    return this.#metered.includes("usd");
  }

  /** Whether a policy depends on how much a call uses. */
  get isMetered(): boolean {
    return this.#metered.length > 0;
  }

  /** Returns the amounts of a usage and its price; `undefined` if no policy depends on them. */
  amounts(usage: ModelUsage, price: number | undefined): Amounts | undefined {
    if (!this.isMetered) return undefined;
    const amounts: Amounts = {};
    for (const name of this.#metered) amounts[name] = amountOf(name, usage, price);
    return amounts;
  }
}

function amountOf(name: keyof Amounts, { inputTokens, outputTokens }: ModelUsage, price = 0): number {
  switch (name) {
    case "tokens":
      return Math.min(inputTokens + outputTokens, Number.MAX_SAFE_INTEGER);
    case "inputTokens":
      return inputTokens;
    case "outputTokens":
      return outputTokens;
    case "usd":
      return price;
  }
}

function namesOf(limiter: object, policy: Policies | undefined): readonly (string | undefined)[] {
  const { policies = policy, policyNames } = limiter as {
    readonly policies?: Policies | undefined;
    readonly policyNames?: readonly string[];
  };
  if (policyNames !== undefined) return policyNames;
  if (policies === undefined)
    throw invalidField("invalid_option", "policy", undefined, "those that the limiter's objects decide by");
  return [policies].flat().map((each) => (each as { readonly name?: string } | undefined)?.name);
}

const noMeter = (names: readonly (string | undefined)[]) =>
  fieldError(
    "invalid_option",
    "limiter",
    `a limiter with the policies ${names.map(nameInWords).join(", ")}`,
    `one with a policy named ${[...counted, ...metered].join(", ")}`,
  );

const nameInWords = (name: string | undefined) => (name === undefined ? "one without a name" : inWords(name));
