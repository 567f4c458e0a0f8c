/** An estimate of Redis's time by its last reply. Local times are those of `performance.now()`. */
export class RedisClock {
  /** Redis's time in the reply; 0 before the first. */
  #redisTime = 0;
  #sentAt = 0;
  #receivedAt = 0;

  /** Records that Redis's time was `redisTime` at some moment between the local times `sentAt` and `receivedAt`. */
  update(redisTime: number, sentAt: number, receivedAt: number): void {
    this.#redisTime = redisTime;
    this.#sentAt = sentAt;
    this.#receivedAt = receivedAt;
  }

  /** Returns the age of the last reply, in milliseconds; infinity before the first. */
  age(now: number): number {
    return this.#redisTime === 0 ? Number.POSITIVE_INFINITY : now - this.#receivedAt;
  }

  /** Returns the latest time that it can be in Redis now; 0 before the first reply. */
  latest(now: number): number {
    return this.#redisTime === 0 ? 0 : Math.ceil(this.#redisTime + now - this.#sentAt) + 1;
  }

  /** Returns the earliest time that it can be in Redis now; 0 before the first reply. */
  earliest(now: number): number {
    return this.#redisTime === 0 ? 0 : Math.floor(this.#redisTime + now - this.#receivedAt);
  }
}
