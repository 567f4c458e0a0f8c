import { WorkerEntrypoint } from "cloudflare:workers";
import { type ErrorCode, TollgateError } from "../../errors/error.ts";
import { fromJson, type JsonDecision } from "../../http/json-decision.ts";
import { copiedParts, type KeyField, type RuleParts } from "../../http/rule-key.ts";
import { copiedCosts, copiedUse } from "../../policy/copied-costs.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Settlement,
} from "../../types.ts";
import { type Numbers, named, numberIn } from "../../wasm/decision-numbers.ts";
import { type Operation, operations } from "../../wasm/operations.ts";
import type { TollgateEnv } from "../env.ts";
import { type Item, isolateOf } from "../gateway/isolate.ts";
import { handle } from "../handler.ts";
import { Unanswered } from "../object/ask.ts";
import { checkAmount, checkId, checkName, checkTtl, keyField, policyNames } from "../object/checks.ts";
import {
  type Answer,
  type ErrorInfo,
  type Reserved,
  reservedBy,
  settlementOf,
  type UndoableHit,
  undoableHit,
} from "../object/decision.ts";
import { callObject, callObjectInJson } from "../object/object-call.ts";
import { type ResetOptions, RuleTarget } from "./rule-target.ts";

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
 * `ofRule` reaches the key by which a rule counts, for instance to unblock a visitor:
 *
 * @example
 * ```ts
 * await env.TOLLGATE.ofRule("ip=192.0.2.7").reset("login");
 * ```
 */
export class Tollgate extends WorkerEntrypoint<TollgateEnv> {
  /** Handles a request as the Worker's own handler does. */
  override async fetch(request: Request): Promise<Response> {
    return handle(request, this.env, this.ctx);
  }

  /** Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name. */
  async hit(policy: PolicyName, key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("hit", policy, keyField(key), cost);
  }

