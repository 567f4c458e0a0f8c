// Generated from Rust: `npm run build` writes this file. Do not edit it.

/** The operations by their names in the HTTP API, with their arguments beside the key. A `plain` one has an amount at most, and gives numbers. */
export const operations = {
  hit: {
    summary: "Decides whether the key may act now, and charges the cost if so.",
    on: "key",
    policies: "all",
    takes: {
      cost: { kind: "costs", required: false },
      undoable: { kind: "flag", required: false, about: "Whether the result has an id for undo." },
    },
    gives: "hit",
    reads: false,
    plain: true,
  },
  peek: {
    summary:
      "Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0 tells what counts now. Changes no state.",
    on: "key",
    policies: "all",
    takes: { cost: { kind: "costs", required: false } },
    gives: "decision",
    reads: true,
    plain: true,
  },
  inc: {
    summary: "Adds a cost to the count, whether it fits or not.",
    on: "key",
    policies: "one",
    takes: { cost: { kind: "change", required: false, about: "A negative cost gives back." } },
    gives: "count",
    reads: false,
    plain: true,
  },
  set: {
    summary: "Sets the key's count, as if it had just been used, or its tokens.",
    on: "key",
    policies: "one",
    takes: { count: { kind: "count", required: true } },
    gives: "count",
    reads: false,
    plain: true,
  },
  get: {
    summary: "Returns the key's count, and the exception that is in force.",
    on: "key",
    policies: "one",
    takes: {},
    gives: "countAndException",
    reads: true,
    plain: true,
  },
  expires_at: {
    summary: "Returns when the key's state ends; 0 if it has none.",
    on: "key",
    policies: "one",
    takes: {},
    gives: "time",
    reads: true,
    plain: true,
  },
  ban: {
    summary: "Denies every hit of the key for so long, or changes the end of the ban that holds.",
    on: "key",
    policies: "ban",
    takes: { for: { kind: "length", required: true, about: "Milliseconds, or a text such as 1h." } },
    gives: "time",
    reads: false,
    plain: true,
  },
  unban: {
    summary: "Lifts the ban of the key and forgets its past ones.",
    on: "key",
    policies: "ban",
    takes: {},
    gives: "flag",
    reads: false,
    plain: true,
  },
  except: {
    summary:
      "Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has.",
    on: "key",
    policies: "none",
    takes: {
      exception: { kind: "exception", required: true },
      until: { kind: "time", required: false, about: "When it ends, in milliseconds since the epoch." },
      for: {
        kind: "exceptionLength",
        required: false,
        about: "How long it lasts instead: milliseconds, or a text such as 7d; at most 400 days.",
      },
    },
    gives: "exceptionEnd",
    reads: false,
    plain: false,
  },
  exceptions: {
    summary: "Returns the exception of the key that is in force.",
    on: "key",
    policies: "none",
    takes: {},
    gives: "exception",
    reads: true,
    plain: false,
  },
  reset: {
    summary: "Removes the key's states, and its reservations if `reservations` is true.",
    on: "key",
    policies: "none",
    takes: { reservations: { kind: "flag", required: false } },
    gives: "flag",
    reads: false,
    plain: true,
  },
  undo: {
    summary: "Gives back what of a hit still counts, within ten seconds of it and once.",
    on: "key",
    policies: "all",
    takes: {
      id: { kind: "hit", required: true, about: "As hit returned it." },
      cost: { kind: "costs", required: false },
    },
    gives: "flag",
    reads: false,
    plain: false,
  },
  reserve: {
    summary:
      "Decides as a hit does, and reserves the cost until it is settled, or charged in full at its end.",
    on: "key",
    policies: "all",
    takes: { cost: { kind: "costs", required: false }, ttl: { kind: "ttl", required: false } },
    gives: "reserved",
    reads: false,
    plain: false,
  },
  settle: {
    summary: "Closes a reservation and charges the used amount, by default all of it.",
    on: "reservation",
    policies: "all",
    takes: {
      id: { kind: "reservation", required: true, about: "The id of a reservation, as reserve returned it." },
      used: { kind: "used", required: false },
    },
    gives: "settlement",
    reads: false,
    plain: false,
  },
  cancel: {
    summary: "Closes a reservation without a charge.",
    on: "reservation",
    policies: "none",
    takes: {
      id: { kind: "reservation", required: true, about: "The id of a reservation, as reserve returned it." },
    },
    gives: "settlement",
    reads: false,
    plain: false,
  },
  extend: {
    summary: "Moves the end of a reservation to `ttl` from now.",
    on: "reservation",
    policies: "none",
    takes: {
      id: { kind: "reservation", required: true, about: "The id of a reservation, as reserve returned it." },
      ttl: { kind: "ttl", required: true },
    },
    gives: "extension",
    reads: false,
    plain: false,
  },
  lease: {
    summary:
      "Decides as a hit does, charges the spent part of a lease, and renews the lease or gives back the rest.",
    on: "key",
    policies: "none",
    takes: {
      cost: { kind: "amount", required: false },
      id: { kind: "lease", required: false, about: "The id of the lease, as lease returned it." },
      used: { kind: "amount", required: false, about: "The amount that was spent since the last report." },
      size: {
        kind: "amount",
        required: false,
        about: "The amount to reserve, including the unspent rest; 0 gives the rest back.",
      },
      ttl: { kind: "leaseTtl", required: false },
    },
    gives: "lease",
    reads: false,
    plain: false,
  },
} as const;

