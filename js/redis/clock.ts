/** What is known of Redis's clock, by the last reply. Local times are those of `performance.now()`. */
export class RedisClock {
  /** Redis's time in the reply; 0 before the first. */
  #stamp = 0;
  #sentAt = 0;
  #receivedAt = 0;

  /** Notes that a call was sent and its reply received at these local times, and that Redis's time in between was `stamp`. */
  note(stamp: number, sentAt: number, receivedAt: number): void {
    this.#stamp = stamp;
    this.#sentAt = sentAt;
    this.#receivedAt = receivedAt;
  }

  /** Returns how old the last reply is. */
  age(now: number): number {
    return this.#stamp === 0 ? Number.POSITIVE_INFINITY : now - this.#receivedAt;
  }

  /** Returns the latest that Redis's time can be now; 0 if nothing is known. */
  latest(now: number): number {
    return this.#stamp === 0 ? 0 : Math.ceil(this.#stamp + now - this.#sentAt) + 1;
  }

  /** Returns the earliest that Redis's time can be now; 0 if nothing is known. */
  earliest(now: number): number {
    return this.#stamp === 0 ? 0 : Math.floor(this.#stamp + now - this.#receivedAt);
  }
}
