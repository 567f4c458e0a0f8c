import { WorkerEntrypoint } from "cloudflare:workers";
import { copiedCosts } from "../copied-costs.ts";
import { type ErrorCode, TollgateError } from "../error.ts";
import { type Numbers, named } from "../numbers.ts";
import type { RuleKey } from "../rule-key.ts";
import type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";
import { Unanswered } from "./ask.ts";
import {
  checkAmount,
  checkId,
  checkName,
  checkReservations,
  checkTtl,
  keyField,
  policyNames,
} from "./checks.ts";
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
import { handle } from "./handler.ts";
import { type Item, isolateOf } from "./isolate.ts";
import type { Operation } from "./object.ts";
import { callObject, callObjectInJson } from "./object-call.ts";

/** One of the configured policies by its name, or several that are one decision. */
export type PolicyName = string | readonly string[];

/**
 * The entrypoint that other Workers call through a service binding with `entrypoint = "Tollgate"`.
 *
 * @example
 * ```ts
 * const decision = await env.TOLLGATE.hit("api", "user:42");
 * ```
 *
 * The key of a rule is named by its parts, for instance to unblock a visitor:
 *
 * @example
 * ```ts
 * await env.TOLLGATE.reset("login", { parts: ["ip=192.0.2.7"] });
 * ```
 */
export class Tollgate extends WorkerEntrypoint<TollgateEnv> {
  /** Handles a request as the Worker's own handler does. */
  override async fetch(request: Request): Promise<Response> {
    return handle(request, this.env, this.ctx);
  }

  /** Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name. */
  hit(policy: PolicyName, key: string | RuleKey, cost: Costs = 1): Promise<Decision> {
    return this.#decision("hit", policy, key, cost);
  }

  /** Returns what a hit would return. Changes no state. */
  peek(policy: PolicyName, key: string | RuleKey, cost: Costs = 1): Promise<Decision> {
    return this.#decision("peek", policy, key, cost);
  }

