import { DurableObject } from "cloudflare:workers";
import type { RateLimiterObject as RustObject } from "../../build/cloudflare/tollgate.js";
import type { Decision, Policies } from "../types.ts";
import { type Mistake, type Numbers, named } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { measure, say } from "./log.ts";
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

  constructor(context: DurableObjectState, env: TollgateEnv) {
    super(context, env);
    this.#object = new Rebuilt((rust) => new rust.RateLimiterObject(context.storage));
  }

  /** Asks whether the key may act now, and takes `cost` if so. Several policies are one decision. */
  hit(policies: Policies, cost = 1): Decision {
    return this.#decision("hit", policies, cost);
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
      return this.#apply(operation, policies, amount, of);
    } catch (error) {
      const { code, message } = error as Mistake;
      if (typeof code !== "string") throw error;
      return { code, message };
    }
  }

  /** Rings when the key may have expired: then everything is deleted, and an abandoned key costs nothing. */
  override async alarm(): Promise<void> {
    const expired = this.#object.call((object) => object.expire(Date.now()));
    if (expired === undefined) return;
    if (expired !== "") this.#tell(JSON.parse(expired));
    await this.ctx.storage.deleteAll();
  }

  /** Nothing is awaited between reading the time and having written, so no other operation comes in between. */
  #apply(operation: Operation, policies: string, amount: number, of?: string): Numbers {
    return this.#object.call((object) => object.apply(operation, policies, amount, of, Date.now()));
  }

  #decision(operation: Operation, policies: Policies, cost: number): Decision {
    const numbers = this.#apply(operation, JSON.stringify(policies), cost);
    return named(
      numbers,
      this.#object.call((object) => object.names()),
    );
  }

  #number(operation: Operation, policies: Policies, amount: number, policy?: string): number {
    return this.#apply(operation, JSON.stringify(policies), amount, policy)[0] as number;
  }

  /** The object's id is a keyed hash of its name already. */
  #tell(expired: { readonly expiredAt: number }): void {
    const key = this.ctx.id.toString();
    say({ event: "expired", key, ...expired });
    measure(this.env, "expired", key, 1);
  }
}
