import { wrongAmount, wrongInc } from "../errors/error.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import type { OnDecision } from "../events/messages.ts";
import { outageOf } from "../events/outage.ts";
import { Fallback } from "../limiter/fallback.ts";
import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { LimiterElsewhere, type MadeReservation } from "../limiter/limiter-elsewhere.ts";
import type { Excepting, KeyOperation, ReservationOperation } from "../limiter/operation.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { UndoableHit } from "../limiter/undo.ts";
import { banPosition, uncountable } from "../policy/bans.ts";
import { isInteger } from "../policy/durations.ts";
import { endAt, readEnd } from "../policy/exceptions.ts";
import { ReadPolicies } from "../policy/policies.ts";
import { hexOf, idText, randomBits } from "../reservation/reservation-id.ts";
import type { Costs, Decision, Policies, Policy, Settlement } from "../types.ts";
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
export class RedisLimiter extends LimiterElsewhere {
  /** Copies of the policies it was created with. */
  readonly policies: readonly Policy[];

  readonly #read: ReadPolicies;
  readonly #options: RedisOptions;
  readonly #texts: OperationTexts;
  readonly #replicas: Replicas;
  readonly #logs: KeyLogs;
  readonly #exchange: Exchange;
  readonly #counters: Counters;
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
    const read = new ReadPolicies(policies);
    const replicas = new Replicas(read);
    const { prefix, name = defaultName, runner, timeout, restore, maxKeys, leaseTtl } = readOptions;
    const { history: kept, onDecision, onError, fallback } = readOptions;
    const history = kept > 0 ? new History(runner, historyPrefix(prefix, name), kept) : undefined;
    const counters = newCounters();
    const limiter =
      typeof fallback === "number" ? new RateLimiter(sharedPolicies(read.policies, fallback)) : fallback;
    const { client } = readOptions.copy;
    const outage = outageOf(client, "Redis");
    super(
      new AsyncPublisher("redis", heardBy(history, onDecision), outage),
      new Fallback(onError, limiter, read),
      counters,
    );
    this.#options = readOptions.copy;
    this.#read = read;
    this.policies = read.policies;
    this.#reserveOnlyPosition = read.origins.findIndex(({ algorithm }) => algorithm === "concurrency");
    this.#replicas = replicas;
    this.#texts = new OperationTexts(read, replicas);
    this.#history = history;
    this.#counters = counters;
    this.#logs = new KeyLogs(replicas, keysPrefix(prefix, name), maxKeys, counters);
    if (readOptions.name === undefined && !isSibling) warnOfSharing(client, prefix, replicas.policiesText);
    const breaker = breakerOf(client, runner);
    this.#exchange = new Exchange({ runner, breaker, outage, replicas, timeout, restore, counters });
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

  /** @internal */
  override decide(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    policies: Policies | undefined,
  ): Promise<Decision> {
    return kind === "hit" ? this.#hit(key, cost, policies) : this.#decide("peek", key, cost, policies);
  }

  #hit(key: string, cost: Costs, policies: Policies | undefined): Promise<Decision> {
    if (policies !== undefined) return this.#decide("h", key, cost, policies);
    // A hit with cost 0 is a peek.
    if (this.#leasedHits !== undefined && typeof cost === "number" && cost > 0)
      return this.#hitLeased(this.#leasedHits, key, cost);
    const denied = this.#denyLocally(key, cost);
    return denied === undefined ? this.#decide("h", key, cost, undefined) : Promise.resolve(denied);
  }

