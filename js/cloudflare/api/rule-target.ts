import { RpcTarget } from "cloudflare:workers";
import { banLength } from "../../policy/bans.ts";
import type { Costs, Decision, Duration, Exception, ExceptionEnd, KeyException } from "../../types.ts";
import type { Operation } from "../object/object.ts";
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
  peek(policy: PolicyName, cost: Costs): Promise<Decision>;
  number(operation: Operation, policy: PolicyName, amount: number, of?: string): Promise<number>;
  reset(policy: PolicyName, options: ResetOptions): Promise<boolean>;
  except(policy: PolicyName, exception: Exception | null, end?: ExceptionEnd): Promise<number>;
  exceptions(policy: PolicyName): Promise<KeyException | null>;
}

/** The operations on the key of a rule that an operator needs; `Tollgate.ofRule` returns them. */
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
    return this.#calls.peek(policy, cost);
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
  except(policy: PolicyName, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    return this.#calls.except(policy, exception, end);
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  exceptions(policy: PolicyName): Promise<KeyException | null> {
    return this.#calls.exceptions(policy);
  }

  /** Removes the key's states, with `reservations` its reservations too. Returns whether there were any. */
  reset(policy: PolicyName, options: ResetOptions = {}): Promise<boolean> {
    return this.#calls.reset(policy, options);
  }
}
