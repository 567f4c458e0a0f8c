import { DurableObject } from "cloudflare:workers";
import type { RateLimiterObject as RustObject } from "../../../build/worker/tollgate.js";
import { type ErrorCode, TollgateError } from "../../errors/error.ts";
import { listened } from "../../events/listened.ts";
import type { DecisionMessage } from "../../events/messages.ts";
import { fromJson, type JsonDecision } from "../../http/json-decision.ts";
import { banLength } from "../../policy/bans.ts";
import { copiedCosts, copiedUse } from "../../policy/copied-costs.ts";
import { exceptionFields, type JsonException, keyException } from "../../policy/exception-fields.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Policies,
  Settlement,
} from "../../types.ts";
import { type Numbers, named, numberIn } from "../../wasm/decision-numbers.ts";
import type { Counted, Operation } from "../../wasm/operations.ts";
import type { TollgateEnv } from "../env.ts";
import { type Isolate, isolateOf, Misconfigured } from "../gateway/isolate.ts";
import { type Ended, inLog, report, reportEnded } from "../log.ts";
import { Rebuilt } from "../wasm.ts";
import type { WatchObject } from "../watch/watch-object.ts";
import { type Admission, newMark } from "./admission.ts";
import { namespaceOf, watchName } from "./ask.ts";
import {
  checkAmount,
  checkId,
  checkName,
  checkReservations,
  checkTexts,
  checkTtl,
  policiesAsJson,
} from "./checks.ts";
import { type Answer, type ErrorInfo, type Reserved, reservedBy, settlementOf } from "./decision.ts";

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
  /** The policies of the last decision, and their names. */
  #named: { readonly json: string; readonly names: readonly string[] } = { json: "", names: [] };
  /** The counts of all keys, if this is the watch object. */
  #watch: Promise<WatchObject> | undefined;

  /**
   * Called after each decision of a direct `hit` or `reserve`, if a class that extends this one has it. What it throws is only
   * logged.
   *
   * @example
   * ```ts
   * import type { Decision } from "tollgate";
   * import { RateLimiterObject as Base } from "tollgate/cloudflare";
   *
   * export class RateLimiterObject extends Base {
   *   override onDecision({ allowed, policy }: Decision) {
   *     if (!allowed) console.log("denied by", policy);
   *   }
   * }
   * ```
   */
  onDecision?(decision: Decision, message: DecisionMessage): unknown;

  constructor(context: DurableObjectState, env: TollgateEnv) {
    super(context, env);
    this.#object = new Rebuilt((rust) => new rust.RateLimiterObject(context, env));
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name.
   * Several policies are one decision.
   */
  hit(policies: Policies, cost: Costs = 1): Decision {
    const start = this.#start();
    return this.#reported("hit", this.#decision("hit", policies, cost), cost, start);
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
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
    const { name } = this.ctx.id;
    const start = this.#start();
    // The kind of a key that is a string comes before it.
    const key = name === undefined ? undefined : `s${name}`;
    const reserved = reservedBy(
      this.#applyInJson("reserve", policies, { cost: copiedCosts(cost), ttl, key }),
    );
    this.#reported("reserve", reserved.decision, cost, start);
    return reserved;
  }

  /** Closes a reservation under these policies and charges the used amount, by default all of it. */
  settle(policies: Policies, id: string, used?: Costs): Settlement {
    checkId(id);
    const copy = used === undefined ? undefined : copiedUse(used);
    return settlementOf(this.#applyInJson("settle", policies, { used: copy, id }));
  }

  /** Closes a reservation under these policies without a charge. */
  cancel(policies: Policies, id: string): Settlement {
    checkId(id);
    return settlementOf(this.#applyInJson("cancel", policies, { id }));
  }

  /** Moves the end of a reservation to `ttl` from now. */
  extend(policies: Policies, id: string, ttl: Duration): Extension {
    checkId(id);
    checkTtl(ttl);
    return settlementOf(this.#applyInJson("extend", policies, { id, ttl }));
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. With several
   * policies, `policy` is the name of the one to charge.
   */
  inc(policies: Policies, cost = 1, policy?: string): number {
    return this.#number("inc", policies, cost, policy);
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(policies: Policies, count: number, policy?: string): number {
    return this.#number("set", policies, count, policy);
  }

  /** Returns the key's count. */
  get(policies: Policies, policy?: string): number {
    return this.#number("get", policies, 0, policy);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(policies: Policies, policy?: string): number {
    return this.#number("expires_at", policies, 0, policy);
  }

  /**
   * Denies every hit for so long, or changes the end of the ban that holds. Returns the end, in milliseconds since the
   * epoch. With several bans, `policy` is the name of one.
   */
  ban(policies: Policies, length: Duration, policy?: string): number {
    return this.#number("ban", policies, banLength(length), policy);
  }

  /** Lifts a ban and forgets past ones. Returns whether one held. */
  unban(policies: Policies, policy?: string): boolean {
    return this.#number("unban", policies, 0, policy) > 0;
  }

  /**
   * Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. Returns when it
   * ends, or would have ended; 0 if there was none.
   *
   * @example
   * ```ts
   * const policy = { name: "api", algorithm: "sliding_counter", limit: 100, scale: "1m" } as const;
   * const customer = env.LIMITERS.getByName("customer:42");
   * await customer.except(policy, { api: { limit: 1_000 } }, { for: "7d" });
   * await customer.except(policy, null);
   * ```
   */
  except(policies: Policies, exception: Exception | null, end?: ExceptionEnd): number {
    const { number } = this.#applyInJson("except", policies, { ...exceptionFields(exception, end) }) as {
      number: number;
    };
    return number;
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  exceptions(policies: Policies): KeyException | null {
    const answer = this.#applyInJson("exceptions", policies, {}) as { excepted: JsonException };
    return keyException(answer.excepted);
  }

  /** Removes the key's states, with `reservations` its reservations too. Returns whether there were any. */
  reset(policies: Policies, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    const { reservations } = options;
    checkReservations(reservations);
    if (!reservations) return this.#number("reset", policies, 0) === 1;
    return (this.#applyInJson("reset", policies, { reservations }) as { reset: boolean }).reset;
  }

  /** Applies an operation with more than an amount, for the Worker. Takes a question in JSON, and returns its answer. */
  question(json: string): string {
    if (typeof json !== "string")
      throw new TollgateError("invalid_operation", "the question must be a string of JSON");
    return this.#call((object) => object.answer(json, Date.now()));
  }

  /** Performs an operation that has an amount at most, for the Worker. `policy` is the name of one of several. */
  count(
    operation: Counted,
    policies: string,
    amount: number,
    policy?: string,
    credit = false,
    admission?: Admission,
  ): Numbers | ErrorInfo {
    return answered(() =>
      this.#admitted(policies, admission, () =>
        this.#count(operation, policies, amount, policy, credit === true),
      ),
    );
  }

  /** Charges what the holder of a lease reports, decides a hit and renews the lease, for the Worker. */
  lease(
    policies: string,
    cost: number,
    report: string,
    credit = false,
    admission?: Admission,
  ): Numbers | ErrorInfo {
    return answered(() => {
      checkTexts(policies, report);
      checkAmount("lease", cost);
      return this.#admitted(policies, admission, () =>
        this.#call((object) => object.lease(policies, cost, report, credit === true, Date.now())),
      );
    });
  }

  /** Decides a hit of a decision over several keys, for the Worker. Its id follows the numbers, if it charged the key. */
  hitUndoable(policies: string, cost: number, admission?: Admission): Numbers | ErrorInfo {
    return answered(() => {
      checkTexts(policies);
      checkAmount("hit", cost);
      return this.#admitted(policies, admission, () =>
        this.#call((object) => object.hitUndoable(policies, cost, Date.now())),
      );
    });
  }

  /** Undoes such a hit of this cost: gives back what of it still counts, once. */
  undo(policies: string, cost: number, id: string): Numbers | ErrorInfo {
    return answered(() => {
      checkTexts(policies, id);
      checkAmount("hit", cost);
      return this.#call((object) => object.undo(policies, cost, id, Date.now()));
    });
  }

  /** Applies an operation in JSON, for a Worker in Rust, and responds with its result in JSON. */
  override async fetch(request: Request): Promise<Response> {
    const question = await request.text();
    return new Response(this.question(question), { headers: { "Content-Type": "application/json" } });
  }

  /** Takes a report on the decisions of an isolate, or returns what is known of all, in JSON: for the Worker's live page. */
  async watch(question: string): Promise<string> {
    checkTexts(question);
    return (await this.#watching()).ask(question, Date.now());
  }

  /**
   * Fires when the key may have expired. If it has, all its storage is deleted, so that an unused key costs nothing. Fires
   * also to return credit: a timer for that would keep the object in memory.
   */
  override async alarm(): Promise<void> {
    if (this.#isWatch()) return (await this.#watching()).ring(Date.now());
    const [ended, empty] = this.#call((object) => object.expire(Date.now())) as [string, boolean];
    const key = this.#key();
    for (const state of JSON.parse(ended) as Ended[]) reportEnded(this.env, key, state);
    if (empty) await this.ctx.storage.deleteAll();
  }

  /** Whether this is the watch object. By its id: an object that an alarm starts may not know its name. */
  #isWatch(): boolean {
    const { id } = this.ctx;
    if (this.env.LIMITERS === undefined) return false;
    const jurisdiction = id.jurisdiction as DurableObjectJurisdiction | undefined;
    return namespaceOf(this.env, { jurisdiction }).idFromName(watchName).equals(id);
  }

  #watching(): Promise<WatchObject> {
    this.#watch ??= import("../watch/watch-chunk.ts").then(
      ({ WatchObject }) => new WatchObject(this.ctx.storage),
    );
    return this.#watch;
  }

  /** Performs an operation under a limit on new keys: on a key that is new only if it is admitted, which is marked. */
  #admitted(policies: string, admission: Admission | undefined, work: () => Numbers): Numbers {
    if (admission === undefined) return work();
    const { keptFor, isAdmitted } = admission;
    checkTexts(policies);
    const isNew = this.#call((object) => object.isNew(policies, keptFor, Date.now()));
    if (!isNew) return work();
    return isAdmitted === true ? work() + newMark : newMark;
  }

  #count(
    operation: Counted,
    policies: string,
    amount: number,
    policy?: string,
    credit = this.#hasCredit(),
  ): Numbers {
    checkTexts(operation, policies);
    checkAmount(operation, amount);
    checkName(policy);
    return this.#call((object) =>
      operation === "hit"
        ? object.hit(policies, amount, credit, Date.now())
        : object.count(operation, policies, amount, policy, credit, Date.now()),
    );
  }

  /** Calls Rust. It awaits nothing between reading the time and writing, so that no other call comes in between. */
  #call<Result>(work: (object: RustObject) => Result): Result {
    return this.#object.call(work);
  }

  /** Returns whether the configuration allows credit: hits in memory that a reserved amount in the row covers. */
  #hasCredit(): boolean {
    return configured(this.env, ({ hasCredit }) => hasCredit) ?? false;
  }

  /** Applies an operation that has more than an amount. */
  #applyInJson(operation: Operation, policies: Policies, more: Readonly<Record<string, unknown>>): Answer {
    const question = JSON.stringify({ operation, ...more });
    const json = `${question.slice(0, -1)},"policies":${policiesAsJson(policies)}}`;
    const answer = JSON.parse(this.question(json)) as Answer;
    if ("error" in answer) throw new TollgateError(answer.error.code as ErrorCode, answer.error.message);
    return answer;
  }

  /** Returns the time before a decision that somebody listens to. */
  #start(): number {
    return this.onDecision === undefined ? 0 : performance.now();
  }

  /** Reports a denial, and passes the decision to who listens. Not for the Worker, which knows more, and reports it. */
  #reported(operation: "hit" | "reserve", decision: Decision, cost: Costs, start: number): Decision {
    if (this.onDecision !== undefined) {
      const { name = this.ctx.id.toString() } = this.ctx.id;
      const duration = performance.now() - start;
      const { allowed } = decision;
      const message = {
        limiter: "object",
        operation,
        key: name,
        cost,
        decision,
        allowed,
        by: "limiter",
        duration,
      } as const;
      listened(() => this.onDecision?.(decision, message));
    }
    if (!decision.allowed) {
      const { violated: policies, reason } = decision;
      report(this.env, {
        event: "denied",
        via: "object",
        key: this.#key(),
        policies,
        reason,
        ...inLog(cost),
      });
    }
    return decision;
  }

  #decision(operation: "hit" | "peek", policies: Policies, cost: Costs): Decision {
    if (typeof cost !== "number") {
      const answer = this.#applyInJson(operation, policies, { cost: copiedCosts(cost) }) as {
        decision: JsonDecision;
      };
      return fromJson(answer.decision);
    }
    const json = policiesAsJson(policies);
    const numbers = this.#count(operation, json, cost);
    if (this.#named.json !== json) this.#named = { json, names: this.#call((object) => object.names()) };
    return named(numbers, this.#named.names);
  }

  #number(operation: Counted, policies: Policies, amount: number, policy?: string): number {
    return numberIn(this.#count(operation, policiesAsJson(policies), amount, policy));
  }

  /** Returns the key as the Worker's logs have it; without a name or a configuration the id, which is a keyed hash. */
  #key(): string {
    const { id } = this.ctx;
    const { name } = id;
    const logged =
      name === undefined ? undefined : configured(this.env, (isolate) => isolate.logged(name, this.env));
    return logged ?? id.toString();
  }
}

/** Returns a value of the isolate; `undefined` if the configuration has errors. */
function configured<Value>(env: TollgateEnv, value: (isolate: Isolate) => Value): Value | undefined {
  try {
    return value(isolateOf(env));
  } catch (error) {
    if (error instanceof Misconfigured) return undefined;
    throw error;
  }
}

/** Returns a result, or an error as plain data: a thrown one may lose its code on its way through RPC. */
function answered(work: () => Numbers): Numbers | ErrorInfo {
  try {
    return work();
  } catch (error) {
    const { code, message } = error as ErrorInfo;
    if (typeof code !== "string") throw error;
    return { code, message };
  }
}
