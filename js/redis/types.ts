import type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";

/** Sends one command to the node of a key and returns its reply. */
export interface RedisSender {
  /** `args` is the whole command: its name, then its arguments, among them the key. */
  send(key: string, args: string[]): Promise<unknown>;
}

/** ioredis and iovalkey: a client, one over Sentinel, or a Cluster. */
export interface IoredisLike {
  /** Runs a script by its name. */
  evalsha(sha: string, keys: number, ...args: string[]): Promise<unknown>;
  /** Runs a script by its text. */
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>;
  /** Sends any command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** The state of the connection. */
  readonly status: string;
}

/** node-redis from version 4 on: a client, a pool, one over Sentinel, or a cluster. */
export interface NodeRedisLike {
  /** Runs a script by its name. */
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a script by its text. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** What a limiter takes as its client. */
export type RedisClient = IoredisLike | NodeRedisLike | RedisSender;

/** A limiter that decides while Redis does not answer: `RateLimiter`, or anything with its `hit` and `peek`. */
export interface FallbackLimiter {
  /** Decides a hit. */
  hit(key: string, cost?: Costs): Decision | Promise<Decision>;
  /** Returns the decision of a hit, and changes nothing. */
  peek(key: string, cost?: Costs): Decision | Promise<Decision>;
  /** Sets a cost aside. Without it, a reservation is a hit. */
  reserve?(
    key: string,
    cost?: Costs,
    options?: { readonly ttl?: Duration | undefined },
  ): FallbackReservation | Promise<FallbackReservation>;
}

/** A reservation of such a limiter. */
export interface FallbackReservation {
  /** The decision. */
  readonly decision: Decision;
  /** The id; empty if it was denied. */
  readonly id: string;
  /** When it ends, in milliseconds since the epoch; 0 if it was denied. */
  readonly expiresAt: number;
  /** Closes it and charges what was used. */
  settle(used?: Costs): Settlement | Promise<Settlement>;
  /** Moves its end. */
  extend(ttl: Duration): Extension | Promise<Extension>;
}

/** A part of each limit, for one process. */
export interface FallbackShare {
  /** Above 0, and up to 1. */
  readonly share: number;
}

/** How leases are held. */
export interface LeaseOptions {
  /** How long a lease lasts; a second by default, at most ten. */
  readonly ttl?: Duration | undefined;
}

/** How a limiter over Redis is reached and what it does when Redis does not answer. */
export interface RedisOptions {
  /**
   * A client of ioredis, iovalkey or redis (node-redis), for one node, Sentinel or Cluster; or `{ send(key, args) }`, which
   * sends a command to the node of the key and returns the reply. It is used as it is, never connected or closed.
   */
  readonly client: RedisClient;
  /** What the keys in Redis begin with; `"tollgate:"` by default. */
  readonly prefix?: string | undefined;
  /**
   * A name for the limiter in the keys. By default a fingerprint of its policies' names and algorithms, which is the same
   * when their numbers change. Limiters of the same name and prefix share their keys.
   */
  readonly name?: string | undefined;
  /** How long an operation may take; 250 ms by default, at most 30 s. */
  readonly timeout?: Duration | undefined;
  /** What a hit returns when Redis does not answer: an error (the default), or a decision with the reason `"error"`. */
  readonly onError?: "throw" | "allow" | "deny" | undefined;
  /**
   * Decides hits while Redis does not answer, in place of `onError`: a limiter, or the share of each limit that this
   * process may use by itself, as a number above 0 and up to 1.
   */
  readonly fallback?: FallbackLimiter | FallbackShare | undefined;
  /** How many keys' states are kept in memory; 100,000 by default. Of others more has to be read from Redis. */
  readonly maxKeys?: number | undefined;
  /** Whether a Redis that has lost a key is told what is known of it; true by default. */
  readonly restore?: boolean | undefined;
  /**
   * Whether this process reserves an amount of a key that it hits often, and allows hits from it without a call; false by
   * default. Never more is admitted; near the limit a hit may be denied while other processes have something left.
   */
  readonly leases?: boolean | LeaseOptions | undefined;
}

/** What happened in a limiter since it was made. */
export interface RedisStats {
  /** Calls to Redis that were sent. */
  readonly calls: number;
  /** Hits, and other operations that change a key, in these calls. */
  readonly operations: number;
  /** Hits that were denied without a call. */
  readonly localDenials: number;
  /** Hits that were allowed from a lease. */
  readonly leased: number;
  /** Times that the script was sent by its text, because Redis did not know it. */
  readonly scriptLoads: number;
  /** Logs that were shortened. */
  readonly bases: number;
  /** Keys that were told to a Redis which had lost them. */
  readonly restored: number;
  /** Operations that Redis did not answer in time, or at all. */
  readonly unanswered: number;
  /** Hits and peeks among them that `onError` or `fallback` decided. */
  readonly decidedWithout: number;
  /** Keys whose resident states were dropped to make room. */
  readonly evicted: number;
  /** Keys that are resident now. */
  readonly keys: number;
}
