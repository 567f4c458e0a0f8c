import { invalidField, keyAccepts } from "../errors/error.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import { outageOf } from "../events/outage.ts";
import { Fallback } from "../limiter/fallback.ts";
import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { Ledger } from "../limiter/ledger.ts";
import { LimiterElsewhere, type MadeReservation } from "../limiter/limiter-elsewhere.ts";
import type { Excepting, KeyOperation, ReservationOperation } from "../limiter/operation.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { UndoableHit } from "../limiter/undo.ts";
import { isRecord } from "../policy/costs.ts";
import { endAt, readEnd } from "../policy/exceptions.ts";
import { KnownPolicies } from "../policy/known-policies.ts";
import { idText, parsedId } from "../reservation/reservation-id.ts";
import { checkTime } from "../time.ts";
import type { Costs, Decision, Policies, Policy, Settlement } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { isWellFormed } from "../well-formed.ts";
import { disposed } from "./errors.ts";
import { type Counters, Exchange, type Work } from "./exchange.ts";
import { readStoreOptions } from "./options.ts";
import type { StoreOptions, StoreStats } from "./types.ts";

/**
 * A limiter whose keys are in a store of yours: any database that can replace a text if it is still the same. One budget
 * for all processes that use the store, exact under every algorithm. The same methods as `RateLimiter`, asynchronous.
 *
 * @example
 * ```ts
 * import { StoreLimiter } from "tollgate/store";
 *
 * const texts = new Map<string, string>();
 * const store = {
 *   get: (key: string) => texts.get(key),
 *   swap(key: string, before: string | null, after: string | null) {
 *     if ((texts.get(key) ?? null) !== before) return false;
 *     if (after === null) texts.delete(key);
 *     else texts.set(key, after);
 *     return true;
 *   },
 * };
 * const limiter = new StoreLimiter({ algorithm: "fix_window", limit: 1, scale: "1m" }, { store });
 * const first = await limiter.hit("user:42");
 * const second = await limiter.hit("user:42");
 * console.log([first.allowed, second.allowed]); // => [true, false]
 * ```
 */
export class StoreLimiter extends LimiterElsewhere {
  /** Copies of the policies it was created with. */
  readonly policies: readonly Policy[];

  readonly #options: StoreOptions;
  readonly #ledger: Ledger;
  readonly #clock: () => number;
  readonly #prefix: string;
  readonly #exchange: Exchange;
  readonly #counters: Counters;
  /** The policies of calls, each read once. */
  readonly #calls = new KnownPolicies((policies) => ({ policies: this.#ledger.readPolicies(policies) }));
  #isDisposed = false;

  constructor(policies: Policies, options: StoreOptions) {
    const read = readStoreOptions(options);
    const ledger = new Ledger(policies);
    const counters = { operations: 0, gets: 0, swaps: 0, conflicts: 0, failed: 0, decidedWithout: 0 };
    const outage = outageOf(read.store, "the store");
    const publisher = new AsyncPublisher("store", read.onDecision, outage);
    super(publisher, new Fallback(read.onError, read.fallback, ledger), counters);
    this.#options = read.copy;
    this.#ledger = ledger;
    this.policies = ledger.policies;
    this.#clock = read.clock;
    this.#prefix = read.prefix;
    this.#counters = counters;
    this.#exchange = new Exchange(read, ledger, counters, outage);
  }

  /** Counters since the limiter was created. */
  get stats(): StoreStats {
    return { ...this.#counters };
  }

  /** @internal */
  override async decide(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    policies: Policies | undefined,
  ): Promise<Decision> {
    const costs = copiedCosts(cost);
    const call = this.#call(policies);
    try {
      return await this.#work(key, (ledger, now) => ledger[kind](now, costs, call));
    } catch (error) {
      return this.decideWithout(kind, key, costs, error);
    }
  }

  /** @internal */
  override async perform(key: string, operation: KeyOperation | Excepting): Promise<unknown> {
    switch (operation.name) {
      case "hit":
        return this.#hitUndoable(key, operation);
      case "reserve": {
        const { decision, id, expiresAt } = (await this.#work(
          key,
          working(this.#copied(operation)),
        )) as MadeReservation;
        return { decision, id: id && id + key, expiresAt };
      }
      case "except":
        return this.#except(key, operation);
      default:
        return this.#work(key, working(operation));
    }
  }

  /** @internal */
  override close(id: string, operation: ReservationOperation): Promise<Settlement | number> {
    return operation.name === "settle" ? this.#settle(id, operation.used) : this.#extend(id, operation.ttl);
  }

  /** Copies an operation whose arguments are objects, each field read once. */
  #copied(operation: Extract<KeyOperation, Costing>): KeyOperation {
    const { cost, policies } = operation;
    return { ...operation, cost: copiedCosts(cost), policies: this.#call(policies) };
  }

  /** Copies the policies of a call. */
  #call(policies: Policies | undefined): Policies | undefined {
    return policies === undefined ? undefined : this.#calls.of(policies).policies;
  }