  /** @internal */
  override async perform(key: string, operation: KeyOperation | Excepting): Promise<unknown> {
    const read = this.#read;
    switch (operation.name) {
      case "hit":
        return this.#hitUndoable(key, operation.cost, operation.policies);
      case "reserve":
        return this.#reserve(key, operation);
      case "inc": {
        const { cost } = operation;
        const position = this.#countable("inc", operation.of);
        const max = Number.MAX_SAFE_INTEGER;
        if (!isInteger(cost, -max, max)) throw wrongInc(cost);
        // Adding 0 changes no state.
        if (cost === 0) return this.#send("get", key, { position });
        return this.#send("i", key, { text: `i${cost}:${position}`, isFreeing: cost < 0 });
      }
      case "set": {
        const { count } = operation;
        const position = this.#countable("set", operation.of);
        const max = this.#replicas.maxCount(position);
        if (!isInteger(count, 0, max)) throw wrongAmount("count", count, max);
        return this.#send("s", key, { text: `s${count}:${position}`, isFreeing: true });
      }
      case "get":
        return this.#send("get", key, { position: read.position(operation.of) });
      case "expires_at":
        return this.#send("expiresAt", key, { position: read.position(operation.of) });
      case "ban":
        return this.#send("b", key, { text: `b${operation.for}:${banPosition(read, operation.of)}` });
      case "unban": {
        const text = `b0:${banPosition(read, operation.of)}`;
        return ((await this.#send("b", key, { text, isFreeing: true })) as number) > 0;
      }
      case "except":
        return this.#except(key, operation);
      case "exceptions":
        return exceptionIn((await this.#send("exception", key, {})) as string, read.names);
      case "reset": {
        const text = `r${Number(operation.reservations)}`;
        return (await this.#send("r", key, { text, isFreeing: true })) === 1;
      }
      default:
        // The compiler names an operation that is missing here.
        throw operation satisfies never;
    }
  }

  /** @internal */
  override async close(id: string, operation: ReservationOperation): Promise<Settlement | number> {
    if (operation.name === "settle") {
      const { key, text } = this.#texts.settlement(id, operation.used);
      return (await this.#send("t", key, { text, isFreeing: true })) as Settlement;
    }
    const { ttl } = operation;
    const { key, text } = this.#texts.extension(id, ttl);
    return (await this.#send("x", key, { text, ttl })) as "expired" | number;
  }

  /** Decides a hit of a decision over several keys. */
  async #hitUndoable(key: string, cost: Costs, policies: Policies | undefined): Promise<UndoableHit> {
    if (this.#reserveOnlyPosition >= 0) throw uncountable(this.#read, this.#reserveOnlyPosition, "hitAll");
    const costs = this.#texts.costs(cost);
    const callText = this.#texts.call(policies);
    const call = callText === "" ? "" : `@${callText}`;
    const { decision, id } = (await this.#send("y", key, { text: `y${costs}${call}` })) as HitResult;
    if (id === undefined) return { decision, undo: undefined };
    const [high = 0, low = 0] = randomBits();
    const text = `u${hexOf(high)}${hexOf(low)}${id.slice(id.indexOf("."))}:${costs}${call}`;
    return { decision, undo: () => this.#send("u", key, { text, ttl: schema.maxUndo, isFreeing: true }) };
  }

  async #reserve(
    key: string,
    { cost, ttl = this.#replicas.defaultTtl, policies }: Extract<KeyOperation, { name: "reserve" }>,
  ): Promise<MadeReservation> {
    const isByPolicy = typeof cost !== "number";
    const bits = randomBits();
    const random = bits.map(hexOf).join("");
    const callText = this.#texts.call(policies);
    const text = `v${this.#texts.costs(cost)}:${ttl}:${random}${callText === "" ? "" : `@${callText}`}`;
    const { decision, end } = (await this.#send("v", key, { text, ttl })) as Reserved;
    const id = decision.allowed ? idText({ key, bits, end, isByPolicy }) : "";
    return { decision, id, expiresAt: end };
  }

  #except(key: string, { exception, end }: Excepting): Promise<Result> {
    if (exception === null) return this.#send("e", key, { text: "e0:", isFreeing: true });
    const fields = this.#texts.exception(exception);
    const given = readEnd(end);
    // By the clock of this process; Redis's only decides when it ends.
    const ttl = endAt(given, Date.now()) - Date.now();
    const at = "length" in given ? `+${given.length}` : `${given.until}`;
    return this.#send("e", key, { text: `e${at}:${fields}`, ttl, isFreeing: true });
  }

  /**
   * Decides over several keys, of this limiter and others outside the process.
   * @internal
   */
  hitAll(hits: readonly HitOf<RedisLimiter, string>[]): Promise<AllHits> {
    return hitAllElsewhere<RedisLimiter>(hits, byOwnPolicies);
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

  /** Returns the position of a policy that counts more than reservations or denials. */
  #countable(operation: string, name: string | undefined): number {
    const position = this.#read.position(name);
    const { algorithm } = this.#read.origins[position] ?? {};
    if (algorithm === "concurrency" || algorithm === "ban")
      throw uncountable(this.#read, position, operation);
    return position;
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
        this.decideWithout(isHit ? "hit" : "peek", key, cost, error),
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
      return decided.catch((error) => this.decideWithout("hit", key, cost, error));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Returns the operations that hits with leases need. */
  #issuer(ttl: number): LeaseIssuer {
    return {
      hit: async (key, cost) =>
        (this.#denyLocally(key, cost) ??
          (await this.#send("h", key, { text: hitText(`${cost}`, "") }))) as Decision,
      // A report without a hit may give back an amount that then can be used.
      renew: async (key, cost, text) =>
        (await this.#send("l", key, { text, ttl, isFreeing: cost === 0 })) as Numbers,
    };
  }

  /** Performs an operation on a key. Rejects if Redis does not respond. */
  async #send(kind: Operation["kind"], key: string, fields: OperationFields): Promise<Result> {
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
