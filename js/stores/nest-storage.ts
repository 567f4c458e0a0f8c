import type { Decision } from "../types.ts";
import { LimitersByWindow, usedBy, waitOf } from "./limiter.ts";
import type { LimiterSource, WindowAlgorithm } from "./types.ts";

/** The result of a hit for @nestjs/throttler; times are in seconds. */
export interface ThrottleRecord {
  /** The hits that count now, this one included. */
  totalHits: number;
  /** The time until no hit counts. */
  timeToExpire: number;
  /** Whether this hit is denied. */
  isBlocked: boolean;
  /** The wait after a denied hit. */
  timeToBlockExpire: number;
}

/** The options of a `NestStorage`. */
export interface NestStorageOptions {
  /** How hits are counted; `"sliding_window"` by default, as @nestjs/throttler does. */
  readonly algorithm?: WindowAlgorithm | undefined;
}

/**
 * A storage for @nestjs/throttler, over limiters in memory or those that a function makes.
 *
 * @example
 * ```ts
 * import { ThrottlerModule } from "@nestjs/throttler";
 * import { NestStorage } from "tollgate/stores";
 *
 * const throttlers = [{ ttl: 60_000, limit: 100 }];
 * const module = ThrottlerModule.forRoot({ throttlers, storage: new NestStorage() });
 * ```
 */
export class NestStorage {
  readonly #limiters: LimitersByWindow;

  /** Returns a storage; `source` returns the limiter of each policy, or is a Durable Object namespace. */
  constructor(source?: LimiterSource, options: NestStorageOptions = {}) {
    this.#limiters = new LimitersByWindow(source, options.algorithm ?? "sliding_window", "free");
  }

  /** Counts a hit. A denied key stays denied for `blockDuration`, and then starts anew. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    _throttlerName?: string,
  ): Promise<ThrottleRecord> {
    const hits = this.#limiters.of("throttle", limit, ttl);
    if (blockDuration <= 0) return recordOf(await hits.hit(key), limit);
    const blocks = this.#limiters.of("block", 1, blockDuration, "fix_window_per_key");
    const block = await blocks.peek(key);
    if (!block.allowed) return blocked(limit, block.retryAfter);
    const record = recordOf(await hits.hit(key), limit);
    if (!record.isBlocked) return record;
    await blocks.hit(key);
    await hits.reset(key);
    return blocked(limit, blockDuration);
  }
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1_000);

function recordOf(decision: Decision, limit: number): ThrottleRecord {
  const totalHits = usedBy(decision, limit);
  const isBlocked = totalHits > limit;
  const timeToBlockExpire = isBlocked ? seconds(waitOf(decision)) : 0;
  return { totalHits, timeToExpire: seconds(decision.resetAfter), isBlocked, timeToBlockExpire };
}

const blocked = (limit: number, wait: number): ThrottleRecord => ({
  totalHits: limit + 1,
  timeToExpire: seconds(wait),
  isBlocked: true,
  timeToBlockExpire: seconds(wait),
});
