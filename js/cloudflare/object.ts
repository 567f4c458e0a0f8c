import { DurableObject } from "cloudflare:workers";
import type { RateLimiterObject as RustObject } from "../../build/cloudflare/tollgate.js";
import type { Decision } from "./decision.ts";
import { Rebuilt } from "./wasm.ts";

/** The Durable Object of one key. Rust decides and stores; this class makes it callable by RPC. */
export class RateLimiterObject extends DurableObject<Env> {
  #object: Rebuilt<RustObject>;

  constructor(context: DurableObjectState, env: Env) {
    super(context, env);
    this.#object = new Rebuilt((rust) => new rust.RateLimiterObject(context));
  }

  /** Decides a hit under policies given as JSON. Nothing is awaited, so no other hit comes in between. */
  hit(policies: string, cost: number): Decision {
    return JSON.parse(this.#object.call((object) => object.hit(policies, cost, Date.now())));
  }
}
