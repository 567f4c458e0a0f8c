import type { OnDecision } from "./events/messages.ts";

/** An integer of milliseconds, or a string such as `"250ms"`, `"1s"`, `"5m"`, `"1h"`, `"1d"`, `"1w"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d" | "w"}`;

/** The fields of every policy. */
export interface PolicyBase {
  /** For headers, logs and limiters with several policies; by default the algorithm's name. */
  readonly name?: string | undefined;
  /** What the limit counts, for the headers: `"content-bytes"`, for example; by default `"requests"`. */
  readonly unit?: string | undefined;
}

/** A policy that counts hits in windows. */
export interface WindowPolicy extends PolicyBase {
  /** The way of counting. `fixed_window` is another name of `fix_window`. */
  readonly algorithm:
    | "fix_window"
    | "fixed_window"
    | "fix_window_per_key"
    | "sliding_window"
    | "sliding_counter";
  /** How much may happen in a window. */
  readonly limit: number;
  /** How long a window is. */
  readonly scale: Duration;
  /** Whether a denied hit is counted (`"count"`) or changes nothing (`"free"`, the default). */
  readonly denied?: "count" | "free" | undefined;
}

/** A policy that counts hits in days, weeks or months of the calendar. */
export interface CalendarPolicy extends PolicyBase {
  /** `fixed_window` is another name of `fix_window`. */
  readonly algorithm: "fix_window" | "fixed_window";
  /** How much may happen in a window. */
  readonly limit: number;
  /** The unit of the calendar. A week begins on Monday. */
  readonly scale: "day" | "week" | "month";
  /** How far clocks are ahead of UTC, from `"-14:00"` to `"+14:00"`; `"+00:00"` by default. It is fixed: it does not follow daylight saving time. */
  readonly utcOffset?: UtcOffset | undefined;
  /** Whether a denied hit is counted (`"count"`) or changes nothing (`"free"`, the default). */
  readonly denied?: "count" | "free" | undefined;
}

/** An offset from UTC: `"+02:00"`, `"-05:30"`, `"Z"`. */
export type UtcOffset = "Z" | `${"+" | "-"}${number}:${number}`;

/** A bucket of tokens that starts full and refills steadily. */
export interface TokenBucketPolicy extends PolicyBase {
  /** The bucket of tokens. */
  readonly algorithm: "token_bucket";
  /** How many tokens fit. */
  readonly capacity: number;
  /** How many come back in each `per`. */
  readonly refillRate: number;
  /** One second by default. */
  readonly per?: Duration | undefined;
  /** A bucket's denied hits change nothing. */
  readonly denied?: "free" | undefined;
}

/** A bucket that starts empty and leaks steadily. */
export interface LeakyBucketPolicy extends PolicyBase {
  /** The bucket that leaks. */
  readonly algorithm: "leaky_bucket";
  /** How much fits. */
  readonly capacity: number;
  /** How much leaks in each `per`. */
  readonly leakRate: number;
  /** One second by default. */
  readonly per?: Duration | undefined;
  /** A bucket's denied hits change nothing. */
  readonly denied?: "free" | undefined;
}

/** A limit on the work in progress: only reservations count. */
export interface ConcurrencyPolicy extends PolicyBase {
  /** The limit on reservations. */
  readonly algorithm: "concurrency";
  /** How much may be reserved at the same time. */
  readonly limit: number;
  /** How long a reservation without a `ttl` of its own lasts: one minute by default, at most a day. */
  readonly ttl?: Duration | undefined;
}

