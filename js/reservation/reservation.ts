import type { Costs, Decision, Duration, Extension, Key, Settlement } from "../types.ts";

/** The part of a limiter that a reservation needs. */
export interface Settling {
  /** Closes a reservation and charges the used amount. */
  settle(id: string, used?: Costs): Settlement;
  /** Extends a reservation and returns its end. */
  extendUntil(id: string, ttl: Duration): Exclude<Settlement, "settled"> | number;
}

/**
 * An amount that is set aside: it counts as used until it is settled or expires. A scope that ends without `settle` or
 * `cancel` charges it in full, as a crash does.
 *
 * @example
 * ```ts
 * import { RateLimiter } from "tollgate";
 *
 * const limiter = new RateLimiter({ algorithm: "fix_window", limit: 9000, scale: "1m" });
 * const reservation = limiter.reserve("user:42", 4000);
 * if (reservation.allowed) {
 *   const used = 1234; // Known only afterwards.
 *   console.log(reservation.settle(used)); // => "settled"
 * }
 * ```
 */
export class Reservation {
  /** The key. */
  readonly key: Key;
  /** The decision. Its numbers include the reserved amount. */
  readonly decision: Decision;
  /** The id, by which the limiter settles it elsewhere or after a restart; empty if it was denied. */
  readonly id: string;
  readonly #limiter: Settling;
  #expiresAt: number;
  #isClosed: boolean;

  /** @internal */
  constructor(limiter: Settling, key: Key, decision: Decision, id: string, expiresAt: number) {
    this.#limiter = limiter;
    this.key = key;
    this.decision = decision;
    this.id = id;
    this.#expiresAt = expiresAt;
    this.#isClosed = id === "";
  }

  /** Whether the amount is set aside. */
  get allowed(): boolean {
    return this.decision.allowed;
  }

  /** When it is charged in full unless it is settled, in milliseconds since the epoch; 0 if it was denied. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Closes it and charges the used amount, by default all of it. */
  settle(used?: Costs): Settlement {
    if (this.#isClosed) return "closed";
    const settlement = this.#limiter.settle(this.id, used);
    this.#isClosed = true;
    return settlement;
  }

  /** Closes it without a charge. */
  cancel(): Settlement {
    return this.settle(0);
  }

  /** Moves its end to `ttl` from now. */
  extend(ttl: Duration): Extension {
    if (this.#isClosed) return "closed";
    const end = this.#limiter.extendUntil(this.id, ttl);
    if (typeof end !== "number") return end;
    this.#expiresAt = end;
    return "extended";
  }

  /** Charges it in full unless it is settled. */
  [Symbol.dispose](): void {
    this.settle();
  }
}
