// Generated from Rust: `npm run build` writes this file. Do not edit it.

/** Bits of a status, and, below 0, statuses of operations that failed. */
export const status = {
  small: 1,
  moved: 2,
  verdict: 2,
  invalidCost: -1,
  invalidTime: -2,
  invalidHandle: -3,
  outOfMemory: -4,
  mismatch: -5,
  noRoom: -6,
  manyExceptions: -8,
  manyRows: -9,
  invalidAmount: -7,
  uncountable: -50,
  at: -100,
} as const;

/** The numbers of verdicts. Those of denials with a reason follow. */
export const verdict = { denied: 0, allowed: 1, uncertain: 2 } as const;

/** The reasons of denials by the numbers of their verdicts. */
export const reasons = { 4: "banned", 5: "denied", 6: "reserved", 7: "full" } as const;

/** The operations on one policy's count. */
export const operation = {
  get: 0,
  expiresAt: 1,
  inc: 2,
  set: 3,
  maxCount: 4,
  defaultTtl: 5,
  ban: 6,
  unban: 7,
} as const;

/** The kinds of `hit_with`. */
export const hitKind = { hit: 0, peek: 1, reserve: 2, peekFree: 3, byPolicy: 4 } as const;

/** The results of closing a reservation, by the number that `close_reservation` returns. */
export const settlements = ["settled", "extended", "expired", "closed", "evicted"] as const;

/** Offsets within the result buffer, in bytes. */
export const resultOffsets = { floats: 0, integers: 48, moved: 80, list: 84, handle: 92 } as const;

/** Statuses, operations and results of the replay of a log. */
export const replay = {
  status: { own: 1, foreign: 2, kept: 4, malformed: -1, version: -2, outOfMemory: -3 },
  reading: { peek: 0, get: 1, expiresAt: 2, exception: 3 },
  kind: { number: 8, rejected: 9, manyRows: 10 },
  settlements: ["settled", "extended", "expired", "closed"],
  numbersPerResult: 10,
  numbersPerOutcome: 3,
  noSlot: 4294967295,
} as const;