/** A time in which a key is denied because the other policies of its list denied it too often, or by hand. */
export interface BanPolicy {
  /** The ban. */
  readonly algorithm: "ban";
  /** How many denials begin a ban, from 1 to 1,000. The last of them already is the ban. */
  readonly after: number;
  /** How long denials are counted, from the first one on. */
  readonly scale: Duration;
  /** How long a ban lasts; with a factor, the first one. */
  readonly for: Duration;
  /** How much longer each ban lasts than the last one, from 1 (the default) to 1,000; above 1 it needs `most`. */
  readonly factor?: number | undefined;
  /** How long the longest ban lasts. */
  readonly most?: Duration | undefined;
  /** For logs and limiters with several policies; `ban` by default. */
  readonly name?: string | undefined;
  /** A ban has no unit. */
  readonly unit?: undefined;
}

/** An algorithm and its numbers. */
export type Policy =
  | WindowPolicy
  | CalendarPolicy
  | TokenBucketPolicy
  | LeakyBucketPolicy
  | ConcurrencyPolicy
  | BanPolicy;

/** The cost: one number under all policies, or one for each by its name. A policy that is left out costs 1. */
export type Costs = number | Readonly<Record<string, number>>;

/** The result of settling a reservation: it was open, had expired (and been charged in full), or had been settled. */
export type Settlement = "settled" | "expired" | "closed" | "evicted";

/** The result of extending a reservation. */
export type Extension = "extended" | "expired" | "closed" | "evicted";

/** The options of a reservation. */
export interface ReserveOptions {
  /** How long it lasts; by default the `ttl` of a concurrency policy, or one minute. At most a day. */
  readonly ttl?: Duration | undefined;
  /** Other numbers for this call only. */
  readonly policies?: Policies | undefined;
}

/** One policy, or several that are one atomic decision. The objects are copied when they are read. */
export type Policies = Policy | readonly Policy[];

/** The name of an algorithm. */
export type Algorithm = Exclude<Policy["algorithm"], "fixed_window">;

/** Who or what is limited. `1` and `"1"` are different keys. */
export type Key = string | number | bigint;

/** The result of a hit. */
export interface Decision {
  /** Whether the key may act now. */
  readonly allowed: boolean;
  /** The count: hits in the window, the level rounded up (leaky bucket), or the whole tokens left (token bucket). */
  readonly count: number;
  /** The policy's limit or capacity. */
  readonly limit: number;
  /** How many hits of cost 1 would be allowed right now. */
  readonly remaining: number;
  /** Milliseconds until this same hit is allowed, if no other comes before: 0 if allowed, `Infinity` for never. */
  readonly retryAfter: number;
  /** Milliseconds until the key is as if it had never been used: under several policies, under all of them. */
  readonly resetAfter: number;
  /** Milliseconds until more than `remaining` would be allowed, if no other hit comes before; 0 if all of the limit remains. */
  readonly moreAfter: number;
  /** The name of the policy whose numbers these are. */
  readonly policy: string;
  /** The names of the policies that denied. */
  readonly violated: readonly string[];
  /**
   * Why it was denied, if not by what is used: the limiter or the list of reservations is full, the limiter failed, a ban holds,
   * an exception denies the key, or open reservations alone are in the way, any of which may be settled for less.
   */
  readonly reason?: "full" | "error" | "banned" | "denied" | "reserved";
}

/** Other numbers of a policy, for one key. A field that the policy's algorithm lacks is ignored. */
export interface ExceptionNumbers {
  /** The limit of a window or of `concurrency`. */
  readonly limit?: number | undefined;
  /** The capacity of a bucket. */
  readonly capacity?: number | undefined;
  /** How many tokens come back. */
  readonly refillRate?: number | undefined;
  /** How much leaks. */
  readonly leakRate?: number | undefined;
  /** How many denials begin a ban. */
  readonly after?: number | undefined;
  /** How long a ban lasts. */
  readonly for?: Duration | undefined;
  /** How much longer each ban lasts than the last one. */
  readonly factor?: number | undefined;
  /** How long the longest ban lasts. */
  readonly most?: Duration | undefined;
}

/**
 * An exception for one key: other numbers by the names of the policies, where the name of an only policy may be left out;
 * or everything is allowed, or denied.
 */
