import { copiedOptions } from "../checks.ts";
import { invalidField, wrongAmount, wrongInc } from "../errors/error.ts";
import { isStoreError } from "../errors/store-error.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import type { OnDecision } from "../events/messages.ts";
import { outageOf } from "../events/outage.ts";
import type { AsyncLimiter } from "../limiter/async-limiter.ts";
import { Fallback } from "../limiter/fallback.ts";
import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { readReserveOptions, readTtl } from "../limiter/options.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { UndoableHit } from "../limiter/undo.ts";
import { banLength, banPosition, uncountable } from "../policy/bans.ts";
import { isInteger, ttlExpected } from "../policy/durations.ts";
import { endAt, readEnd } from "../policy/exceptions.ts";
import { ReadPolicies } from "../policy/policies.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import { hexOf, idText, randomBits } from "../reservation/reservation-id.ts";
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
import type { Numbers } from "../wasm/decision-numbers.ts";
import { schema } from "../wasm/generated.ts";
import { breakerOf } from "./breaker.ts";
import { Exchange } from "./exchange.ts";
import { History } from "./history.ts";
import { type Inspection, inspection } from "./inspection.ts";
import type { KeyLog } from "./key-log.ts";
import { KeyLogs } from "./key-logs.ts";
import { LeasedHits, type LeaseIssuer } from "./leased-hits.ts";
import { defaultName, historyPrefix, keysPrefix } from "./names.ts";
import { type Operation, type OperationFields, operationOf } from "./operation.ts";
import { exceptionIn, OperationTexts } from "./operation-texts.ts";
import { readRedisOptions } from "./options.ts";
import { type HitResult, Replicas, type Reserved, type Result, sharedPolicies } from "./replicas.ts";
import { warnOfSharing } from "./sharing.ts";
import { type Counters, newCounters } from "./stats.ts";
import type { RedisOptions, RedisStats } from "./types.ts";

/** How old the last reply of Redis may be for a local denial, in milliseconds. */
const maxDenialAge = 2_000;

/** Whether the limiter that is being made shares its keys on purpose. */
let isSibling = false;

/** Returns a hit as entries have it: a cost of 1 is left out. */
function hitText(costs: string, callText: string): string {
  const text = costs === "1" ? "h" : `h${costs}`;
  return callText === "" ? text : `${text}@${callText}`;
}

/** Returns the listener of a limiter that keeps its denials. */
const heardBy = (history: History | undefined, onDecision: OnDecision | undefined): OnDecision | undefined =>
  history === undefined
    ? onDecision
    : (decision, message) => {
        history.add(message);
        return onDecision?.(decision, message);
      };

/**
 * A limiter whose keys are in Redis or Valkey: one budget for all processes that use it, exact under every algorithm. The
 * same methods as `RateLimiter`, asynchronous.
 *
 * @example
 * ```ts
 * import { Redis } from "ioredis";
 * import { RedisLimiter } from "tollgate/redis";
 *
 * const client = new Redis("redis://127.0.0.1:6379");
 * const limiter = new RedisLimiter({ algorithm: "token_bucket", capacity: 10, refillRate: 2 }, { client });
 * const decision = await limiter.hit("user:42");
 * ```
 */
export class RedisLimiter implements AsyncLimiter {
  /** Copies of the policies it was created with. */
  readonly policies: readonly Policy[];
  /** @internal */
  readonly publisher: AsyncPublisher;

  readonly #read: ReadPolicies;
  readonly #options: RedisOptions;
  readonly #texts: OperationTexts;
  readonly #replicas: Replicas;
  readonly #logs: KeyLogs;
  readonly #exchange: Exchange;
  readonly #fallback: Fallback;
  readonly #counters: Counters = newCounters();
  /** `undefined` if every hit is sent to Redis. */
  readonly #leasedHits: LeasedHits | undefined;
  /** `undefined` if denials are not kept. */
  readonly #history: History | undefined;
  /** The same as `maxDenialAge` while leases are open: they may be given back. */
  readonly #maxDenialAgeBesideLeases: number;
  /** The position of the first `concurrency` policy, which counts only reservations; -1 if there is none. */
  readonly #reserveOnlyPosition: number;

