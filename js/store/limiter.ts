import { invalidField, keyAccepts } from "../errors/error.ts";
import { isStoreError } from "../errors/store-error.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import { outageOf } from "../events/outage.ts";
import type { AsyncLimiter } from "../limiter/async-limiter.ts";
import { Fallback } from "../limiter/fallback.ts";
import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { Ledger, type LedgerHit, type LedgerReservation } from "../limiter/ledger.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { UndoableHit } from "../limiter/undo.ts";
import { isRecord } from "../policy/costs.ts";
import { milliseconds } from "../policy/durations.ts";
import { endAt, readEnd } from "../policy/exceptions.ts";
import { copiesOf } from "../policy/policies.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import { idText, parsedId } from "../reservation/reservation-id.ts";
import { checkTime } from "../time.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
} from "../types.ts";
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
export class StoreLimiter implements AsyncLimiter {
  /** Copies of the policies it was created with. */
  readonly policies: readonly Policy[];
  /** @internal */
  readonly publisher: AsyncPublisher;

  readonly #options: StoreOptions;
  readonly #ledger: Ledger;
  readonly #clock: () => number;
  readonly #prefix: string;
  readonly #exchange: Exchange;
  readonly #fallback: Fallback;
  readonly #counters: Counters = {
    operations: 0,
    gets: 0,
    swaps: 0,
    conflicts: 0,
    failed: 0,
    decidedWithout: 0,
  };
  #isDisposed = false;

  constructor(policies: Policies, options: StoreOptions) {
    const read = readStoreOptions(options);
    this.#options = read.copy;
    this.#ledger = new Ledger(policies);
    this.policies = this.#ledger.policies;
    const outage = outageOf(read.store, "the store");
    this.publisher = new AsyncPublisher("store", read.onDecision, outage);
    this.#clock = read.clock;
    this.#prefix = read.prefix;
    this.#exchange = new Exchange(read, this.#ledger, this.#counters, outage);
    this.#fallback = new Fallback(read.onError, read.fallback, this.policies, this.#ledger.names);
  }

  /** Counters since the limiter was created. */
  get stats(): StoreStats {
    return { ...this.#counters };
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name.
   * A third argument has other numbers for this call only: the same algorithm and `scale`, another limit, capacity or
   * rate.
   */
  hit(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    const decide = () => this.#decide("hit", key, cost, policies);
    if (!this.publisher.isHeard) return decide();
    return this.publisher.awaited("hit", key, cost, decide, (decision) => decision);
  }

  /**
   * Decides a hit of a decision over several keys.
   * @internal
   */
  async hitUndoable(
    key: string,
    cost: Costs = 1,
    policies: Policies | undefined = undefined,
  ): Promise<UndoableHit> {
    const costs = copiedCosts(cost);
    const call = copiedCall(policies);
    try {
      const work: Work<LedgerHit> = (ledger, now) => ledger.hitUndoable(now, costs, call);
      const { decision, hit } = await this.#perform(key, work);
      const undo = hit && (() => this.#perform(key, (ledger, now) => ledger.undo(now, costs, hit)));
      return { decision, undo };
    } catch (error) {
      const made = isStoreError(error) ? await this.#fallback.hitUndoable(key, costs) : undefined;
      if (made === undefined) throw error;
      this.#counters.decidedWithout++;
      this.publisher.without(made.decision, error);
      return made;
    }
  }

  /**
   * Decides over several keys, of this limiter and others outside the process.
   * @internal
   */
  hitAll(hits: readonly HitOf<StoreLimiter, string>[]): Promise<AllHits> {
    return hitAllElsewhere<StoreLimiter>(hits, byOwnPolicies);
  }

  /** Returns what a hit would return. Changes no state. */
  peek(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    return this.#decide("peek", key, cost, policies);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. The default `ttl` is that of a concurrency policy, or one minute. A key has at most
   * 1,024 open reservations.
   */
  reserve(key: string, cost: Costs = 1, options: ReserveOptions = {}): Promise<AsyncReservation> {
    const reserve = () => this.#reserve(key, cost, options);
    if (!this.publisher.isHeard) return reserve();
    return this.publisher.awaited("reserve", key, cost, reserve, ({ decision }) => decision);
  }

  async #reserve(key: string, cost: Costs, options: ReserveOptions): Promise<AsyncReservation> {
    const costs = copiedCosts(cost);
    const copy = copied(options);
    const policies = copiedCall(copy?.policies);
    try {
      const work: Work<LedgerReservation> = (ledger, now) =>
        ledger.reserve(now, costs, policies === undefined ? copy : { ...copy, policies });
      const reserved = await this.#perform(key, work);
      return this.#reservation(key, reserved);
    } catch (error) {
      const reservation = isStoreError(error)
        ? await this.#fallback.reserve(key, costs, copy.ttl)
        : undefined;
      if (reservation === undefined) throw error;
      this.#counters.decidedWithout++;
      this.publisher.without(reservation.decision, error);
      return reservation;
    }
  }

  /**
   * Closes a reservation by its id and charges the used amount, by default all of it. Returns `"settled"`, `"expired"`
   * (it had been charged in full) or `"closed"` (it had been settled).
   */
  async settle(id: string, used?: Costs): Promise<Settlement> {
    const [key, inLedger] = splitId(id);
    const costs = used === undefined ? undefined : copiedCosts(used);
    return this.#perform(key, (ledger, now) => ledger.settle(now, inLedger, costs));
  }

  /** Closes a reservation by its id without a charge. */
  cancel(id: string): Promise<Settlement> {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    const [extension] = await this.#extend(id, ttl);
    return extension;
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. With several
   * policies, `policy` is the name of the one to charge.
   */
  inc(key: string, cost = 1, policy?: string): Promise<number> {
    return this.#perform(key, (ledger, now) => ledger.inc(now, cost, policy));
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(key: string, count: number, policy?: string): Promise<number> {
    return this.#perform(key, (ledger, now) => ledger.set(now, count, policy));
  }

  /** Returns the key's count. */
  get(key: string, policy?: string): Promise<number> {
    return this.#perform(key, (ledger, now) => ledger.get(now, policy));
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(key: string, policy?: string): Promise<number> {
    return this.#perform(key, (ledger, now) => ledger.expiresAt(now, policy));
  }

  /**
   * Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end, in milliseconds
   * since the epoch. Among several bans, `policy` is the name of one.
   */
  ban(key: string, length: Duration, policy?: string): Promise<number> {
    return this.#perform(key, (ledger, now) => ledger.ban(now, length, policy));
  }

  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  unban(key: string, policy?: string): Promise<boolean> {
    return this.#perform(key, (ledger, now) => ledger.unban(now, policy));
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has. Returns its end; with `null`, when it would have ended, or 0 if there was none.
   */
  except(key: string, exception: Exception, end: ExceptionEnd): Promise<number>;
  except(key: string, exception: null): Promise<number>;
  async except(key: string, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    if (exception === null) return this.#perform(key, (ledger, now) => ledger.exceptUntil(now, [], 0));
    const parts = this.#ledger.readException(exception);
    const until = endAt(readEnd(end), checkTime(this.#clock()));
    return this.#perform(key, (ledger, now) => ledger.exceptUntil(now, parts, until));
  }

  /** Returns the exception of a key; `null` if it has none. */
  exceptions(key: string): Promise<KeyException | null> {
    return this.#perform(key, (ledger, now) => ledger.exceptions(now));
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   * An exception stays.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    const copy = copied(options);
    return this.#perform(key, (ledger, now) => ledger.reset(now, copy));
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

  /** The methods for reservations. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: async (id, ttl) => {
      const [extension, end] = await this.#extend(id, ttl);
      return extension === "extended" ? end : extension;
    },
  };

  #reservation(key: string, { decision, id, expiresAt }: LedgerReservation): AsyncReservation {
    return new AsyncReservation(this.#settling, key, decision, id && id + key, expiresAt);
  }

  async #extend(id: string, ttl: Duration): Promise<[extension: Extension, end: number]> {
    const [key, inLedger] = splitId(id);
    return this.#perform(key, (ledger, now) => [
      ledger.extend(now, inLedger, ttl),
      Math.floor(now) + (milliseconds(ttl) ?? 0),
    ]);
  }

  async #decide(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    policies: Policies | undefined,
  ): Promise<Decision> {
    const costs = copiedCosts(cost);
    const call = copiedCall(policies);
    try {
      return await this.#perform(key, (ledger, now) => ledger[kind](now, costs, call));
    } catch (error) {
      const decision = isStoreError(error) ? await this.#fallback.decide(kind, key, costs) : undefined;
      if (decision === undefined) throw error;
      this.#counters.decidedWithout++;
      return this.publisher.without(decision, error);
    }
  }

  /** Performs an operation on a key. */
  async #perform<Result>(key: string, work: Work<Result>): Promise<Result> {
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

/** Copies options, each read once. A value that is not an object stays as it is, and is rejected later. */
const copied = <Given>(options: Given): Given => (isRecord(options) ? { ...options } : options);

/** Copies the policies of a call, each field read once. */
const copiedCall = (policies: Policies | undefined): Policies | undefined =>
  policies === undefined ? undefined : (copiesOf(policies) as readonly Policy[]);

/** Returns the key of a reservation, and its id in the ledger, which knows no key. */
function splitId(text: string): [key: string, id: string] {
  const parts = parsedId(text);
  return [parts.key as string, idText({ ...parts, key: "" })];
}
