import { WorkerEntrypoint } from "cloudflare:workers";
import { type ErrorCode, TollgateError } from "../error.ts";
import type { Decision } from "../types.ts";
import { Unanswered } from "./ask.ts";
import { type Numbers, named } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { checkAmount, checkKey, checkName, policyNames } from "./given.ts";
import { handle } from "./handler.ts";
import { inquire } from "./inquiry.ts";
import { type Item, isolateOf } from "./isolate.ts";
import type { Operation } from "./object.ts";

/** One of the configured policies by its name, or several that are one decision. */
export type PolicyName = string | readonly string[];

/**
 * What other Workers call through a service binding with `entrypoint = "Tollgate"`.
 *
 * @example
 * ```ts
 * const decision = await env.TOLLGATE.hit("api", "user:42");
 * ```
 */
export class Tollgate extends WorkerEntrypoint<TollgateEnv> {
  /** What the Worker answers to HTTP. */
  override async fetch(request: Request): Promise<Response> {
    return handle(request, this.env, this.ctx);
  }

  /** Asks whether the key may act now, and takes `cost` if so. */
  hit(policy: PolicyName, key: string, cost = 1): Promise<Decision> {
    return this.#decision("hit", policy, key, cost);
  }

  /** What a hit would answer. Changes nothing. */
  peek(policy: PolicyName, key: string, cost = 1): Promise<Decision> {
    return this.#decision("peek", policy, key, cost);
  }

  /** Adds without asking, and answers the count. `of` names one of several policies. */
  inc(policy: PolicyName, key: string, cost = 1, of?: string): Promise<number> {
    return this.#number("inc", policy, key, cost, of);
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. */
  set(policy: PolicyName, key: string, count: number, of?: string): Promise<number> {
    return this.#number("set", policy, key, count, of);
  }

  /** The key's count. */
  get(policy: PolicyName, key: string, of?: string): Promise<number> {
    return this.#number("get", policy, key, 0, of);
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(policy: PolicyName, key: string, of?: string): Promise<number> {
    return this.#number("expires_at", policy, key, 0, of);
  }

  /** Forgets the key. Says whether there was anything to forget. */
  async reset(policy: PolicyName, key: string): Promise<boolean> {
    return (await this.#number("reset", policy, key, 0)) === 1;
  }

  async #decision(operation: Operation, policy: PolicyName, key: string, cost: number): Promise<Decision> {
    const item = this.#item(operation, policy, key, cost);
    return named(await this.#ask(operation, item), item.names);
  }

  async #number(
    operation: Operation,
    policy: PolicyName,
    key: string,
    amount: number,
    of?: string,
  ): Promise<number> {
    return Number(await this.#ask(operation, this.#item(operation, policy, key, amount, of)));
  }

  #item(operation: Operation, policy: PolicyName, key: string, amount: number, of?: string): Item {
    checkKey(key);
    checkAmount(operation, amount);
    checkName(of);
    return isolateOf(this.env).item(operation, policyNames(policy), key, amount, of);
  }

  async #ask(operation: Operation, item: Item): Promise<Numbers> {
    try {
      const answer = await inquire(this.env, isolateOf(this.env), "rpc", operation, item);
      if (typeof answer !== "string") throw new TollgateError(answer.code as ErrorCode, answer.message);
      return answer;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      throw new TollgateError("unanswered", error.message, { cause: error.cause });
    }
  }
}