  constructor(policies: Policies, options: RedisOptions) {
    const readOptions = readRedisOptions(options);
    this.#options = readOptions.copy;
    const read = new ReadPolicies(policies);
    this.#read = read;
    this.policies = read.policies;
    this.#reserveOnlyPosition = read.origins.findIndex(({ algorithm }) => algorithm === "concurrency");
    const replicas = new Replicas(read);
    this.#replicas = replicas;
    this.#texts = new OperationTexts(read, replicas);
    const { prefix, name = defaultName, runner, timeout, restore, maxKeys, leaseTtl } = readOptions;
    const { history, onDecision } = readOptions;
    const { client } = this.#options;
    const outage = outageOf(client, "Redis");
    if (history > 0) this.#history = new History(runner, historyPrefix(prefix, name), history);
    this.publisher = new AsyncPublisher("redis", heardBy(this.#history, onDecision), outage);
    const counters = this.#counters;
    this.#logs = new KeyLogs(replicas, keysPrefix(prefix, name), maxKeys, counters);
    if (readOptions.name === undefined && !isSibling) warnOfSharing(client, prefix, replicas.policiesText);
    const { onError, fallback } = readOptions;
    const limiter =
      typeof fallback === "number" ? new RateLimiter(sharedPolicies(this.policies, fallback)) : fallback;
    this.#fallback = new Fallback(onError, limiter, this.policies, read.names);
    this.#exchange = new Exchange({
      runner,
      breaker: breakerOf(client, runner),
      outage,
      replicas,
      timeout,
      restore,
      counters,
    });
    this.#maxDenialAgeBesideLeases = (leaseTtl || schema.defaultLeaseTtl) / 2;
    if (leaseTtl > 0 && replicas.mayLease)
      this.#leasedHits = new LeasedHits(
        read.names,
        this.#logs,
        this.#issuer(leaseTtl),
        readOptions,
        counters,
      );
  }

  /** Counters since the limiter was created. */
  get stats(): RedisStats {
    return { ...this.#counters, keys: this.#logs.size };
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name.
   * A third argument has other numbers for this call only: the same algorithm and `scale`, another limit, capacity or
   * rate.
   */
  hit(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    if (!this.publisher.isHeard) return this.#hit(key, cost, policies);
    const hit = () => this.#hit(key, cost, policies);
    return this.publisher.awaited("hit", key, cost, hit, (decision) => decision);
  }

  #hit(key: string, cost: Costs, policies: Policies | undefined): Promise<Decision> {
    if (policies !== undefined) return this.#decide("h", key, cost, policies);
    // A hit with cost 0 is a peek.
    if (this.#leasedHits !== undefined && typeof cost === "number" && cost > 0)
      return this.#hitLeased(this.#leasedHits, key, cost);
    const denied = this.#denyLocally(key, cost);
    return denied === undefined ? this.#decide("h", key, cost, undefined) : Promise.resolve(denied);
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
    if (this.#reserveOnlyPosition >= 0) throw uncountable(this.#read, this.#reserveOnlyPosition, "hitAll");
    const costs = this.#texts.costs(cost);
    const callText = this.#texts.call(policies);
    const call = callText === "" ? "" : `@${callText}`;
    try {
      const { decision, id } = (await this.#perform("y", key, { text: `y${costs}${call}` })) as HitResult;
      if (id === undefined) return { decision, undo: undefined };
      const [high = 0, low = 0] = randomBits();
      const text = `u${hexOf(high)}${hexOf(low)}${id.slice(id.indexOf("."))}:${costs}${call}`;
      const undo = () => this.#perform("u", key, { text, ttl: schema.maxUndo, isFreeing: true });
      return { decision, undo };
    } catch (error) {
      const made = isStoreError(error) ? await this.#fallback.hitUndoable(key, cost) : undefined;
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
  hitAll(hits: readonly HitOf<RedisLimiter, string>[]): Promise<AllHits> {
    return hitAllElsewhere<RedisLimiter>(hits, byOwnPolicies);
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    return this.#decide("peek", key, cost, policies);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. The default `ttl` is that of a concurrency policy, or one minute. A key has at most
   * 1,024 open reservations.
   *
   * @example
   * ```ts
   * import { Redis } from "ioredis";
   * import { RedisLimiter } from "tollgate/redis";
   *
   * const policies = [
   *   { algorithm: "concurrency", limit: 5, name: "running" },
   *   { algorithm: "fix_window", limit: 90_000, scale: "1m", name: "tpm" },
   * ] as const;
   * const limiter = new RedisLimiter(policies, { client: new Redis() });
   * const reservation = await limiter.reserve("user:42", { tpm: 4000 }, { ttl: "2m" });
   * if (reservation.allowed) await reservation.settle({ tpm: 1234 });
   * ```
   */
  reserve(key: string, cost: Costs = 1, options: ReserveOptions = {}): Promise<AsyncReservation> {
    const reserve = () => this.#reserve(key, cost, options);
    if (!this.publisher.isHeard) return reserve();
    return this.publisher.awaited("reserve", key, cost, reserve, ({ decision }) => decision);
  }

  async #reserve(key: string, cost: Costs, options: ReserveOptions): Promise<AsyncReservation> {
    const { ttl = this.#replicas.defaultTtl, policies } = readReserveOptions(options);
    const isByPolicy = typeof cost !== "number";
    const bits = randomBits();
    const random = bits.map(hexOf).join("");
    const callText = this.#texts.call(policies);
    const text = `v${this.#texts.costs(cost)}:${ttl}:${random}${callText === "" ? "" : `@${callText}`}`;
    try {
      const { decision, end } = (await this.#perform("v", key, { text, ttl })) as Reserved;
      const id = decision.allowed ? idText({ key, bits, end, isByPolicy }) : "";
      return new AsyncReservation(this.#settling, key, decision, id, end);
    } catch (error) {
      const reservation = isStoreError(error) ? await this.#fallback.reserve(key, cost, ttl) : undefined;
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
    const { key, text } = this.#texts.settlement(id, used);
    return (await this.#perform("t", key, { text, isFreeing: true })) as Settlement;
  }

  /** Closes a reservation by its id without a charge. */
  cancel(id: string): Promise<Settlement> {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    const extended = await this.#extendUntil(id, ttl);
    return typeof extended === "number" ? "extended" : extended;
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. With several
   * policies, `policy` is the name of the one to charge.
   */
  async inc(key: string, cost = 1, policy?: string): Promise<number> {
    const max = Number.MAX_SAFE_INTEGER;
    const position = this.#read.position(policy);
    this.#checkCountable("inc", position);
    if (!isInteger(cost, -max, max)) throw wrongInc(cost);
    // Adding 0 changes no state.
    if (cost === 0) return this.get(key, policy);
    return (await this.#perform("i", key, { text: `i${cost}:${position}`, isFreeing: cost < 0 })) as number;
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  async set(key: string, count: number, policy?: string): Promise<number> {
    const position = this.#read.position(policy);
    this.#checkCountable("set", position);
    const max = this.#replicas.maxCount(position);
    if (!isInteger(count, 0, max)) throw wrongAmount("count", count, max);
    return (await this.#perform("s", key, { text: `s${count}:${position}`, isFreeing: true })) as number;
  }

  /**
   * Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end, in milliseconds
   * since the epoch by Redis's clock. Among several bans, `policy` is the name of one.
   */
  async ban(key: string, length: Duration, policy?: string): Promise<number> {
    const text = `b${banLength(length)}:${banPosition(this.#read, policy)}`;
    return (await this.#perform("b", key, { text })) as number;
  }

  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  async unban(key: string, policy?: string): Promise<boolean> {
    const text = `b0:${banPosition(this.#read, policy)}`;
    return ((await this.#perform("b", key, { text, isFreeing: true })) as number) > 0;
  }

  /** Returns the key's count. */
  async get(key: string, policy?: string): Promise<number> {
    return (await this.#perform("get", key, { position: this.#read.position(policy) })) as number;
  }

  /** Returns when the key's state ends, in milliseconds since the epoch by Redis's clock; 0 if it has none. */
  async expiresAt(key: string, policy?: string): Promise<number> {
    return (await this.#perform("expiresAt", key, { position: this.#read.position(policy) })) as number;
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has, for the whole fleet. Returns its end, in milliseconds since the epoch by Redis's clock; with `null`,
   * when it would have ended, or 0 if there was none.
   */
  except(key: string, exception: Exception, end: ExceptionEnd): Promise<number>;
  except(key: string, exception: null): Promise<number>;
  async except(key: string, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    if (exception === null)
      return (await this.#perform("e", key, { text: "e0:", isFreeing: true })) as number;
    const fields = this.#texts.exception(exception);
    const given = readEnd(end);
    // By the clock of this process; Redis's only decides when it ends.
    const ttl = endAt(given, Date.now()) - Date.now();
    const at = "length" in given ? `+${given.length}` : `${given.until}`;
    return (await this.#perform("e", key, { text: `e${at}:${fields}`, ttl, isFreeing: true })) as number;
  }

  /** Returns the exception of a key; `null` if it has none. */
  async exceptions(key: string): Promise<KeyException | null> {
    return exceptionIn((await this.#perform("exception", key, {})) as string, this.#read.names);
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   * An exception stays.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    const { reservations = false } = copiedOptions(options, ["reservations"]);
    if (typeof reservations !== "boolean")
      throw invalidField("invalid_option", "reservations", reservations, "a boolean");
    return (await this.#perform("r", key, { text: `r${Number(reservations)}`, isFreeing: true })) === 1;
  }

  /**
   * Returns what the value of a key in Redis says of it.
   * @internal
   */
  static inspect(value: string, now: number, since: number, policies?: Policies): Inspection {
    return inspection(value, now, since, policies);
  }

  /**
   * Returns a limiter under other policies, over the same keys.
   * @internal
   */
  sibling(policies: Policies): RedisLimiter {
    isSibling = true;
    try {
      return new RedisLimiter(policies, this.#options);
    } finally {
      isSibling = false;
    }
  }

  /** Ends the limiter, and frees its memory once the operations under way have ended. The client stays connected. */
  [Symbol.dispose](): void {
    if (!this.#logs.dispose()) return;
    this.#history?.flush();
    this.#leasedHits?.free();
    this.#exchange.whenIdle(() => this.#logs.free());
  }

  /** The methods for reservations. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: (id, ttl) => this.#extendUntil(id, ttl),
  };

  /** Moves the end of a reservation, and returns it. */
  async #extendUntil(id: string, ttl: Duration): Promise<Exclude<Settlement, "settled"> | number> {
    const time = readTtl(ttl);
    if (time === undefined) throw invalidField("invalid_option", "ttl", ttl, ttlExpected());
    const { key, text } = this.#texts.extension(id, time);
    return (await this.#perform("x", key, { text, ttl: time })) as "expired" | number;
  }

  /** Checks that the policy at a position counts more than reservations or denials. */
  #checkCountable(operation: string, position: number): void {
    const { algorithm } = this.#read.origins[position] ?? {};
    if (algorithm === "concurrency" || algorithm === "ban")
      throw uncountable(this.#read, position, operation);
  }

  /** Decides a hit or a peek by Redis. */
  #decide(kind: "h" | "peek", key: string, cost: Costs, policies: Policies | undefined): Promise<Decision> {
    try {
      const costs = cost === 1 ? "1" : this.#texts.costs(cost);
      if (kind === "h" && this.#reserveOnlyPosition >= 0)
        throw uncountable(this.#read, this.#reserveOnlyPosition, "hit");
      const callText = policies === undefined ? "" : this.#texts.call(policies);
      const log = this.#logs.get(key);
      // A hit with cost 0 is a peek.
      const isHit = kind === "h" && (cost === 1 || !/^[0,]+$/.test(costs));
      const text = isHit ? hitText(costs, callText) : costs;
      return this.#add(log, isHit ? "h" : "peek", { text, callText }, (error) =>
        this.#decideByFallback(isHit ? "hit" : "peek", key, cost, error),
      ) as Promise<Decision>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Decides a hit by the cached states, from a lease, or by Redis. */
  #hitLeased(leasedHits: LeasedHits, key: string, cost: number): Promise<Decision> {
    // The states count the unspent part of a lease as used, so while there is a lease they may deny too early.
    const denied = leasedHits.hasLease(key) ? undefined : this.#denyLocally(key, cost);
    if (denied !== undefined) return Promise.resolve(denied);
    try {
      if (!isInteger(cost)) throw wrongAmount("cost", cost);
      // Throws for an invalid key and for a disposed limiter.
      this.#logs.get(key);
      const decided = leasedHits.hit(key, cost);
      if (!(decided instanceof Promise)) return Promise.resolve(this.publisher.local(decided));
      return decided.catch((error) => this.#decideByFallback("hit", key, cost, error));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Returns the operations that hits with leases need. */
  #issuer(ttl: number): LeaseIssuer {
    return {
      hit: async (key, cost) =>
        (this.#denyLocally(key, cost) ??
          (await this.#perform("h", key, { text: hitText(`${cost}`, "") }))) as Decision,
      // A report without a hit may give back an amount that then can be used.
      renew: async (key, cost, text) =>
        (await this.#perform("l", key, { text, ttl, isFreeing: cost === 0 })) as Numbers,
    };
  }

  /** Performs an operation on a key. Rejects if Redis does not respond. */
  async #perform(kind: Operation["kind"], key: string, fields: OperationFields): Promise<Result> {
    return this.#add(this.#logs.get(key), kind, fields, (error) => {
      throw error;
    });
  }

  /** Adds an operation on a key. After an error, `fallback` returns the result or throws. */
  #add(
    log: KeyLog,
    kind: Operation["kind"],
    fields: OperationFields,
    fallback: (error: unknown) => Result | Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, fail) => {
      const reject = (error: unknown) => {
        try {
          resolve(fallback(error));
        } catch (thrown) {
          fail(thrown);
        }
      };
      this.#exchange.add(log, operationOf(kind, fields, resolve, reject));
    });
  }

  /** Returns the decision of a hit or a peek that failed in Redis, or throws the error. */
  #decideByFallback(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    error: unknown,
  ): Decision | Promise<Decision> {
    const decided = isStoreError(error) ? this.#fallback.decide(kind, key, cost) : undefined;
    if (decided === undefined) throw error;
    this.#counters.decidedWithout++;
    return decided instanceof Promise
      ? decided.then((decision) => this.publisher.without(decision, error))
      : this.publisher.without(decided, error);
  }

  /** Returns the decision of a hit that the cached states deny; `undefined` if Redis must decide. */
  #denyLocally(key: string, cost: Costs): Decision | undefined {
    // Kept short: most of the work under a flood of denials is here. Invalid input is rejected later.
    const log = this.#logs.find(key);
    if (log === undefined || log.mark === "" || log.freeing > 0 || this.#reserveOnlyPosition >= 0)
      return undefined;
    const now = performance.now();
    if (log.clock.age(now) > maxDenialAge || !isInteger(cost, 1) || this.#replicas.isLost) return undefined;
    const besideLeases = log.clock.age(now) <= this.#maxDenialAgeBesideLeases;
    const [earliest, latest] = [log.clock.earliest(now), log.clock.latest(now)];
    const denied = this.#replicas.deny(log.slot, cost, earliest, latest, besideLeases);
    if (denied === undefined) return undefined;
    log.isUsed = true;
    this.#counters.localDenials++;
    return this.publisher.local(denied);
  }
}