  /**
   * Decides as a hit does and, if allowed, reserves the cost: it counts as used until the reservation is settled, or until
   * its `ttl` ends and it is charged in full. It is settled by its id, also after a restart.
   *
   * @example
   * ```ts
   * const { allowed, id } = await env.TOLLGATE.reserve("api", "user:42", 4000, { ttl: "2m" });
   * if (allowed) await env.TOLLGATE.settle("api", id, 1234);
   * ```
   */
  async reserve(
    policy: PolicyName,
    key: string | RuleKey,
    cost: Costs = 1,
    options: { readonly ttl?: Duration | undefined } = {},
  ): Promise<Reserved> {
    const named = keyField(key);
    const { ttl } = options;
    if (ttl !== undefined) checkTtl(ttl);
    return reservedBy(await this.#callInJson("reserve", policy, { ...named, cost: copiedCosts(cost), ttl }));
  }

  /** Closes a reservation and charges the used amount, by default all of it. */
  async settle(policy: PolicyName, id: string, used?: Costs): Promise<Settlement> {
    checkId(id);
    const copy = used === undefined ? undefined : copiedCosts(used);
    return settlementOf(await this.#callInJson("settle", policy, { id, used: copy }));
  }

  /** Closes a reservation without a charge. */
  async cancel(policy: PolicyName, id: string): Promise<Settlement> {
    checkId(id);
    return settlementOf(await this.#callInJson("cancel", policy, { id }));
  }

  /** Moves the end of a reservation to `ttl` from now. */
  async extend(policy: PolicyName, id: string, ttl: Duration): Promise<Extension> {
    checkId(id);
    checkTtl(ttl);
    return settlementOf(await this.#callInJson("extend", policy, { id, ttl }));
  }

  /** Charges a cost even if it does not fit, and returns the count; a negative cost gives back. `of` names a policy. */
  inc(policy: PolicyName, key: string | RuleKey, cost = 1, of?: string): Promise<number> {
    return this.#number("inc", policy, key, cost, of);
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(policy: PolicyName, key: string | RuleKey, count: number, of?: string): Promise<number> {
    return this.#number("set", policy, key, count, of);
  }

  /** Returns the key's count. */
  get(policy: PolicyName, key: string | RuleKey, of?: string): Promise<number> {
    return this.#number("get", policy, key, 0, of);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(policy: PolicyName, key: string | RuleKey, of?: string): Promise<number> {
    return this.#number("expires_at", policy, key, 0, of);
  }

  /** Removes the key's states, with `reservations` its reservations too. Returns whether there were any. */
  async reset(
    policy: PolicyName,
    key: string | RuleKey,
    options: { readonly reservations?: boolean | undefined } = {},
  ): Promise<boolean> {
    const { reservations } = options;
    checkReservations(reservations);
    if (!reservations) return (await this.#number("reset", policy, key, 0)) === 1;
    const named = keyField(key);
    return ((await this.#callInJson("reset", policy, { ...named, reservations })) as { reset: boolean })
      .reset;
  }

  async #decision(
    operation: Operation,
    policy: PolicyName,
    key: string | RuleKey,
    cost: Costs,
  ): Promise<Decision> {
    if (typeof cost === "object") {
      const named = keyField(key);
      const answer = await this.#callInJson(operation, policy, { ...named, cost: copiedCosts(cost) });
      return unplain((answer as { decision: PlainDecision }).decision);
    }
    const item = this.#item(operation, policy, key, cost);
    return named(await this.#call(operation, item), item.names);
  }

  async #number(
    operation: Operation,
    policy: PolicyName,
    key: string | RuleKey,
    amount: number,
    of?: string,
  ): Promise<number> {
    return Number(await this.#call(operation, this.#item(operation, policy, key, amount, of)));
  }

  #item(operation: Operation, policy: PolicyName, key: string | RuleKey, amount: number, of?: string): Item {
    const named = keyField(key);
    checkAmount(operation, amount);
    checkName(of);
    if ("key" in named)
      return isolateOf(this.env).item(operation, policyNames(policy), named.key, amount, of);
    const field = amountFields[operation];
    const written = field === undefined ? {} : { [field]: amount };
    return this.#read(operation, policy, { ...named, ...written, ...(of === undefined ? {} : { of }) });
  }

  /** Returns the item of a call that has more than a key of the API and an amount. */
  #read(operation: Operation, policy: PolicyName, more: Readonly<Record<string, unknown>>): Item {
    const [item] = isolateOf(this.env).items(operation, { policy: policyNames(policy), ...more }).items;
    if (item === undefined || "code" in item) throw toError(item as ErrorInfo);
    return item;
  }

  get #callContext() {
    const background = (work: Promise<unknown>) => this.ctx.waitUntil(work);
    return { env: this.env, via: "rpc", background } as const;
  }

  async #call(operation: Operation, item: Item): Promise<Numbers> {
    const isolate = isolateOf(this.env);
    const answer = await answered(callObject({ ...this.#callContext, isolate, operation, item }));
    if (typeof answer !== "string") throw toError(answer);
    return answer;
  }

  /** Calls an object with an operation that has more than an amount. */
  async #callInJson(
    operation: Operation,
    policy: PolicyName,
    more: Readonly<Record<string, unknown>>,
  ): Promise<Answer> {
    const item = this.#read(operation, policy, more);
    const objectCall = { ...this.#callContext, isolate: isolateOf(this.env), operation, item };
    const answer = await answered(callObjectInJson(objectCall, item.question as string));
    if ("error" in answer) throw toError(answer.error);
    return answer;
  }
}

/** The fields of the amounts of operations. */
const amountFields: { readonly [name in Operation]?: string } = {
  hit: "cost",
  peek: "cost",
  inc: "cost",
  set: "count",
};

const toError = ({ code, message }: ErrorInfo) => new TollgateError(code as ErrorCode, message);

/** Awaits a result. If the object did not respond, throws an error with a code. */
async function answered<Result>(pending: Promise<Result>): Promise<Result> {
  try {
    return await pending;
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    throw new TollgateError("unanswered", error.message, { cause: error.cause });
  }
}
