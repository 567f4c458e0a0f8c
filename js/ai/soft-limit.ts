import { invalidField } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import { warnOnce } from "../guard/warnings.ts";
import { isRecord } from "../policy/costs.ts";
import type { Key, Policies, Policy } from "../types.ts";
import type { BudgetLimiter } from "./limiter.ts";

/** A key that has used a part of a policy's limit. */
export interface SoftLimitReached {
  /** The key. */
  readonly key: Key;
  /** The name of the policy. */
  readonly policy: string;
  /** How much is used, with what is reserved. */
  readonly used: number;
  /** The policy's limit or capacity. */
  readonly limit: number;
}

/** How many keys are remembered that are above a soft limit. */
const mostKeys = 10_000;

/** A soft limit of a policy. */
interface SoftLimit {
  readonly policy: string;
  readonly at: number;
  readonly limit: number;
  /** Whether the count is what is left. */
  readonly isLeft: boolean;
}

/** Tells when keys have used parts of their limits: once for each key, until it is seen below. */
export class SoftLimits {
  readonly #limits: readonly SoftLimit[];
  readonly #limiter: BudgetLimiter;
  readonly #onReached: (reached: SoftLimitReached) => Awaitable<void>;
  readonly #above = new Set<string>();

  constructor(
    given: unknown,
    policies: Policies | undefined,
    limiter: BudgetLimiter,
    onReached: (reached: SoftLimitReached) => Awaitable<void>,
  ) {
    if (!isRecord(given)) throw invalidField("invalid_option", "softLimits", given, "{ usd: 0.8 }");
    const all = [policies ?? []].flat() as readonly Policy[];
    this.#limits = Object.entries(given).map(([name, at]) => readLimit(name, at, all));
    this.#limiter = limiter;
    this.#onReached = onReached;
  }

  /** Looks at what a key has used. A failure is no failure of the call. */
  async look(key: Key): Promise<void> {
    for (const limit of this.#limits) {
      try {
        await this.#lookAt(key, limit);
      } catch (error) {
        warnOnce("softLimit", `a soft limit could not be checked: ${error}`);
      }
    }
  }

  async #lookAt(key: Key, { policy, at, limit, isLeft }: SoftLimit): Promise<void> {
    const count = (await this.#limiter.get?.(key, policy)) ?? 0;
    const used = isLeft ? limit - count : count;
    const name = `${policy} ${typeof key} ${key}`;
    if (used < at * limit) {
      this.#above.delete(name);
      return;
    }
    if (this.#above.has(name)) return;
    const [oldest] = this.#above;
    if (this.#above.size >= mostKeys && oldest !== undefined) this.#above.delete(oldest);
    this.#above.add(name);
    await this.#onReached({ key, policy, used, limit });
  }
}

function readLimit(name: string, at: unknown, policies: readonly Policy[]): SoftLimit {
  const found = policies.find((policy) => policy.name === name) as
    | { readonly limit?: number; readonly capacity?: number; readonly algorithm?: string }
    | undefined;
  const limit = found?.limit ?? found?.capacity;
  const field = `softLimits.${name}`;
  if (limit === undefined)
    throw invalidField("invalid_option", field, at, "given for a policy whose limit the limiter knows");
  if (!(typeof at === "number" && at > 0 && at <= 1))
    throw invalidField("invalid_option", field, at, "a part of the limit, such as 0.8");
  return { policy: name, at, limit, isLeft: found?.algorithm === "token_bucket" };
}
