import type { OnDecision } from "../events/messages.ts";
import type { FallbackLimiter } from "../limiter/fallback.ts";
import type { Duration } from "../types.ts";

/** Sends one command to the node of a key and returns its reply. */
export interface RedisSender {
  /** Sends the command `args`: its name, then its arguments, which include the key. */
  send(key: string, args: string[]): Promise<unknown>;
}

/** ioredis and iovalkey: a client, one over Sentinel, or a Cluster. */
export interface IoredisLike {
  /** Runs a script by its SHA-1. */
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
  /** Runs a script by its SHA-1. */
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a script by its text. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client that a limiter accepts. */
export type RedisClient = IoredisLike | NodeRedisLike | RedisSender;

/** A part of each limit that one process may use by itself. */
export interface FallbackShare {
  /** Above 0, and up to 1. */
  readonly share: number;
}

/** Options for leases. */
export interface LeaseOptions {
  /** How long a lease lasts; a second by default, at most ten. */
  readonly ttl?: Duration | undefined;
}

/** Options of a limiter over Redis. */
export interface RedisOptions {
  /**
   * A client of ioredis, iovalkey or redis (node-redis), for one node, Sentinel or Cluster; or `{ send(key, args) }`, which
   * sends a command to the node of the key and returns the reply. The limiter neither connects nor closes it.
   */
  readonly client: RedisClient;
  /** The prefix of the keys in Redis; `"tollgate:"` by default. */
  readonly prefix?: string | undefined;
  /**
   * A name for the limiter in the keys; `"default"` by default. Limiters of the same name and prefix share their keys.
   */
  readonly name?: string | undefined;
  /** How long an operation may take; 250 ms by default, at most 30 s. */
  readonly timeout?: Duration | undefined;
  /** The result of a hit while Redis does not respond: an error (the default), or a decision with the reason `"error"`. */
  readonly onError?: "throw" | "allow" | "deny" | undefined;
  /**
   * Decides hits while Redis does not respond, instead of `onError`: a limiter, or the share of each limit that this
   * process may use by itself, as a number above 0 and up to 1.
   */
  readonly fallback?: FallbackLimiter | FallbackShare | undefined;
  /** How many keys have their states cached in memory; 100,000 by default. For others more is read from Redis. */
  readonly maxKeys?: number | undefined;
  /** Whether a key that Redis has lost is written back; true by default. */
  readonly restore?: boolean | undefined;
  /**
   * Whether this process leases an amount of a key that it hits often, and allows hits from it without a call; false by
   * default. The fleet never admits more; near the limit a hit may be denied while other processes have unspent leases.
   */
  readonly leases?: boolean | LeaseOptions | undefined;
  /**
   * How many of the last denials of each key are kept in Redis, for a day, so that `tollgate why` can show them; none by
   * default, at most 1,000. A process writes at most once a second, for at most 100 keys.
   */
  readonly history?: number | undefined;
  /** Called with every decision of `hit`, `reserve` and `hitAll`, after it was made. What it throws is only logged. */
  readonly onDecision?: OnDecision | undefined;
}

/** Counters of a limiter since it was created. */
export interface RedisStats {
  /** Calls to Redis that were sent, each for one key or several. */
  readonly calls: number;
  /** Hits, and other operations that change a key, in these calls. */
  readonly operations: number;
  /** Hits that were denied without a call. */
  readonly localDenials: number;
  /** Hits that were allowed from a lease. */
  readonly leased: number;
  /** How many times the script was sent by its text, because Redis did not have it. */
  readonly scriptLoads: number;
  /** Logs that were shortened. */
  readonly bases: number;
  /** Keys that were written back because Redis had lost them. */
  readonly restored: number;
  /** Operations without a result from Redis, or without one in time. */
  readonly unanswered: number;
  /** Hits, peeks and reservations among them that `onError` or `fallback` decided. */
  readonly decidedWithout: number;
  /** Keys whose cached states were dropped to make room. */
  readonly evicted: number;
  /** Keys whose states are cached now. */
  readonly keys: number;
}
