import { DurableObject } from "cloudflare:workers";
import type { RateLimiterObject as RustObject } from "../../build/worker/tollgate.js";
import { TollgateError } from "../error.ts";
import type { Decision, Policies } from "../types.ts";
import { type Mistake, type Numbers, named } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { checkAmount, checkName, policiesAsJson } from "./given.ts";
import { isolateOf, Misconfigured } from "./isolate.ts";
import { type Ended, report, reportEnded } from "./log.ts";
import { Rebuilt } from "./wasm.ts";

/** What can be asked of an object. */
export type Operation = "hit" | "peek" | "inc" | "set" | "get" | "expires_at" | "reset";

/**
 * The Durable Object of one key. Rust decides and stores; this class makes it callable by RPC.
 *
 * @example
 * ```ts
 * import { RateLimiterObject } from "tollgate/cloudflare";
 *
 * export { RateLimiterObject };
 * const policy = { algorithm: "token_bucket", capacity: 10, refillRate: 1 } as const;
 * const decision = await env.LIMITERS.getByName("user:42").hit(policy);
 * ```
 */
export class RateLimiterObject extends DurableObject<TollgateEnv> {
  #object: Rebuilt<RustObject>;
  /** The policies of the last decision, and what they are called. */
  #named: { readonly json: string; readonly names: readonly string[] } = { json: "", names: [] };

  constructor(context: DurableObjectState, env: TollgateEnv) {
    super(context, env);
    this.#object = new Rebuilt((rust) => new rust.RateLimiterObject(context, env));
  }

  /** Asks whether the key may act now, and takes `cost` if so. Several policies are one decision. */
  hit(policies: Policies, cost = 1): Decision {
    const decision = this.#decision("hit", policies, cost);
    // Not in `apply`, whose caller knows more, and reports it.
    if (!decision.allowed)
      report(this.env, {
        event: "denied",
        via: "object",
        key: this.#key(),
        policies: decision.violated,
        cost,
      });
    return decision;
  }

  /** What a hit would answer. Changes nothing. */
  peek(policies: Policies, cost = 1): Decision {
    return this.#decision("peek", policies, cost);
  }

  /** Adds without asking, and answers the count. With several policies, `policy` names the one that counts it. */
  inc(policies: Policies, cost = 1, policy?: string): number {
    return this.#number("inc", policies, cost, policy);
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Answers the count. */
  set(policies: Policies, count: number, policy?: string): number {
    return this.#number("set", policies, count, policy);
  }

  /** The key's count. */
  get(policies: Policies, policy?: string): number {
    return this.#number("get", policies, 0, policy);
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(policies: Policies, policy?: string): number {
    return this.#number("expires_at", policies, 0, policy);
  }

  /** Forgets the key. Says whether there was anything to forget. */
  reset(policies: Policies): boolean {
    return this.#number("reset", policies, 0) === 1;
  }

  /** What the Worker itself calls: policies as JSON in, numbers or a mistake out. */
  apply(operation: Operation, policies: string, amount: number, of?: string): Numbers | Mistake {
    try {
      if (typeof operation !== "string" || typeof policies !== "string")
        throw new TollgateError("invalid_operation", "give an operation and policies as JSON");
      return this.#apply(operation, policies, amount, of);
    } catch (error) {
      const { code, message } = error as Mistake;
      if (typeof code !== "string") throw error;
      return { code, message };
    }
  }

  /** What a Worker in Rust calls: an operation as JSON in, its result as JSON out. */
  override async fetch(request: Request): Promise<Response> {
    const question = await request.text();
    const answer = this.#object.call((object) => object.answer(question, Date.now()));
    return new Response(answer, { headers: { "Content-Type": "application/json" } });
  }

  /** Rings when the key may have expired: then everything is deleted, and an abandoned key costs nothing. */
  override async alarm(): Promise<void> {
    const [ended, empty] = this.#object.call((object) => object.expire(Date.now())) as [string, boolean];
    const key = this.#key();
    for (const state of JSON.parse(ended) as Ended[]) reportEnded(this.env, key, state);
    if (empty) await this.ctx.storage.deleteAll();
  }

  /** Nothing is awaited between reading the time and having written, so no other operation comes in between. */
  #apply(operation: Operation, policies: string, amount: number, of?: string): Numbers {
    checkAmount(operation, amount);
    checkName(of);
    return this.#object.call((object) => object.apply(operation, policies, amount, of, Date.now()));
  }

  #decision(operation: Operation, policies: Policies, cost: number): Decision {
    const json = policiesAsJson(policies);
    const numbers = this.#apply(operation, json, cost);
    if (this.#named.json !== json)
      this.#named = { json, names: this.#object.call((object) => object.names()) };
    return named(numbers, this.#named.names);
  }

  #number(operation: Operation, policies: Policies, amount: number, policy?: string): number {
    return Number(this.#apply(operation, policiesAsJson(policies), amount, policy));
  }

  /** The key as the Worker's own logs have it; without a name or a configuration the id, a keyed hash itself. */
  #key(): string {
    const { id } = this.ctx;
    try {
      return id.name === undefined ? id.toString() : isolateOf(this.env).logged(id.name, this.env);
    } catch (error) {
      if (error instanceof Misconfigured) return id.toString();
      throw error;
    }
  }
}