/** The fields of results that have one. */
export const resultFields = {
  inc: "count",
  set: "count",
  get: "count",
  expires_at: "expiresAt",
  ban: "until",
  unban: "unbanned",
  except: "until",
  reset: "reset",
  undo: "undone",
} as const;

/** The operations that surfaces do not have, and why. */
export const lacking = {
  memory: { undo: "`hitAll` does it", lease: "limiters with leases do it" },
  ledger: { undo: "`hitAll` does it", cancel: "settle with 0", lease: "limiters with leases do it" },
  step: {
    except: "it has more than an amount; use a `Ledger`",
    exceptions: "it has more than an amount; use a `Ledger`",
    undo: "`hitAll` does it",
    reserve: "it has more than an amount; use a `Ledger`",
    settle: "it has more than an amount; use a `Ledger`",
    cancel: "it has more than an amount; use a `Ledger`",
    extend: "it has more than an amount; use a `Ledger`",
    lease: "limiters with leases do it",
  },
  store: { undo: "`hitAll` does it", lease: "limiters with leases do it" },
  redis: { undo: "`hitAll` does it", lease: "limiters with leases do it" },
  remote: { undo: "`hitAll` does it", lease: "limiters with leases do it" },
  rule: {
    hit: "requests do it, not operators",
    undo: "`hitAll` does it",
    reserve: "requests do it, not operators",
    settle: "requests do it, not operators",
    cancel: "requests do it, not operators",
    extend: "requests do it, not operators",
    lease: "limiters with leases do it",
  },
  object: {},
  http: {},
  rpc: { lease: "limiters with leases do it" },
  limits: { exceptions: "it is called `exception`", lease: "limiters with leases do it" },
  command: {
    hit: "requests do it, not operators",
    peek: "`get` prints it",
    inc: "use `reset`, `except` or `ban`",
    set: "use `reset`, `except` or `ban`",
    expires_at: "`get` prints it",
    undo: "`hitAll` does it",
    reserve: "requests do it, not operators",
    settle: "requests do it, not operators",
    cancel: "requests do it, not operators",
    extend: "requests do it, not operators",
    lease: "limiters with leases do it",
  },
} as const;

/** The operations. */
export type Operation =
  | "hit"
  | "peek"
  | "inc"
  | "set"
  | "get"
  | "expires_at"
  | "ban"
  | "unban"
  | "except"
  | "exceptions"
  | "reset"
  | "undo"
  | "reserve"
  | "settle"
  | "cancel"
  | "extend"
  | "lease";

/** The operations that have an amount at most, and return numbers. */
export type Counted = "hit" | "peek" | "inc" | "set" | "get" | "expires_at" | "ban" | "unban" | "reset";