export type Exception =
  | {
      /** Everything is allowed, and nothing is charged. */
      readonly allow: true;
    }
  | {
      /** Everything is denied, and nothing is counted. */
      readonly deny: true;
    }
  | Readonly<Record<string, ExceptionNumbers>>
  | ExceptionNumbers;

/** When an exception ends: one of both. */
export interface ExceptionEnd {
  /** A time within the next 400 days, in milliseconds since the epoch or as a `Date`. */
  readonly until?: number | Date | undefined;
  /** How long it lasts, at most 400 days. */
  readonly for?: Duration | undefined;
}

/** The exception that a key has. */
export interface KeyException {
  /** When it ends, in milliseconds since the epoch. */
  readonly until: number;
  /** True if everything is allowed. */
  readonly allow?: true;
  /** True if everything is denied. */
  readonly deny?: true;
  /** Other numbers, by the names of the policies. Durations are in milliseconds. */
  readonly policies?: Readonly<Record<string, ExceptionNumbers>>;
}

/** An expired state, as `beforeClean` receives it. */
export interface Expired {
  /** The key. */
  readonly key: Key;
  /** The name of the policy. */
  readonly policy: string;
  /** The count when the state was last changed. */
  readonly value: number;
  /** When it expired, in milliseconds since the epoch. */
  readonly expiredAt: number;
}

/** The options of a limiter in memory: its clock, how many keys it keeps, and when it cleans them. */
export interface Options {
  /** Milliseconds since the epoch; `Date.now` by default. Read once per operation. */
  readonly clock?: (() => number) | undefined;
  /** The most keys that it keeps; a million by default. */
  readonly maxKeys?: number | undefined;
  /** What a full limiter does with a new key: evicts another (the default), or denies it. */
  readonly onFull?: "evict" | "deny" | undefined;
  /** How often expired keys are removed, a few at each hit; a minute by default. */
  readonly cleanPeriod?: Duration | undefined;
  /** The age at which an unchanged key expires, whatever its state; none by default. */
  readonly keyOlderThan?: Duration | undefined;
  /** Called with expired states after they were removed. It may use the limiter. */
  readonly beforeClean?: ((algorithm: Algorithm, entries: readonly Expired[]) => void) | undefined;
  /** Called with every decision of `hit`, `reserve` and `hitAll`, after it was made. What it throws is only logged. */
  readonly onDecision?: OnDecision | undefined;
}

/** A key in JSON: a bigint is written as its digits. */
export type StoredKey = string | number | { readonly bigint: string };

/** A whole limiter as plain data. */
export interface Snapshot {
  /** The version of the format. */
  readonly version: 4;
  /** The policies of the limiter. */
  readonly policies: readonly Policy[];
  /**
   * Every key with its rows. The first number of a row is the position of its policy, or after these one of `names`; the
   * others are those of a stored row.
   */
  readonly keys: readonly (readonly [StoredKey, readonly (readonly number[])[]])[];
  /** The names of rows that no policy has. */
  readonly names: readonly string[];
}

/** The shape of a state: as much of its policy as it depends on. */
export interface Shape {
  /** The policy's name. */
  readonly name: string;
  /** The name of its algorithm. */
  readonly algorithm: string;
  /** Its `scale` or `per`, in milliseconds; below 0 a unit of the calendar at its offset from UTC. */
  readonly scale: number;
}

/**
 * A row: the name of its policy, and numbers: the position of the algorithm, `scale` or `per` (below 0 a unit of the calendar
 * at its offset from UTC), when the row ends, how many numbers its state has, these, and the parts of open reservations.
 */
export type StoredRow = readonly [name: string, numbers: readonly number[]];

/** One key's rows as plain data, for a store outside the process. */
export interface State {
  /** The version of the format. */
  readonly version: 4;
  /** The rows, one for each shape that the key was used under lately. */
  readonly rows: readonly StoredRow[];
}
