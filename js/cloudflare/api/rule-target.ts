import { RpcTarget } from "cloudflare:workers";
import { banLength } from "../../policy/bans.ts";
import { exceptionFields, type JsonException, keyException } from "../../policy/exception-fields.ts";
import type { Costs, Decision, Duration, Exception, ExceptionEnd, KeyException } from "../../types.ts";
import type { Operation } from "../../wasm/operations.ts";
import { checkReservations } from "../object/checks.ts";
import type { Answer } from "../object/decision.ts";
import type { PolicyName } from "./entrypoint.ts";

/** Options of `reset`. */
export interface ResetOptions {
  /** Drops the key's open reservations too. */
  readonly reservations?: boolean | undefined;
}

/**
 * The calls of one key.
 * @internal
 */
export interface Calls {
  decision(operation: Operation, policy: PolicyName, cost: Costs): Promise<Decision>;
  number(operation: Operation, policy: PolicyName, amount: number, of?: string): Promise<number>;
  /** Performs an operation that has more than an amount. */
  answer(
    operation: Operation,
    policy: PolicyName,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<Answer>;
}

/** The operations on the key of a rule that an operator needs; `Tollgate.ofRule` returns them. Other keys have them, too. */
export class RuleTarget extends RpcTarget {
  readonly #calls: Calls;

  /** @internal */
  constructor(calls: Calls) {
    super();
    this.#calls = calls;
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(policy: PolicyName, cost: Costs = 1): Promise<Decision> {
    return this.#calls.decision("peek", policy, cost);
  }

  /** Charges a cost even if it does not fit, and returns the count; a negative cost gives back. `of` names a policy. */
  inc(policy: PolicyName, cost = 1, of?: string): Promise<number> {
    return this.#calls.number("inc", policy, cost, of);
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(policy: PolicyName, count: number, of?: string): Promise<number> {
    return this.#calls.number("set", policy, count, of);
  }

  /** Returns the key's count. */
  get(policy: PolicyName, of?: string): Promise<number> {
    return this.#calls.number("get", policy, 0, of);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(policy: PolicyName, of?: string): Promise<number> {
    return this.#calls.number("expires_at", policy, 0, of);
  }

  /** Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end. `of` names a ban. */
  async ban(policy: PolicyName, length: Duration, of?: string): Promise<number> {
    return this.#calls.number("ban", policy, banLength(length), of);
  }

  /** Lifts the ban of the key and forgets its past ones. Returns whether one held. */
  async unban(policy: PolicyName, of?: string): Promise<boolean> {
    return (await this.#calls.number("unban", policy, 0, of)) > 0;
  }

  /** Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. */
  async except(policy: PolicyName, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    const answer = await this.#calls.answer("except", policy, { ...exceptionFields(exception, end) });
    return (answer as { number: number }).number;
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  async exceptions(policy: PolicyName): Promise<KeyException | null> {
    const answer = await this.#calls.answer("exceptions", policy, {});
    return keyException((answer as { excepted: JsonException }).excepted);
  }

  /** Removes the key's states, with `reservations` its reservations too. Returns whether there were any. */
  async reset(policy: PolicyName, options: ResetOptions = {}): Promise<boolean> {
    const { reservations } = options;
    checkReservations(reservations);
    if (!reservations) return (await this.#calls.number("reset", policy, 0)) === 1;
    return ((await this.#calls.answer("reset", policy, { reservations })) as { reset: boolean }).reset;
  }
}
