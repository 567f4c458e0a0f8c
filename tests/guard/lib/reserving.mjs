import { RateLimiter } from "tollgate";
import { start } from "./limits.mjs";

/** A limiter in memory that tells how many of its reservations are open. */
export class ReservingLimiter {
  #limiter;
  #open = new Set();
  /** How often a reservation was closed, also when it was closed already. */
  closings = 0;

  constructor(policy) {
    // Denied requests are free, so that what is used is what was charged.
    this.#limiter = new RateLimiter({ ...policy, denied: "free" }, { clock: () => start });
    this.policies = this.#limiter.policies;
  }

  get(key) {
    return this.#limiter.get(key);
  }

  get open() {
    return this.#open.size;
  }

  reserve(...args) {
    const reservation = this.#limiter.reserve(...args);
    if (reservation.allowed) this.#open.add(reservation.id);
    return reservation;
  }

  settle(...args) {
    this.closings += 1;
    this.#open.delete(args[0]);
    return this.#limiter.settle(...args);
  }

  cancel(id) {
    return this.settle(id, 0);
  }

  hit() {
    throw new Error("a guard that reserves does not hit");
  }
}

/** The same over promises. */
export class RemoteReserving extends ReservingLimiter {
  async reserve(...args) {
    await null;
    return super.reserve(...args);
  }

  async settle(...args) {
    await null;
    return super.settle(...args);
  }

  async cancel(id) {
    return this.settle(id, 0);
  }
}