  async #hitUndoable(key: string, { cost, policies }: Costing): Promise<UndoableHit> {
    const costs = copiedCosts(cost);
    const call = this.#call(policies);
    const { decision, hit } = await this.#work(key, (ledger, now) => ledger.hitUndoable(now, costs, call));
    const undo = hit && (() => this.#work(key, (ledger, now) => ledger.undo(now, costs, hit)));
    return { decision, undo };
  }

  async #settle(id: string, used: Costs | undefined): Promise<Settlement> {
    const [key, inLedger] = splitId(id);
    const costs = used === undefined ? undefined : copiedCosts(used);
    return this.#work(key, (ledger, now) => ledger.settle(now, inLedger, costs));
  }

  async #extend(id: string, ttl: number): Promise<Settlement | number> {
    const [key, inLedger] = splitId(id);
    return this.#work(key, (ledger, now) => {
      const extension = ledger.extend(now, inLedger, ttl);
      return extension === "extended" ? Math.floor(now) + ttl : extension;
    });
  }

  #except(key: string, { exception, end }: Excepting): Promise<number> {
    if (exception === null) return this.#work(key, (ledger, now) => ledger.exceptUntil(now, [], 0));
    const parts = this.#ledger.readException(exception);
    const until = endAt(readEnd(end), checkTime(this.#clock()));
    return this.#work(key, (ledger, now) => ledger.exceptUntil(now, parts, until));
  }

  /**
   * Decides over several keys, of this limiter and others outside the process.
   * @internal
   */
  hitAll(hits: readonly HitOf<StoreLimiter, string>[]): Promise<AllHits> {
    return hitAllElsewhere<StoreLimiter>(hits, byOwnPolicies);
  }

  /**
   * Returns a limiter under other policies, over the same keys.
   * @internal
   */
  sibling(policies: Policies): StoreLimiter {
    return new StoreLimiter(policies, this.#options);
  }

  /** Frees the memory. The store stays open. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#ledger[Symbol.dispose]();
  }

  /** Performs an operation on a key. */
  async #work<Result>(key: string, work: Work<Result>): Promise<Result> {
    if (this.#isDisposed) throw disposed();
    checkStoredKey(key);
    this.#check(work);
    return this.#exchange.perform(this.#prefix + key, work);
  }

  /** Performs an operation on a key never used, so that invalid input is rejected before the store is called. */
  #check(work: Work): void {
    this.#ledger.load(0, null);
    work(this.#ledger, 0);
  }
}

/** Checks that a key can be stored outside the process. */
function checkStoredKey(key: unknown): asserts key is string {
  const isKey =
    typeof key === "string" &&
    key !== "" &&
    key.length <= schema.maxKeyBytes &&
    isWellFormed(key) &&
    new TextEncoder().encode(key).length <= schema.maxKeyBytes;
  if (!isKey) throw invalidField("invalid_key", "key", key, keyAccepts);
}

/** Copies costs, each read once: they are used again after a swap that failed. */
const copiedCosts = (costs: Costs): Costs => (isRecord(costs) ? { ...costs } : costs);

/** An operation with costs, and the policies of the call. */
type Costing = Extract<KeyOperation, { readonly policies: unknown }>;

/** Returns the work of an operation on the loaded states. */
const working =
  (operation: KeyOperation): Work =>
  (ledger, now) =>
    ledger.perform(now, operation);

/** Returns the key of a reservation, and its id in the ledger, which knows no key. */
function splitId(text: string): [key: string, id: string] {
  const parts = parsedId(text);
  return [parts.key as string, idText({ ...parts, key: "" })];
}
