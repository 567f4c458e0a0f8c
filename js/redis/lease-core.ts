import { Leases as WasmLeases } from "../../build/redis/tollgate.js";
import type { LeaseCore } from "../leases.ts";
import type { Numbers } from "../numbers.ts";
import { generation, instance, isGone, run } from "./wasm.ts";

/** What a limiter is told of its leases. */
export interface LeaseEvents {
  /** A hit was allowed from a lease. */
  readonly leased: () => void;
  /** A renewal was answered: a lease may be spent until that local time. */
  readonly held: (key: string, until: number) => void;
}

/** The arithmetic of leases in the wasm. After a trap it starts anew: leases that are lost are charged by their ends. */
export class RedisLeaseCore implements LeaseCore {
  readonly #maxKeys: number;
  readonly #ttl: number;
  readonly #events: LeaseEvents;
  #leases: WasmLeases | undefined;
  #generation = 0;
  #isFreed = false;

  constructor(maxKeys: number, ttl: number, events: LeaseEvents) {
    this.#maxKeys = maxKeys;
    this.#ttl = ttl;
    this.#events = events;
  }

  /** Denials are told by the states of a key, which are here: see `Replicas.deny`. */
  denied(): undefined {
    return undefined;
  }

  hit(key: string, cost: number, now: number): string {
    const step = this.#call((leases) => leases.hit(key, cost, now)) ?? "?";
    if (step.startsWith("1")) this.#events.leased();
    return step;
  }

  spend(key: string, cost: number, now: number): Numbers | undefined {
    const decision = this.#call((leases) => leases.spend(key, cost, now));
    if (decision !== undefined) this.#events.leased();
    return decision;
  }

  replied(key: string, cost: number, reply: string, renews: boolean, asked: number, now: number): number {
    if (!renews) return 0;
    const life = this.#call((leases) => leases.replied(key, cost, reply, renews, asked, now)) ?? 0;
    this.#events.held(key, asked + Math.max(0, life));
    return life;
  }

  failed(key: string): void {
    this.#call((leases) => leases.failed(key));
    this.#events.held(key, 0);
  }

  giveBack(key: string, asked: number, now: number): string | undefined {
    return this.#call((leases) => leases.giveBack(key, asked, now));
  }

  /** Gives its memory back: from then on there are no leases. */
  free(): void {
    if (this.#leases !== undefined && !isGone(this.#generation)) run(() => this.#leases?.free());
    this.#leases = undefined;
    this.#isFreed = true;
  }

  #call<Result>(work: (leases: WasmLeases) => Result): Result | undefined {
    if (this.#isFreed) return undefined;
    if (this.#leases === undefined || isGone(this.#generation)) {
      instance();
      this.#leases = run(() => new WasmLeases(this.#maxKeys, this.#ttl, false));
      this.#generation = generation();
    }
    const leases = this.#leases;
    return run(() => work(leases));
  }
}
