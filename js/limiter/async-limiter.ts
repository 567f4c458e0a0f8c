import type { AsyncReservation } from "../reservation/async-reservation.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Policies,
  ReserveOptions,
  Settlement,
} from "../types.ts";

/**
 * The methods that every limiter with keys outside the process has: `RedisLimiter`, `StoreLimiter` and `RemoteLimiter`.
 * A `RemoteLimiter` takes no policies: its numbers are those of the Worker.
 */
export interface AsyncLimiter {
  /** Decides whether the key may act now, and charges `cost` if so. */
  hit(key: string, cost?: Costs, policies?: Policies): Promise<Decision>;
  /** Returns what a hit would return. Changes no state. */
  peek(key: string, cost?: Costs, policies?: Policies): Promise<Decision>;
  /** Decides as a hit does and, if allowed, sets the cost aside until it is settled or expires. */
  reserve(key: string, cost?: Costs, options?: ReserveOptions): Promise<AsyncReservation>;
  /** Closes a reservation by its id and charges the used amount, by default all of it. */
  settle(id: string, used?: Costs): Promise<Settlement>;
  /** Closes a reservation by its id without a charge. */
  cancel(id: string): Promise<Settlement>;
  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  extend(id: string, ttl: Duration): Promise<Extension>;
  /** Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. */
  inc(key: string, cost?: number, policy?: string): Promise<number>;
  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(key: string, count: number, policy?: string): Promise<number>;
  /** Returns the key's count. */
  get(key: string, policy?: string): Promise<number>;
  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(key: string, policy?: string): Promise<number>;
  /** Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end. */
  ban(key: string, length: Duration, policy?: string): Promise<number>;
  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  unban(key: string, policy?: string): Promise<boolean>;
  /** Gives the key other numbers until a time, or allows or denies everything. Returns the end. */
  except(key: string, exception: Exception, end: ExceptionEnd): Promise<number>;
  /** Lifts the exception of a key. Returns when it would have ended; 0 if there was none. */
  except(key: string, exception: null): Promise<number>;
  /** Returns the exception of a key that is in force; `null` if it has none. */
  exceptions(key: string): Promise<KeyException | null>;
  /** Removes the key's states, and returns true if there were any. */
  reset(key: string, options?: { readonly reservations?: boolean | undefined }): Promise<boolean>;
}
