import type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";

/**
 * The part of a limiter elsewhere that a reservation needs.
 * @internal
 */
export interface AsyncSettling {
  /** Closes it and charges what was used. */
  settle(id: string, used?: Costs): Promise<Settlement>;
  /** Returns when it ends if it was extended. */
  extendUntil(id: string, ttl: Duration): Promise<Exclude<Settlement, "settled"> | number>;
}

/**
 * An amount that is set aside in a limiter elsewhere: it counts as used until it is settled or expires. A scope that ends
 * without `settle` or `cancel` charges it in full, as a crash does.
 *
 * @example
 * ```ts
 * import { RemoteLimiter } from "tollgate/client";
 *
 * const token = process.env.TOLLGATE_TOKEN ?? "";
 * const limiter = new RemoteLimiter({ url: "https://limits.example.com/_tollgate", token, policy: "api" });
 * const reservation = await limiter.reserve("user:42", 40, { ttl: "2m" });
 * if (reservation.allowed) await reservation.settle(12);
 * ```
 */
export class AsyncReservation {
  /** The key. */
  readonly key: string;
  /** The decision. Its numbers include what was reserved. */
  readonly decision: Decision;
  /** The id, by which a limiter settles it elsewhere or after a restart; empty if it was denied. */
  readonly id: string;
  readonly #limiter: AsyncSettling;
  #expiresAt: number;
  #isClosed: boolean;

  /** @internal */
  constructor(limiter: AsyncSettling, key: string, decision: Decision, id: string, expiresAt: number) {
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

  /** Closes it and charges what was used; by default all of it. */
  async settle(used?: Costs): Promise<Settlement> {
    if (this.#isClosed) return "closed";
    const settlement = await this.#limiter.settle(this.id, used);
    this.#isClosed = true;
    return settlement;
  }

  /** Closes it without charging anything. */
  cancel(): Promise<Settlement> {
    return this.settle(0);
  }

  /** Moves its end to so long from now. */
  async extend(ttl: Duration): Promise<Extension> {
    if (this.#isClosed) return "closed";
    const end = await this.#limiter.extendUntil(this.id, ttl);
    if (typeof end !== "number") return end;
    this.#expiresAt = end;
    return "extended";
  }

  /** Charges it in full unless it is settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.settle();
  }
}
