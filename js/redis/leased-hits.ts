import { holderClock } from "../lease/holder-clock.ts";
import { Leases, unawaited } from "../lease/leases.ts";
import { hexOf, randomBits } from "../reservation/reservation-id.ts";
import type { Decision } from "../types.ts";
import { type Numbers, named, numbersOf } from "../wasm/decision-numbers.ts";
import type { KeyLogs } from "./key-logs.ts";
import { RedisLeaseCore } from "./lease-core.ts";
import type { ReadRedisOptions } from "./options.ts";
import type { Counters } from "./stats.ts";

/** The operations that hits with leases send to Redis. */
export interface LeaseIssuer {
  /** Decides a hit. */
  hit(key: string, cost: number): Promise<Decision>;
  /** Renews a lease, with a hit unless `cost` is 0. `text` is the operation as entries have it. */
  renew(key: string, cost: number, text: string): Promise<Numbers>;
}

/** The hits of a limiter with leases. */
export class LeasedHits {
  readonly #names: readonly string[];
  readonly #logs: KeyLogs;
  readonly #issuer: LeaseIssuer;
  readonly #core: RedisLeaseCore;
  readonly #leases: Leases;
  /** The clock by which leases end. It need not agree with that of Redis. */
  readonly #now = holderClock();

  constructor(
    names: readonly string[],
    logs: KeyLogs,
    issuer: LeaseIssuer,
    { maxKeys, leaseTtl }: ReadRedisOptions,
    counters: Counters,
  ) {
    this.#names = names;
    this.#logs = logs;
    this.#issuer = issuer;
    this.#core = new RedisLeaseCore(maxKeys, leaseTtl, {
      onSpent: () => counters.leased++,
      onRenewed: (key, until) => {
        const log = logs.find(key);
        if (log !== undefined) log.leasedUntil = until;
      },
    });
    this.#leases = new Leases(this.#core, this.#now);
  }

  /** Returns whether the key has a lease that has not ended. */
  hasLease(key: string): boolean {
    const until = this.#logs.find(key)?.leasedUntil ?? 0;
    return until > 0 && until > this.#now();
  }

  /** Decides a hit from a lease, or by Redis with or without a renewal. */
  hit(key: string, cost: number): Decision | Promise<Decision> {
    const ask = (cost: number, report?: string) => this.#ask(key, cost, report);
    const decided = this.#leases.hit(key, cost, ask, unawaited);
    if (typeof decided === "string") return named(decided, this.#names);
    return decided.then((numbers) => named(numbers, this.#names));
  }

  /** Frees the memory. */
  free(): void {
    this.#core.free();
  }

  /** Sends a hit to Redis. With a report it is a renewal, which `AskIssuer` describes. */
  async #ask(key: string, cost: number, report: string | undefined): Promise<Numbers> {
    if (report === undefined) return numbersOf(await this.#issuer.hit(key, cost), this.#names);
    const random = randomBits().slice(1).map(hexOf).join("");
    return this.#issuer.renew(key, cost, `l${cost}:${report}:${random}`);
  }
}
