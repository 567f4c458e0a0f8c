import { WorkerEntrypoint } from "cloudflare:workers";
import { copiedCosts } from "../copied-costs.ts";
import { type ErrorCode, TollgateError } from "../error.ts";
import { type Numbers, named } from "../numbers.ts";
import type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";
import { Unanswered } from "./ask.ts";
import {
  type Answer,
  type Mistake,
  type PlainDecision,
  type Reserved,
  reservedBy,
  settlementOf,
  unplain,
} from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import {
  checkAmount,
  checkId,
  checkKey,
  checkName,
  checkReservations,
  checkTtl,
  policyNames,
} from "./given.ts";
import { handle } from "./handler.ts";
import { inquire, inquireInJson } from "./inquiry.ts";
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

  /** Asks whether the key may act now, and takes `cost` if so: one number, or one for each policy by its name. */
  hit(policy: PolicyName, key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("hit", policy, key, cost);
  }

  /** What a hit would answer. Changes nothing. */
  peek(policy: PolicyName, key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("peek", policy, key, cost);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. Its id is all that settling it takes, also after a restart.
   *
   * @example
   * ```ts
   * const { allowed, id } = await env.TOLLGATE.reserve("api", "user:42", 4000, { ttl: "2m" });
   * if (allowed) await env.TOLLGATE.settle("api", id, 1234);
   * ```
   */
  async reserve(
    policy: PolicyName,
    key: string,
    cost: Costs = 1,
    options: { readonly ttl?: Duration | undefined } = {},
  ): Promise<Reserved> {
    checkKey(key);
    const { ttl } = options;
    if (ttl !== undefined) checkTtl(ttl);
    return reservedBy(await this.#question("reserve", policy, { key, cost: copiedCosts(cost), ttl }));
  }

  /** Closes a reservation and charges what was used; by default all that was reserved. */
  async settle(policy: PolicyName, id: string, used?: Costs): Promise<Settlement> {
    checkId(id);
    const copy = used === undefined ? undefined : copiedCosts(used);
    return settlementOf(await this.#question("settle", policy, { id, used: copy }));
  }

  /** Closes a reservation without charging anything. */
  async cancel(policy: PolicyName, id: string): Promise<Settlement> {
    checkId(id);
    return settlementOf(await this.#question("cancel", policy, { id }));
  }

  /** Moves the end of a reservation to so long from now. */
  async extend(policy: PolicyName, id: string, ttl: Duration): Promise<Extension> {
    checkId(id);
    checkTtl(ttl);
    return settlementOf(await this.#question("extend", policy, { id, ttl }));
  }

  /** Adds without asking, and answers the count; a negative cost gives back. `of` names one of several policies. */
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

  /** Forgets the key, but for reservations unless it says so. Says whether there was anything to forget. */
  async reset(
    policy: PolicyName,
    key: string,
    options: { readonly reservations?: boolean | undefined } = {},
  ): Promise<boolean> {
    const { reservations } = options;
    checkReservations(reservations);
    if (!reservations) return (await this.#number("reset", policy, key, 0)) === 1;
    checkKey(key);
    return ((await this.#question("reset", policy, { key, reservations })) as { reset: boolean }).reset;
  }

  async #decision(operation: Operation, policy: PolicyName, key: string, cost: Costs): Promise<Decision> {
    if (typeof cost === "object") {
      checkKey(key);
      const answer = await this.#question(operation, policy, { key, cost: copiedCosts(cost) });
      return unplain((answer as { decision: PlainDecision }).decision);
    }
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

  get #inquiry() {
    const background = (work: Promise<unknown>) => this.ctx.waitUntil(work);
    return { env: this.env, via: "rpc", background } as const;
  }

  async #ask(operation: Operation, item: Item): Promise<Numbers> {
    const isolate = isolateOf(this.env);
    const answer = await answered(inquire({ ...this.#inquiry, isolate, operation, item }));
    if (typeof answer !== "string") throw thrown(answer);
    return answer;
  }

  /** Asks what is more than an amount. */
  async #question(
    operation: Operation,
    policy: PolicyName,
    more: Readonly<Record<string, unknown>>,
  ): Promise<Answer> {
    const isolate = isolateOf(this.env);
    const [item] = isolate.items(operation, { policy: policyNames(policy), ...more }).items;
    if (item === undefined || "code" in item) throw thrown(item as Mistake);
    const inquiry = { ...this.#inquiry, isolate, operation, item };
    const answer = await answered(inquireInJson(inquiry, item.question as string));
    if ("error" in answer) throw thrown(answer.error);
    return answer;
  }
}

const thrown = ({ code, message }: Mistake) => new TollgateError(code as ErrorCode, message);

/** The answer of an object. One that did not answer is an error with a code. */
async function answered<Answered>(asked: Promise<Answered>): Promise<Answered> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    throw new TollgateError("unanswered", error.message, { cause: error.cause });
  }
}
