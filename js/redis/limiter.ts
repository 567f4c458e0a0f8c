import { AsyncReservation, type AsyncSettling } from "../async-reservation.ts";
import { copiedOptions } from "../checks.ts";
import { reservationText, reserveOnlyText, schema } from "../core/generated.ts";
import { asReserved, costsByPosition, usedByPosition } from "../costs.ts";
import { isInteger, ttlExpected } from "../durations.ts";
import { fill, inWords, keyAccepts, refused, TollgateError, wrongAmount, wrongInc } from "../error.ts";
import { Leases } from "../leases.ts";
import { type Numbers, named, numbersOf } from "../numbers.ts";
import { readReserveOptions, readTtl } from "../options.ts";
import { mismatch, ReadPolicies } from "../policies.ts";
import { hexOf, idText, parsedId, randomBits } from "../reservation-id.ts";
import type {
  Costs,
  Decision,
  Duration,
  Extension,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
} from "../types.ts";
import { isWellFormed } from "../well-formed.ts";
import { Exchange } from "./exchange.ts";
import { KeyLog } from "./key-log.ts";
import { RedisLeaseCore } from "./lease-core.ts";
import type { Operation } from "./operation.ts";
import { type ReadRedisOptions, readRedisOptions } from "./options.ts";
import { Replicas, type Reserved, type Result } from "./replicas.ts";
import { type Counters, zero } from "./stats.ts";
import type { RedisOptions, RedisStats } from "./types.ts";
import { isOfRedis, Without } from "./without.ts";

/** For how long a denial holds without asking Redis, in milliseconds. */
const denialHolds = 2_000;

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
export class RedisLimiter {
  /** Copies of the policies it was made with. */
  readonly policies: readonly Policy[];

  readonly #read: ReadPolicies;
  readonly #options: ReadRedisOptions;
  readonly #replicas: Replicas;
  readonly #exchange: Exchange;
  readonly #without: Without;
  readonly #counters: Counters = zero();
  readonly #prefix: string;
  #logs = new Map<string, KeyLog>();
  #isDisposed = false;
  /** `undefined` if every hit is asked for. */
  readonly #leases: Leases | undefined;
  readonly #leaseCore: RedisLeaseCore | undefined;
  /** For how long a denial holds while leases are open, in milliseconds. */
  readonly #denialHoldsBesideLeases: number;
  /** The position of the first policy that only reservations count under; -1 if there is none. */
  readonly #concurrent: number;

