import { Leases as WasmLeases } from "../../build/redis/tollgate.js";
import type { LeaseCore } from "../lease/leases.ts";
import type { Numbers } from "../wasm/decision-numbers.ts";
import { Remade } from "../wasm/wasm-module.ts";
import { redisModule, run } from "./wasm.ts";

/** Callbacks of the lease core. */
export interface LeaseEvents {
  /** Called when a hit was allowed from a lease. */
  readonly onSpent: () => void;
  /** Called when a renewal has ended. The key's lease may be spent before `until`, by the holder's clock; 0 for none. */
  readonly onRenewed: (key: string, until: number) => void;
}

/**
 * The leases of a holder in wasm. A trap loses them, and they are charged at their ends; it fails no hit, since the hit is
 * sent to Redis.
 */
export class RedisLeaseCore implements LeaseCore {
  readonly #maxKeys: number;
  readonly #ttl: number;
  readonly #events: LeaseEvents;
  #leases: Remade<WasmLeases> | undefined;
  #isFreed = false;

  constructor(maxKeys: number, ttl: number, events: LeaseEvents) {
    this.#maxKeys = maxKeys;
    this.#ttl = ttl;
    this.#events = events;
  }

  /** Returns `undefined`: `Replicas.deny` decides denials, by the states of the key. */
  denied(): undefined {
    return undefined;
  }

  hit(key: string, cost: number, now: number): string {
    const step = this.#call((leases) => leases.hit(key, cost, now)) ?? "?";
    if (step.startsWith("1")) this.#events.onSpent();
    return step;
  }

  spend(key: string, cost: number, now: number): Numbers | undefined {
    const decision = this.#call((leases) => leases.spend(key, cost, now));
    if (decision !== undefined) this.#events.onSpent();
    return decision;
  }

  replied(key: string, cost: number, reply: string, renews: boolean, sentAt: number, now: number): number {
    if (!renews) return 0;
    const life = this.#call((leases) => leases.replied(key, cost, reply, renews, sentAt, now)) ?? 0;
    this.#events.onRenewed(key, sentAt + Math.max(0, life));
    return life;
  }

  failed(key: string): void {
    this.#call((leases) => leases.failed(key));
    this.#events.onRenewed(key, 0);
  }

  giveBack(key: string, sentAt: number, now: number): string | undefined {
    return this.#call((leases) => leases.giveBack(key, sentAt, now));
  }

  /** Frees the memory. From then on there are no leases. */
  free(): void {
    const leases = this.#leases;
    if (leases !== undefined && !leases.isLost) run(() => leases.call((own) => own.free()));
    this.#leases = undefined;
    this.#isFreed = true;
  }

  #call<Result>(work: (leases: WasmLeases) => Result): Result | undefined {
    if (this.#isFreed) return undefined;
    try {
      this.#leases ??= new Remade(redisModule, () => new WasmLeases(this.#maxKeys, this.#ttl, false));
      return this.#leases.call(work);
    } catch {
      // The leases have no errors of their own, so this was a trap.
      return undefined;
    }
  }
}
