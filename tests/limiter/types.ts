// What the types of the package let through, and what they catch. Checked by tsc, never run.

import {
  type Algorithm,
  type CalendarPolicy,
  type Decision,
  type Duration,
  type ErrorCode,
  type Expired,
  type HeaderOptions,
  type IpKeyOptions,
  ipKey,
  type Key,
  type LeakyBucketPolicy,
  type Operation,
  type Options,
  type Place,
  type Policies,
  type Policy,
  problemBody,
  RateLimiter,
  rateLimitHeaders,
  type Snapshot,
  type State,
  type Step,
  type StoredKey,
  step,
  Throttle,
  type ThrottleOptions,
  type TokenBucketPolicy,
  TollgateError,
  type WindowPolicy,
} from "tollgate";

/** Passes only if both types are the same. */
function same<A, B>(
  ..._: (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? [] : [never]
) {}

// Policies

const window: WindowPolicy = {
  algorithm: "sliding_window",
  limit: 100,
  scale: "1m",
  denied: "free",
  name: "w",
};
const tokens: TokenBucketPolicy = { algorithm: "token_bucket", capacity: 5, refillRate: 1, per: "250ms" };
const leaks: LeakyBucketPolicy = { algorithm: "leaky_bucket", capacity: 5, leakRate: 1, per: 1_000 };
const any: Policy[] = [window, tokens, leaks];
const fixed = [window, tokens] as const;
const policies: Policies[] = [window, any, fixed];
// What was left out may be undefined: settings are often read from somewhere.
const unset: Policy = { ...window, name: undefined, denied: undefined };

same<
  Algorithm,
  | "fix_window"
  | "fix_window_per_key"
  | "sliding_window"
  | "sliding_counter"
  | "token_bucket"
  | "leaky_bucket"
  | "concurrency"
  | "ban"
>();

// @ts-expect-error: no such algorithm
new RateLimiter({ algorithm: "gcra", limit: 1, scale: "1s" });
new RateLimiter({ algorithm: "fixed_window", limit: 1, scale: "1s" });
new RateLimiter([
  window,
  { algorithm: "ban", after: 5, scale: "10m", for: "1h", factor: 2, most: "1d", name: "b" },
]);
// @ts-expect-error: a ban has a length
new RateLimiter({ algorithm: "ban", after: 5, scale: "10m" });
// @ts-expect-error: a ban has no unit
new RateLimiter({ algorithm: "ban", after: 5, scale: "10m", for: "1h", unit: "tokens" });
// @ts-expect-error: a window has a scale
new RateLimiter({ algorithm: "fix_window", limit: 1 });
// @ts-expect-error: a bucket has a capacity, not a limit
new RateLimiter({ algorithm: "token_bucket", limit: 1, refillRate: 1 });
// @ts-expect-error: a leaky bucket does not refill
new RateLimiter({ algorithm: "leaky_bucket", capacity: 1, refillRate: 1 });
// @ts-expect-error: a bucket's denied hits are always free
new RateLimiter({ algorithm: "token_bucket", capacity: 1, refillRate: 1, denied: "count" });
const monthly: CalendarPolicy = { algorithm: "fix_window", limit: 1, scale: "month", utcOffset: "+05:30" };
new RateLimiter([
  monthly,
  { algorithm: "fixed_window", limit: 1, scale: "day", utcOffset: "Z", denied: "free" },
]);
// @ts-expect-error: an offset goes with the calendar
new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1d", utcOffset: "+05:30" });
// @ts-expect-error: only fix_window has a calendar
new RateLimiter({ algorithm: "sliding_window", limit: 1, scale: "month" });
// @ts-expect-error: an offset has a sign
new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "day", utcOffset: "02:00" });
// @ts-expect-error: a limit is a number
new RateLimiter({ algorithm: "fix_window", limit: "1", scale: "1s" });
// @ts-expect-error: policies are needed
new RateLimiter();

const durations: Duration[] = [250, "250ms", "1s", "5m", "1h", "1d", "2w"];
// @ts-expect-error: no such unit
const fortnight: Duration = "1y";
// @ts-expect-error: a unit is needed
const unitless: Duration = "1";

// Options

const options: Options = {
  clock: () => 0,
  maxKeys: 1e6,
  onFull: "deny",
  cleanPeriod: "1m",
  keyOlderThan: 1_000,
  beforeClean(algorithm, entries) {
    same<typeof algorithm, Algorithm>();
    same<typeof entries, readonly Expired[]>();
    for (const { key, policy, value, expiredAt } of entries)
      same<[Key, string, number, number], [typeof key, typeof policy, typeof value, typeof expiredAt]>();
  },
};
new RateLimiter(fixed, options);
new RateLimiter(unset, { clock: undefined, maxKeys: undefined, beforeClean: undefined });
new RateLimiter(window, { clock: Date.now });
// @ts-expect-error: no such option
new RateLimiter(window, { maxkeys: 1 });
// @ts-expect-error: evict or deny
new RateLimiter(window, { onFull: "throw" });
// @ts-expect-error: a clock answers a number
new RateLimiter(window, { clock: () => new Date() });

// A limiter

using limiter = new RateLimiter(window);
same<Key, string | number | bigint>();
same<typeof limiter.policies, readonly Policy[]>();
same<[typeof limiter.size, typeof limiter.evicted], [number, number]>();
const decision = limiter.hit("user:42");
same<typeof decision, Decision>();
same<ReturnType<typeof limiter.peek>, Decision>();
const { allowed, count, limit, remaining, retryAfter, resetAfter, moreAfter, policy, violated, reason } =
  decision;