/** The algorithms by their names, aliases included. */
export const algorithms = {
  fix_window: {
    position: 0,
    name: "fix_window",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      scale: { role: "scale" },
      utcOffset: { role: "utcOffset" },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  fixed_window: {
    position: 0,
    name: "fix_window",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      scale: { role: "scale" },
      utcOffset: { role: "utcOffset" },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  fix_window_per_key: {
    position: 1,
    name: "fix_window_per_key",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      scale: { role: "scale" },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  sliding_window: {
    position: 2,
    name: "sliding_window",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      scale: { role: "scale" },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  sliding_counter: {
    position: 3,
    name: "sliding_counter",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      scale: { role: "scale" },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  token_bucket: {
    position: 4,
    name: "token_bucket",
    fields: {
      algorithm: { role: "algorithm" },
      capacity: { role: "limit" },
      refillRate: { role: "rate" },
      per: { role: "scale", default: 1000 },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  leaky_bucket: {
    position: 5,
    name: "leaky_bucket",
    fields: {
      algorithm: { role: "algorithm" },
      capacity: { role: "limit" },
      leakRate: { role: "rate" },
      per: { role: "scale", default: 1000 },
      name: { role: "name" },
      unit: { role: "unit" },
      denied: { role: "denied" },
    },
  },
  concurrency: {
    position: 6,
    name: "concurrency",
    fields: {
      algorithm: { role: "algorithm" },
      limit: { role: "limit" },
      ttl: { role: "ttl", default: 60000 },
      name: { role: "name" },
      unit: { role: "unit" },
    },
  },
  ban: {
    position: 7,
    name: "ban",
    fields: {
      algorithm: { role: "algorithm" },
      after: { role: "after" },
      scale: { role: "scale" },
      for: { role: "length" },
      factor: { role: "factor", default: 1 },
      most: { role: "most" },
      name: { role: "name" },
    },
  },
} as const;

/** The units of a duration, in milliseconds. */
export const durationUnits = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 } as const;

/** The numbers of the units of the calendar, from which the offset from UTC in minutes is subtracted. */
export const calendarScales = { day: -10000, week: -20000, month: -30000 } as const;

/** Spellings, words, defaults and limits. */
export const schema = {
  snakeCase: { utc_offset: "utcOffset", refill_rate: "refillRate", leak_rate: "leakRate" },
  deniedWords: ["count", "free"],
  onFullWords: ["evict", "deny"],
  maxUtcOffset: 840,
  maxPolicies: 32,
  perPolicy: 6,
  maxKeys: 16000000,
  defaultMaxKeys: 1000000,
  defaultCleanPeriod: 60000,
  maxKeyBytes: 1024,
  maxTtl: 86400000,
  maxBanCount: 1000,
  defaultLeaseTtl: 1000,
  maxLeaseTtl: 10000,
  openNumbers: 10,
  maxRows: 256,
  maxReservations: 10000,
  maxStoredReservations: 1024,
  maxUndo: 10000,
  maxStoredLog: 1000,
} as const;

/** How long a lease lasts, in milliseconds. */
export const leaseTtl = { byDefault: 1000, max: 10000 } as const;

/** The fields of an exception, its position among algorithms, and the longest that it lasts, in milliseconds. */
export const exceptionSchema = {
  fields: ["allow", "deny", "limit", "capacity", "refillRate", "leakRate", "after", "for", "factor", "most"],
  position: 99,
  longest: 34560000000,
} as const;

/** The name of a stored exception, in the place of an algorithm. */
export const exceptionName = "exception" as const;

/** The version of snapshots and stored states. */
export const storedVersion = 4 as const;

// The wording of errors: `{names}` are replaced. Each is an export, so that a bundler drops unused ones.
export const rejectedText = "{field}: {found} is not {expected}";
export const requiredText = "{field} is required ({expected})";
export const namedTwiceText = "{field}: two policies are named {found}";
export const unknownFieldText = "{found} is not a field of {algorithm}; use one of {known}";
export const unknownPolicyText = "policy: {found} is not a policy of this limiter; use one of {known}";
export const policyRequiredText = "policy is required where there are several (one of {known})";
export const invalidTimeText =
  "clock: {found} is not a time; return milliseconds since the epoch, from 0 to {max}";
export const otherPoliciesText =
  "the number of policies of this call is {found}; this limiter accepts {expected} only";
export const otherAlgorithmText =
  "the policy of this call has algorithm {found}; this limiter accepts {expected} only";
export const otherScaleText =
  "the policy of this call has {field} {found} ms; this limiter accepts {expected} ms only";
export const otherCalendarText =
  "the policy of this call has another scale or utcOffset; this limiter accepts its own only";
export const fullText = "the limiter is full: it holds {found} keys and denies new ones";
export const invalidStateText = "the stored state cannot be read: {problem}";
export const unsupportedVersionText =
  "the stored state has version {found}; this library reads version {expected}";
export const reserveOnlyText =
  "{policy} is a concurrency limit, which {operation} cannot change; use reserve; see docs/concurrency.md";
export const banOnlyText =
  "{policy} is a ban, which {operation} cannot change; use ban or unban; see docs/bans.md";
export const noBanText =
  'policy: this limiter has no ban; add a policy such as { algorithm: "ban", after: 5, scale: "10m", for: "1h" }; see docs/bans.md';
export const unknownBanText = "policy: {found} is not a ban of this limiter; use one of {known}";
export const settleByPolicyText =
  "used: {found} is one number for a reservation of costs by policy; use an object with a number for each policy";
export const outOfMemoryText = "there is no memory left for another key or hit";
export const unknownStateText = "known algorithm";
export const rowNumbersText = "the numbers of a row are not those of one";
export const stateNumbersText = "the numbers of {name} are not those of a {algorithm}";
export const integerText = "an integer from {min} to {max}";
export const signedIntegerText = "an integer from -{max} to {max}";
export const durationText = "a duration; use {forms}";
export const ttlText = "a duration of at most a day; use {forms}";
export const leaseTtlText =
  'a duration of at most ten seconds; use 1 to 10000 milliseconds or a string such as "500ms", "2s" or "10s"';
export const durationFormsText = 'milliseconds or a string such as "500ms", "1s", "5m", "1h" or "1d"';
export const noCalendarText = '; use fix_window for "day", "week" or "month"';
export const scaleText = "a duration or a unit of the calendar; use {forms}";
export const scaleFormsText =
  'milliseconds, a string such as "500ms", "1s", "5m", "1h" or "1d", or "day", "week" or "month"';
export const utcOffsetText = "an offset from UTC; use {forms}";
export const utcOffsetFormsText = 'a string from "-14:00" to "+14:00", or "Z"';
export const calendarOnlyText = 'accepted with a duration; use it with scale "day", "week" or "month"';
export const algorithmText = "an algorithm; use {forms}";
export const algorithmFormsText = "one of {known}";
export const nameText = "a name; use {forms}";
export const unitText = "a unit; use {forms}";
export const nameFormsText = "1 to 64 printable ASCII characters";
export const keyText = "a string of 1 to 1024 UTF-8 bytes";
export const reservationText = "the id of a reservation, as reserve returned it";
export const optionText = "an option; use one of {known}";
export const onceText = "accepted; give the field once";
export const policyText = "a policy; use {forms}";
export const policyFormsText = 'an object such as { algorithm: "fix_window", limit: 100, scale: "1m" }';
export const policiesText = "accepted; use 1 to 32 policies";
export const freeForBucketText = 'accepted for a bucket, which never counts denied hits; use "free"';
export const freeAmongSeveralText =
  'accepted among several policies, where a denied hit changes nothing; use "free"';
export const mostOfBanText = 'a duration of at least "for"; a ban with a factor needs one, such as "1d"';
export const factorForMostText = "accepted without a factor; use it with a factor from 2 to 1000";
export const fillableCapacityText = "a capacity that the rate fills within {max} ms";
export const reachableLimitText =
  "a concurrency that a key can reach; it has at most {max} open reservations here";
export const storedLimitText =
  "accepted for a sliding_window that is stored outside the process; use at most 1000, or sliding_counter; see docs/choosing.md";
export const negativeText = "a negative number";
export const fractionText = "a fraction";
export const tooLargeText = "a number above 9007199254740991";
export const exceptionText = "an exception";
export const exceptionFormsText =
  "an exception; use { allow: true }, { deny: true } or numbers by policy such as { api: { limit: 1000 } }";
export const decisionAndMoreText = "an object with allow or deny and more";
export const exceptionEndText = "a time within the next 400 days; use milliseconds since the epoch";
export const exceptionLengthText =
  'a duration of at most 400 days; use milliseconds or a string such as "1h", "1d" or "1w"';
export const manyExceptionsText =
  "half of the {found} keys that this limiter holds have exceptions; raise its number of keys";
export const manyRowsText =
  "the key has states under {found} policies that have not ended, and keeps no more; use fewer policies with one key, or reset it";
export const emptyObjectText = "an empty object";
export const arrayText = "an array";
export const objectText = "an object";
export const secondValueText = "a second value";
export const noPoliciesText = "an empty array";
export const manyPoliciesText = "an array of more than 32";
