import { DurableObject } from "cloudflare:workers";
import type { RateLimiterObject as RustObject } from "../../build/worker/tollgate.js";
import { copiedCosts } from "../copied-costs.ts";
import { type ErrorCode, TollgateError } from "../error.ts";
import { type Numbers, named } from "../numbers.ts";
import type { Costs, Decision, Duration, Extension, Policies, Settlement } from "../types.ts";
import { checkAmount, checkId, checkName, checkReservations, checkTtl, policiesAsJson } from "./checks.ts";
import {
  type Answer,
  type ErrorInfo,
  type PlainDecision,
  type Reserved,
  reservedBy,
  settlementOf,
  unplain,
} from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { isolateOf, Misconfigured } from "./isolate.ts";
import { type Ended, inLog, report, reportEnded } from "./log.ts";
import { Rebuilt } from "./wasm.ts";

/** What can be asked of an object. */
export type Operation =
  | "hit"
  | "peek"
  | "inc"
  | "set"
  | "get"
  | "expires_at"
  | "reset"
  | "reserve"
  | "settle"
  | "cancel"
  | "extend"
  | "lease";

/** What the Worker asks of the objects of one decision over several keys: to reserve for a moment, and to give back. */
export type Hold = "hold" | "release";

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
  #isResting = false;

  constructor(context: DurableObjectState, env: TollgateEnv) {
    super(context, env);
    this.#object = new Rebuilt((rust) => new rust.RateLimiterObject(context, env));
  }

  /**
   * Asks whether the key may act now, and takes `cost` if so: one number, or one for each policy by its name. Several
   * policies are one decision.
   */
  hit(policies: Policies, cost: Costs = 1): Decision {
    return this.#reported(this.#decision("hit", policies, cost), cost);
  }

  /** What a hit would answer. Changes nothing. */
  peek(policies: Policies, cost: Costs = 1): Decision {
    return this.#decision("peek", policies, cost);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full.
   *
   * @example
   * ```ts
   * const object = env.LIMITERS.getByName("user:42");
   * const policy = { algorithm: "sliding_counter", limit: 90000, scale: "1m" } as const;
   * const { allowed, id } = await object.reserve(policy, 4000, { ttl: "2m" });
   * if (allowed) await object.settle(policy, id, 1234);
   * ```
   */
  reserve(
    policies: Policies,
    cost: Costs = 1,
    options: { readonly ttl?: Duration | undefined } = {},
  ): Reserved {
    const { ttl } = options;
    if (ttl !== undefined) checkTtl(ttl);
    const key = this.ctx.id.name;
    const reserved = reservedBy(this.#ask("reserve", policies, { ...amounts(cost), ttl, key }));
    this.#reported(reserved.decision, cost);
    return reserved;
  }

  /** Closes a reservation under these policies and charges what was used; by default all that was reserved. */
  settle(policies: Policies, id: string, used?: Costs): Settlement {
    checkId(id);
    return settlementOf(this.#ask("settle", policies, { ...(used === undefined ? {} : amounts(used)), id }));
  }

  /** Closes a reservation under these policies without charging anything. */
  cancel(policies: Policies, id: string): Settlement {
    checkId(id);
    return settlementOf(this.#ask("cancel", policies, { id }));
  }

  /** Moves the end of a reservation to so long from now. */
  extend(policies: Policies, id: string, ttl: Duration): Extension {
    checkId(id);
    checkTtl(ttl);
    return settlementOf(this.#ask("extend", policies, { id, ttl }));
  }

  /**
   * Adds without asking, and answers the count; a negative cost gives back. With several policies, `policy` names the one
   * that counts it.
   */
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

  /** Forgets the key, but for reservations unless it says so. Says whether there was anything to forget. */
  reset(policies: Policies, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    const { reservations } = options;
    checkReservations(reservations);
    if (!reservations) return this.#number("reset", policies, 0) === 1;
    return (this.#ask("reset", policies, { reservations }) as { reset: boolean }).reset;
  }

  /** What the Worker itself calls for everything that is more than an amount: a question in JSON, and its answer. */
  question(json: string): string {
    if (typeof json !== "string") throw new TollgateError("invalid_operation", "give a question as JSON");
    const answer = this.#object.call((object) => object.answer(json, Date.now()));
    this.#restLater();
    return answer;
  }

  /** What the Worker itself calls: policies as JSON in, numbers or a mistake out. */
  apply(
    operation: Operation | Hold,
    policies: string,
    amount: number,
    of?: string,
    credit = false,
  ): Numbers | ErrorInfo {
    try {
      if (typeof operation !== "string" || typeof policies !== "string")
        throw new TollgateError("invalid_operation", "give an operation and policies as JSON");
      return this.#apply(operation, policies, amount, of, credit === true);
    } catch (error) {
      const { code, message } = error as ErrorInfo;
      if (typeof code !== "string") throw error;
      return { code, message };
    }
  }

  /** What a Worker in Rust calls: an operation as JSON in, its result as JSON out. */
  override async fetch(request: Request): Promise<Response> {
    const question = await request.text();
    return new Response(this.question(question), { headers: { "Content-Type": "application/json" } });
  }

  /** Rings when the key may have expired: then everything is deleted, and an abandoned key costs nothing. */
  override async alarm(): Promise<void> {
    const [ended, empty] = this.#object.call((object) => object.expire(Date.now())) as [string, boolean];
    const key = this.#key();
    for (const state of JSON.parse(ended) as Ended[]) reportEnded(this.env, key, state);
    if (empty) await this.ctx.storage.deleteAll();
  }

  /** Nothing is awaited between reading the time and having written, so no other operation comes in between. */
  #apply(
    operation: Operation | Hold,
    policies: string,
    amount: number,
    of?: string,
    credit = this.#hasCredit(),
  ): Numbers {
    checkAmount(operation, amount);
    checkName(of);
    const answer = this.#object.call((object) =>
      object.apply(operation, policies, amount, of, credit, Date.now()),
    );
    if (credit) this.#restLater();
    return answer;
  }

  /** Whether the configuration lets allowed hits be kept in memory, covered by a credit in the row. */
  #hasCredit(): boolean {
    try {
      return isolateOf(this.env).hasCredit;
    } catch (error) {
      if (error instanceof Misconfigured) return false;
      throw error;
    }
  }

  /** Writes credit back when the key has gone quiet, if there is some. An object that is gone by then has it charged. */
  #restLater(): void {
    if (this.#isResting) return;
    const delay = this.#object.call((object) => object.creditDelay());
    if (delay === 0) return;
    this.#isResting = true;
    setTimeout(() => {
      this.#isResting = false;
      try {
        if (this.#object.call((object) => object.returnCredit(Date.now()))) this.#restLater();
      } catch (error) {
        // The row still holds the credit, and its end charges it.
        console.error(
          JSON.stringify({ event: "error", via: "object", failure: "credit", cause: String(error) }),
        );
      }
    }, delay);
  }

  /** Asks what is more than an amount. */
  #ask(operation: Operation, policies: Policies, more: Readonly<Record<string, unknown>>): Answer {
    const question = JSON.stringify({ operation, ...more });
    const json = `${question.slice(0, -1)},"policies":${policiesAsJson(policies)}}`;
    const answer = JSON.parse(this.question(json)) as Answer;
    if ("error" in answer) throw new TollgateError(answer.error.code as ErrorCode, answer.error.message);
    return answer;
  }

  /** Reports a denial. Not in `apply`, whose caller knows more, and reports it. */
  #reported(decision: Decision, cost: Costs): Decision {
    if (!decision.allowed) {
      const { violated: policies } = decision;
      report(this.env, { event: "denied", via: "object", key: this.#key(), policies, ...inLog(cost) });
    }
    return decision;
  }

  #decision(operation: Operation, policies: Policies, cost: Costs): Decision {
    if (typeof cost !== "number") {
      const answer = this.#ask(operation, policies, amounts(cost)) as { decision: PlainDecision };
      return unplain(answer.decision);
    }
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

/** Costs as a question has them: one amount, or a list of names and amounts. */
function amounts(cost: Costs): Readonly<Record<string, unknown>> {
  const copy = copiedCosts(cost);
  return typeof copy === "number" ? { amount: copy } : { amounts: Object.entries(copy) };
}