same<
  [
    boolean,
    number,
    number,
    number,
    number,
    number,
    number,
    string,
    readonly string[],
    "full" | "error" | "banned" | "denied" | "reserved" | undefined,
  ],
  [
    typeof allowed,
    typeof count,
    typeof limit,
    typeof remaining,
    typeof retryAfter,
    typeof resetAfter,
    typeof moreAfter,
    typeof policy,
    typeof violated,
    typeof reason,
  ]
>();
limiter.hit(42, 2);
limiter.hit(42n, undefined, any);
limiter.peek("user:42", 1, tokens);
const numbers: number[] = [
  limiter.inc("a"),
  limiter.inc("a", 2, "w"),
  limiter.set("a", 1),
  limiter.get("a", "w"),
  limiter.expiresAt("a"),
  limiter.clean(),
];
const forgotten: boolean = limiter.reset("a");

// @ts-expect-error: a key is needed
limiter.hit();
// @ts-expect-error: a list is no key
limiter.hit(["user", 42]);
// @ts-expect-error: undefined is no key
limiter.hit(undefined);
// @ts-expect-error: a cost is a number
limiter.hit("a", "1");
// @ts-expect-error: a bigint is no cost
limiter.hit("a", 1n);
// @ts-expect-error: a count is needed
limiter.set("a");
// @ts-expect-error: a policy of a call is not given by its name
limiter.hit("a", 1, "w");
// @ts-expect-error: a decision is the limiter's to make
decision.allowed = true;
// @ts-expect-error: not to be set
limiter.size = 0;

// Snapshots

const snapshot: Snapshot = limiter.snapshot();
same<Snapshot["keys"][number][0], StoredKey>();
const read: Snapshot = JSON.parse(JSON.stringify(snapshot));
same<ReturnType<typeof RateLimiter.restore>, RateLimiter>();
RateLimiter.restore(read);
RateLimiter.restore(read, { ...options, policies: fixed });
// @ts-expect-error: a snapshot is no text
RateLimiter.restore("{}");
// @ts-expect-error: policies are an option of restore, not of a new limiter
new RateLimiter(window, { policies: window });

// Steps

const stored: State | null = null;
const stepped: Step = step(any, stored, "hit", 1, Date.now());
const next: State | null = stepped.state;
const answered: number | undefined = step(fixed, next, "get", 0, 0, "w").value;
same<Operation, "hit" | "peek" | "inc" | "set" | "get" | "expiresAt" | "ban" | "unban" | "reset">();
// @ts-expect-error: no such operation
step(window, null, "expires_at", 0, 0);
// @ts-expect-error: the time is needed
step(window, null, "hit", 1);
// @ts-expect-error: a hit may have no decision, as far as the types know
stepped.decision.allowed;

// Headers

const legacy: HeaderOptions = { legacy: true };
const headers: Record<string, string> = rateLimitHeaders(decision, limiter.policies, legacy);
const body: string = problemBody(decision, window);
// @ts-expect-error: the policies are needed
rateLimitHeaders(decision);
// @ts-expect-error: a key is no decision
problemBody("user:42", window);

// Addresses

const prefix: IpKeyOptions = { ipv6Prefix: 56 };
const client: string = ipKey("2001:db8::1", prefix);
// @ts-expect-error: an address that may not be there is not one
ipKey(undefined);
// @ts-expect-error: a prefix is a number
ipKey("2001:db8::1", { ipv6Prefix: "56" });
// @ts-expect-error: no such option
ipKey("2001:db8::1", { prefix: 56 });

// Waiting

const heeding: ThrottleOptions = { maxHold: 60_000, shared: "api" };
new Throttle(window, heeding).hold(client, 1_000);
// @ts-expect-error: a number of milliseconds
new Throttle(window, { maxHold: "1m" });
const told = ({ position, wait }: Place): string => `${position.toFixed()} ${wait?.toFixed()}`;
const counting = new Throttle(window, { onChange: ({ pending }) => pending.toFixed() });
counting.acquire({ onChange: (place) => told(place) });
counting.wrap((text: string) => text.length, { onChange: told });
const lengthOf = counting.wrap((text: string) => text.length);
same<ReturnType<typeof lengthOf>, Promise<number>>();
// A call may be dropped.
const latest = counting.wrap((text: string) => text.length, { edge: "trailing" });
same<ReturnType<typeof latest>, Promise<number | undefined>>();
// @ts-expect-error: not a signal
counting.wrap((text: string) => text.length, { signal: "stop" });
// @ts-expect-error: a throttle has no position
new Throttle(window, { onChange: ({ position }) => position });
same<Snapshot, ReturnType<typeof limiter.snapshot>>();
limiter.snapshot("user:42");

// Errors

const codeOf = (error: unknown): ErrorCode | undefined =>
  error instanceof TollgateError && error instanceof Error ? error.code : undefined;
const error = new TollgateError("invalid_key", "words", { cause: body });
same<typeof error.name, "TollgateError">();
// @ts-expect-error: no such code
const isOdd = error.code === "odd";
// @ts-expect-error: no such code
new TollgateError("odd", "words");

export { answered, codeOf, durations, forgotten, fortnight, headers, isOdd, numbers, policies, unitless };