  /**
   * Decides a hit that can be undone within ten seconds: one of several that are charged together or not at all.
   *
   * @example
   * ```ts
   * const user = await env.TOLLGATE.hitUndoable("api", "user:42");
   * const team = await env.TOLLGATE.hitUndoable("api", "team:7");
   * if (user.allowed && !team.allowed) await env.TOLLGATE.undo("api", "user:42", user.id);
   * ```
   */
  async hitUndoable(policy: PolicyName, key: string, cost: Costs = 1): Promise<UndoableHit> {
    const fields = { ...keyField(key), cost: copiedCosts(cost), undoable: true };
    return undoableHit(await this.#callInJson("hit", policy, fields));
  }

  /** Gives back what of such a hit of this cost still counts, once. Returns whether anything was given back. */
  async undo(policy: PolicyName, key: string, id: string, cost: Costs = 1): Promise<boolean> {
    const fields = { ...keyField(key), cost: copiedCosts(cost), id };
    return ((await this.#callInJson("undo", policy, fields)) as { undone: number }).undone > 0;
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  async peek(policy: PolicyName, key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("peek", policy, keyField(key), cost);
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
    key: string,
    cost: Costs = 1,
    options: { readonly ttl?: Duration | undefined } = {},
  ): Promise<Reserved> {
    const field = keyField(key);
    const { ttl } = options;
    if (ttl !== undefined) checkTtl(ttl);
    return reservedBy(await this.#callInJson("reserve", policy, { ...field, cost: copiedCosts(cost), ttl }));
  }

  /** Closes a reservation and charges the used amount, by default all of it. */
  async settle(policy: PolicyName, id: string, used?: Costs): Promise<Settlement> {
    checkId(id);
    // Rust reads undefined as null, which is no amount.
    const amount = used === undefined ? {} : { used: copiedUse(used) };
    return settlementOf(await this.#callInJson("settle", policy, { id, ...amount }));
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
  async inc(policy: PolicyName, key: string, cost = 1, of?: string): Promise<number> {
    return this.#at(keyField(key)).inc(policy, cost, of);
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  async set(policy: PolicyName, key: string, count: number, of?: string): Promise<number> {
    return this.#at(keyField(key)).set(policy, count, of);
  }

  /** Returns the key's count. */
  async get(policy: PolicyName, key: string, of?: string): Promise<number> {
    return this.#at(keyField(key)).get(policy, of);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  async expiresAt(policy: PolicyName, key: string, of?: string): Promise<number> {
    return this.#at(keyField(key)).expiresAt(policy, of);
  }

  /** Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end. `of` names a ban. */
  async ban(policy: PolicyName, key: string, length: Duration, of?: string): Promise<number> {
    return this.#at(keyField(key)).ban(policy, length, of);
  }

  /** Lifts the ban of the key and forgets its past ones. Returns whether one held. */
  async unban(policy: PolicyName, key: string, of?: string): Promise<boolean> {
    return this.#at(keyField(key)).unban(policy, of);
  }

  /**
   * Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. Returns when it
   * ends, or would have ended; 0 if there was none.
   *
   * @example
   * ```ts
   * await env.TOLLGATE.except("api", "customer:42", { api: { limit: 1_000 } }, { for: "7d" });
   * ```
   */
  async except(
    policy: PolicyName,
    key: string,
    exception: Exception | null,
    end?: ExceptionEnd,
  ): Promise<number> {
    return this.#at(keyField(key)).except(policy, exception, end);
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  async exceptions(policy: PolicyName, key: string): Promise<KeyException | null> {
    return this.#at(keyField(key)).exceptions(policy);
  }

  /** Removes the key's states, with `reservations` its reservations too. Returns whether there were any. */
  async reset(policy: PolicyName, key: string, options: ResetOptions = {}): Promise<boolean> {
    return this.#at(keyField(key)).reset(policy, options);
  }

  /**
   * Returns the operations on the key by which a rule counts, given by its parts. A method of its own, so that no key that
   * comes from a request can name the key of a rule.
   */
  ofRule(parts: RuleParts): RuleTarget {
    return this.#at({ parts: copiedParts(parts) });
  }

  /** Returns the operations on a key. */
  #at(field: KeyField): RuleTarget {
    return new RuleTarget({
      decision: (operation, policy, cost) => this.#decision(operation, policy, field, cost),
      number: (operation, policy, amount, of) => this.#number(operation, policy, field, amount, of),
      answer: (operation, policy, fields) => this.#callInJson(operation, policy, { ...field, ...fields }),
    });
  }

  async #decision(operation: Operation, policy: PolicyName, field: KeyField, cost: Costs): Promise<Decision> {
    if (typeof cost === "object") {
      const answer = await this.#callInJson(operation, policy, { ...field, cost: copiedCosts(cost) });
      return fromJson((answer as { decision: JsonDecision }).decision);
    }
    const item = this.#item(operation, policy, field, cost);
    return named(await this.#call(operation, item), item.names);
  }

  async #number(
    operation: Operation,
    policy: PolicyName,
    field: KeyField,
    amount: number,
    of?: string,
  ): Promise<number> {
    return numberIn(await this.#call(operation, this.#item(operation, policy, field, amount, of)));
  }

  #item(operation: Operation, policy: PolicyName, field: KeyField, amount: number, of?: string): Item {
    checkAmount(operation, amount);
    checkName(of);
    if ("key" in field)
      return isolateOf(this.env).item(operation, policyNames(policy), field.key, amount, of);
    const amountField = amountFieldOf(operation);
    const written = amountField === undefined ? {} : { [amountField]: amount };
    return this.#read(operation, policy, { ...field, ...written, ...(of === undefined ? {} : { of }) });
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

/** Returns the name of an operation's amount; `undefined` if it has none. */
const amountFieldOf = (operation: Operation): string | undefined =>
  Object.entries<{ readonly kind: string }>(operations[operation].takes).find(
    ([, { kind }]) => kind !== "flag",
  )?.[0];

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