  constructor(policies: Policies, options: RedisOptions) {
    this.#options = readRedisOptions(options);
    this.#read = new ReadPolicies(policies);
    this.policies = this.#read.policies;
    this.#concurrent = this.#read.origins.findIndex(({ algorithm }) => algorithm === "concurrency");
    const process = processName();
    this.#replicas = new Replicas(this.#read, process);
    const { prefix, name = this.#replicas.shape, runner, timeout, restore } = this.#options;
    this.#prefix = `${prefix}1:${name}:`;
    this.#without = new Without(this.#options, this.policies, this.#read.names);
    this.#exchange = new Exchange({
      runner,
      replicas: this.#replicas,
      process,
      timeout,
      restore,
      counters: this.#counters,
      fail: (operation, error) => operation.reject(error),
    });
    const { leaseTtl, maxKeys } = this.#options;
    this.#denialHoldsBesideLeases = (leaseTtl || schema.defaultLeaseTtl) / 2;
    if (leaseTtl === 0 || !this.#replicas.mayLease) return;
    this.#leaseCore = new RedisLeaseCore(maxKeys, leaseTtl, {
      leased: () => this.#counters.leased++,
      held: (key, until) => {
        const log = this.#logs.get(key);
        if (log !== undefined) log.leasedUntil = until;
      },
    });
    // A clock that cannot be set: a lease lasts by it, whatever the clock of Redis says.
    this.#leases = new Leases(this.#leaseCore, () => Math.floor(performance.now()));
  }

  /** What happened since the limiter was made. */
  get stats(): RedisStats {
    return { ...this.#counters, keys: this.#logs.size };
  }

  /**
   * Decides whether the key may act now, and takes `cost` if so: one number, or one for each policy by its name.
   * A third argument gives other numbers for this call only: the same algorithm and `scale`, another limit, capacity or rate.
   */
  hit(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    if (policies !== undefined) return this.#decide("h", key, cost, policies);
    // A hit of no cost only asks.
    if (this.#leases !== undefined && typeof cost === "number" && cost > 0)
      return this.#hitLeased(this.#leases, key, cost);
    const denied = this.#deny(key, cost);
    return denied === undefined ? this.#decide("h", key, cost, policies) : Promise.resolve(denied);
  }

  /** Returns the decision of a hit, and changes nothing. */
  peek(key: string, cost: Costs = 1, policies?: Policies): Promise<Decision> {
    return this.#decide("peek", key, cost, policies);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. By default that is the `ttl` of a concurrency policy, or a minute. A key has at most
   * 128 open reservations here.
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
  async reserve(key: string, cost: Costs = 1, options: ReserveOptions = {}): Promise<AsyncReservation> {
    const { ttl = this.#replicas.defaultTtl, policies } = readReserveOptions(options);
    const isByPolicy = typeof cost !== "number";
    const bits = randomBits();
    const random = bits.map(hexOf).join("");
    const call = policies === undefined ? "" : this.#callText(policies);
    const text = `v${this.#costsText(cost)}:${ttl}:${random}${call === "" ? "" : `@${call}`}`;
    try {
      const { decision, end } = (await this.#ask("v", key, { text, ttl })) as Reserved;
      const id = decision.allowed ? idText({ key, bits, end, isByPolicy }) : "";
      return new AsyncReservation(this.#settling, key, decision, id, end);
    } catch (error) {
      const reservation = isOfRedis(error) ? await this.#without.reserve(key, cost, ttl) : undefined;
      if (reservation === undefined) throw error;
      this.#counters.decidedWithout++;
      return reservation;
    }
  }

  /**
   * Closes a reservation by its id and charges what was used; by default all of it. Returns `"settled"`, `"expired"` (it
   * had been charged in full) or `"closed"` (it had been settled).
   */
  async settle(id: string, used?: Costs): Promise<Settlement> {
    const { key, text } = this.#settlement(id, used);
    return (await this.#ask("t", key, { text, isRelaxing: true })) as Settlement;
  }

  /** Closes a reservation by its id without charging anything. */
  cancel(id: string): Promise<Settlement> {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to so long from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    const extended = await this.#extendUntil(id, ttl);
    return typeof extended === "number" ? "extended" : extended;
  }

  /**
   * Adds to the count without asking, and returns it; a negative cost gives back. With several policies, `policy` names the
   * one that counts it.
   */
  async inc(key: string, cost = 1, policy?: string): Promise<number> {
    const most = Number.MAX_SAFE_INTEGER;
    const position = this.#read.position(policy);
    if (!isInteger(cost, -most, most)) throw wrongInc(cost);
    this.#checkCountable("inc", position);
    // Adding 0 only reads.
    if (cost === 0) return this.get(key, policy);
    return (await this.#ask("i", key, { text: `i${cost}:${position}`, isRelaxing: cost < 0 })) as number;
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Returns the count. */
  async set(key: string, count: number, policy?: string): Promise<number> {
    const position = this.#read.position(policy);
    const most = this.#replicas.maxCount(position);
    if (!isInteger(count, 0, most)) throw wrongAmount("count", count, most);
    this.#checkCountable("set", position);
    return (await this.#ask("s", key, { text: `s${count}:${position}`, isRelaxing: true })) as number;
  }

  /** Returns the key's count. */
  async get(key: string, policy?: string): Promise<number> {
    return (await this.#ask("get", key, { position: this.#read.position(policy) })) as number;
  }

  /** Returns when the key's state ends, in milliseconds since the epoch by Redis's clock; 0 when it has none. */
  async expiresAt(key: string, policy?: string): Promise<number> {
    return (await this.#ask("expiresAt", key, { position: this.#read.position(policy) })) as number;
  }

  /**
   * Forgets what the key used. Returns true if there was anything to forget. Reservations stay open, unless `reservations`
   * says to drop them.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    const { reservations = false } = copiedOptions(options, ["reservations"]);
    if (typeof reservations !== "boolean")
      throw refused("invalid_option", "reservations", reservations, "a boolean");
    return (await this.#ask("r", key, { text: `r${Number(reservations)}`, isRelaxing: true })) === 1;
  }

  /** Gives its memory back. The client stays as it is. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const log of this.#logs.values()) log.isDropped = true;
    this.#logs = new Map();
    this.#replicas.free();
    this.#leaseCore?.free();
  }

  /** What a reservation needs of the limiter. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: (id, ttl) => this.#extendUntil(id, ttl),
    settleLater: (key, id) => {
      const { text } = this.#settlement(id, undefined);
      const done = () => {};
      const given = { text, isRelaxing: true };
      this.#exchange.addLater(this.#logOf(key), operationOf("t", given, performance.now(), done, done));
    },
  };

  async #extendUntil(id: string, ttl: Duration): Promise<Exclude<Settlement, "settled"> | number> {
    const lasts = readTtl(ttl);
    if (lasts === undefined) throw refused("invalid_option", "ttl", ttl, ttlExpected());
    const { key, start } = this.#parsed(id);
    return (await this.#ask("x", key, { text: `x${start}:${lasts}`, ttl: lasts })) as "expired" | number;
  }

  /** Returns the key of a reservation, and the operation that settles it. */
  #settlement(id: string, used: Costs | undefined): { key: string; text: string } {
    const { key, start, isByPolicy } = this.#parsed(id);
    const amounts = usedByPosition(used, this.#read, isByPolicy);
    return { key, text: `t${start}:${amounts.map((one) => (one === asReserved ? "_" : one)).join(",")}` };
  }

  /** Returns what an id says, and how it starts: what it is in an entry. */
  #parsed(id: string): { key: string; start: string; isByPolicy: boolean } {
    const { key, isByPolicy } = parsedId(id);
    if (typeof key !== "string") throw refused("invalid_reservation", "id", id, reservationText);
    return { key, start: id.slice(0, id.length - key.length - 2), isByPolicy };
  }

  /** Checks that more than reservations count under the policy at a position. */
  #checkCountable(operation: string, position: number): void {
    if (this.#read.origins[position]?.algorithm === "concurrency")
      throw this.#reserveOnly(operation, position);
  }

  #reserveOnly(operation: string, position: number): TollgateError {
    const policy = inWords(this.#read.names[position]);
    return new TollgateError("reserve_only", fill(reserveOnlyText, { policy, operation }));
  }

  /** Returns costs as an entry has them. */
  #costsText(costs: Costs): string {
    if (typeof costs !== "number") return costsByPosition(costs, this.#read, 1).join(",");
    if (!isInteger(costs)) throw wrongAmount("cost", costs);
    return `${costs}`;
  }

  /** Decides a hit, or with `peek` returns its decision. */
  #decide(kind: "h" | "peek", key: string, cost: Costs, policies: Policies | undefined): Promise<Decision> {
    try {
      const costs = this.#costsText(cost);
      if (kind === "h" && this.#concurrent >= 0) throw this.#reserveOnly("hit", this.#concurrent);
      const call = policies === undefined ? "" : this.#callText(policies);
      const log = this.#logOf(key);
      const now = performance.now();
      // A hit of no cost asks only.
      const isHit = kind === "h" && !/^[0,]+$/.test(costs);
      const text = isHit ? `h${costs}${call === "" ? "" : `@${call}`}` : costs;
      return this.#add(log, isHit ? "h" : "peek", { text, call }, now, (error) =>
        this.#decideWithout(isHit ? "hit" : "peek", key, cost, error),
      ) as Promise<Decision>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Decides a hit from a lease, or by asking with or without one. */
  #hitLeased(leases: Leases, key: string, cost: number): Promise<Decision> {
    // What is left of a lease counts as used in the states, but is there to be spent.
    const isHeld = (this.#logs.get(key)?.leasedUntil ?? 0) > performance.now();
    const denied = isHeld ? undefined : this.#deny(key, cost);
    if (denied !== undefined) return Promise.resolve(denied);
    const { names } = this.#read;
    try {
      if (!isInteger(cost)) throw wrongAmount("cost", cost);
      // The key is checked here, and a limiter that was disposed of.
      this.#logOf(key);
      const ask = (cost: number, report?: string) => this.#askIssuer(key, cost, report);
      const decided = leases.hit(key, cost, ask, ignore);
      if (typeof decided === "string") return Promise.resolve(named(decided, names));
      return decided.then(
        (numbers) => named(numbers, names),
        (error) => this.#decideWithout("hit", key, cost, error),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Asks Redis for a hit, or with a report for the renewal of a lease, too. */
  async #askIssuer(key: string, cost: number, report: string | undefined): Promise<Numbers> {
    if (report === undefined) {
      const decision = this.#deny(key, cost) ?? (await this.#ask("h", key, { text: `h${cost}` }));
      return numbersOf(decision as Decision, this.#read.names, uncertain);
    }
    const random = randomBits().slice(1).map(hexOf).join("");
    const given = { text: `l${cost}:${report}:${random}`, ttl: this.#options.leaseTtl };
    // Without a hit, a report may give back what others can use.
    return (await this.#ask("l", key, { ...given, isRelaxing: cost === 0 })) as Numbers;
  }

  /** Does an operation on a key. */
  async #ask(kind: Operation["kind"], key: string, given: Given): Promise<Result> {
    return this.#add(this.#logOf(key), kind, given, performance.now(), (error) => {
      throw error;
    });
  }

  /** Adds an operation on a key. `without` returns a result in place of Redis's, or throws. */
  #add(
    log: KeyLog,
    kind: Operation["kind"],
    given: Given,
    now: number,
    without: (error: unknown) => Result | Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, fail) => {
      const reject = (error: unknown) => {
        try {
          resolve(without(error));
        } catch (thrown) {
          fail(thrown);
        }
      };
      this.#exchange.add(log, operationOf(kind, given, now, resolve, reject));
    });
  }

  /** Returns the decision of a hit that Redis did not answer, or throws. */
  #decideWithout(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    error: unknown,
  ): Decision | Promise<Decision> {
    const decision = isOfRedis(error) ? this.#without.decide(kind, key, cost) : undefined;
    if (decision === undefined) throw error;
    this.#counters.decidedWithout++;
    return decision;
  }

  /** Returns the decision of a hit that is denied as far as is known, so that Redis need not be asked. */
  #deny(key: string, cost: Costs): Decision | undefined {
    // Kept short: under a flood of denials it is all that happens. What is wrong with the input is found later.
    const log = this.#logs.get(key);
    if (log === undefined || log.mark === "" || log.relaxing > 0 || this.#concurrent >= 0) return undefined;
    const now = performance.now();
    if (log.clock.age(now) > denialHolds || !isInteger(cost, 1) || this.#replicas.isLost) return undefined;
    const besideLeases = log.clock.age(now) <= this.#denialHoldsBesideLeases;
    const [earliest, latest] = [log.clock.earliest(now), log.clock.latest(now)];
    const denied = this.#replicas.deny(log.slot, cost, earliest, latest, besideLeases);
    if (denied === undefined) return undefined;
    log.isUsed = true;
    this.#counters.localDenials++;
    return denied;
  }

  /** Returns the text of the policies of a call, which must fit the limiter's own. */
  #callText(policies: Policies): string {
    const read = new ReadPolicies(policies);
    const text = this.#replicas.callText(read.policies);
    if (text === "") throw mismatch(this.#read, read);
    return text;
  }

  /** Returns what is known of a key. */
  #logOf(key: string): KeyLog {
    if (this.#isDisposed) throw new TollgateError("disposed", "the limiter was disposed of");
    if (this.#replicas.isLost) this.#startAnew();
    const log = this.#logs.get(key);
    if (log === undefined) return this.#newLog(key);
    log.isUsed = true;
    return log;
  }

  #newLog(key: string): KeyLog {
    checkStoredKey(key);
    if (this.#logs.size >= this.#options.maxKeys) this.#evict();
    const slot = this.#replicas.take();
    if (slot < 0) throw new TollgateError("out_of_memory", "there is no memory left for another key");
    const log = new KeyLog(this.#prefix + key, slot);
    this.#logs.set(key, log);
    return log;
  }

  /** Makes room for a key: drops the first that was not used since it was last looked at. */
  #evict(): void {
    let busy = 0;
    for (const [key, log] of this.#logs) {
      if (!log.isBusy && !log.isUsed) {
        this.#logs.delete(key);
        this.#replicas.release(log.slot);
        log.isDropped = true;
        this.#counters.evicted++;
        return;
      }
      // Every key gets a second chance, and those under way have to stay.
      log.isUsed = false;
      this.#logs.delete(key);
      this.#logs.set(key, log);
      if (log.isBusy && ++busy > this.#logs.size) return;
    }
  }

  /** Goes on after a trap in the wasm, which ended all resident states: they are read again from Redis. */
  #startAnew(): void {
    for (const log of this.#logs.values()) log.isDropped = true;
    this.#logs = new Map();
    this.#replicas.startAnew();
  }
}

/** What differs between operations; what is left out is nothing. */
type Given = Partial<Pick<Operation, "text" | "position" | "call" | "ttl" | "isRelaxing">>;

const operationOf = (
  kind: Operation["kind"],
  { text = "0", position = 0, call = "", ttl = 0, isRelaxing = false }: Given,
  since: number,
  resolve: Operation["resolve"],
  reject: Operation["reject"],
): Operation => ({ kind, text, position, call, ttl, isRelaxing, since, resolve, reject });

/** How numbers say of a denial that it may end at any time: how long it lasts is known by the states. */
const uncertain = 2;

/** In Node a piece of work goes on without being awaited. */
const ignore = (work: Promise<unknown>): void => {
  work.catch(() => {});
};

/** Checks that a key may leave the process. */
function checkStoredKey(key: unknown): asserts key is string {
  const isStored =
    typeof key === "string" &&
    key !== "" &&
    isWellFormed(key) &&
    (3 * key.length <= schema.maxKeyBytes || new TextEncoder().encode(key).length <= schema.maxKeyBytes);
  if (!isStored) throw refused("invalid_key", "key", key, keyAccepts);
}

/** Returns a name for this limiter in marks: 48 random bits. */
function processName(): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => alphabet[byte & 63]).join("");
}
