//! The operations on keys, as data: what each is called, takes and gives, and which surfaces have it.
//!
//! The HTTP API reads its fields by this table. `npm run build` writes it into `js/wasm/operations.ts`, by which TypeScript
//! describes and dispatches operations.

/// An operation.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub struct OperationSchema {
    /// The name in the HTTP API. That of a method is the same in camelCase.
    pub name: &'static str,
    pub summary: &'static str,
    pub on: On,
    pub policies: Named,
    /// The arguments beside the key, in the order in which the API reads them.
    pub takes: &'static [ArgumentSchema],
    pub gives: Gives,
    /// Whether it changes no state.
    pub reads: bool,
    /// Whether it has an amount at most, and gives numbers: an object then takes it without JSON.
    pub plain: bool,
    /// The surfaces that do not have it, and why.
    pub lacks: &'static [(&'static [Surface], &'static str)],
}

/// What an operation is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A key.
    Key,
    /// A reservation, whose id contains its key.
    Reservation,
}

/// Which policies an operation may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// None: it is on the whole key.
    None,
    /// All, by costs with their names.
    All,
    /// One that counts, which must be named if there are several.
    One,
    /// A ban, which must be named if there are several.
    Ban,
}

/// An argument of an operation.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub struct ArgumentSchema {
    /// The name of its field in the HTTP API and in questions to an object.
    pub field: &'static str,
    pub kind: ArgumentKind,
    pub required: bool,
    /// A description; empty if that of its kind is enough.
    pub about: &'static str,
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A cost, or one for each policy by its name; 1 by default.
    Costs,
    /// The same, by default what was reserved. It may name no policy.
    Used,
    /// A cost of either sign; 1 by default.
    Change,
    /// An amount; 0 by default.
    Amount,
    /// A count.
    Count,
    /// How long a ban lasts.
    Length,
    /// How long an exception lasts.
    ExceptionLength,
    /// How long a reservation lasts.
    Ttl,
    /// How long a lease lasts.
    LeaseTtl,
    /// An exception, or null.
    Exception,
    /// A time.
    Time,
    /// True or false; false by default.
    Flag,
    /// The id of a reservation.
    Reservation,
    /// The id of a lease.
    Lease,
    /// The id of a hit.
    Hit,
}

/// The kind of a result, and the name of its field if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A decision, with the id of the hit if it can be undone.
    Hit,
    /// A decision.
    Decision,
    /// A count.
    Count(&'static str),
    /// A count, and the exception of the key.
    CountAndException(&'static str),
    /// A time.
    Time(&'static str),
    /// The end of an exception; 0 if there was none.
    ExceptionEnd(&'static str),
    /// True or false.
    Flag(&'static str),
    /// An exception and its end.
    Exception,
    /// A reservation.
    Reserved,
    /// What became of a reservation that was to be closed.
    Settlement,
    /// What became of a reservation that was to be extended.
    Extension,
    /// A decision and a lease.
    Lease,
}

/// A place where operations are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// `RateLimiter`.
    Memory,
    /// `Ledger`.
    Ledger,
    /// `step`.
    Step,
    /// `StoreLimiter`.
    Store,
    /// `RedisLimiter`.
    Redis,
    /// `RemoteLimiter`.
    Remote,
    /// `ofRule` of `RemoteLimiter` and of RPC.
    Rule,
    /// `RateLimiterObject`.
    Object,
    /// The HTTP API.
    Http,
    /// `Tollgate`, the entrypoint for other Workers.
    Rpc,
    /// `Limits` in Rust.
    Limits,
    /// The command.
    Command,
}

use ArgumentKind::{
    Amount, Change, Costs, Count, Exception, ExceptionLength, Flag, Hit, Lease, LeaseTtl, Length, Reservation, Time,
    Ttl, Used,
};
use Surface::{Command, Ledger, Limits, Memory, Redis, Remote, Rpc, Rule, Step, Store};

/// The surfaces of applications: all but the HTTP API and the object.
const OF_APPLICATIONS: &[Surface] = &[Memory, Ledger, Step, Store, Redis, Remote, Rule, Rpc, Limits, Command];

const BY_REQUESTS: (&[Surface], &str) = (&[Rule, Command], "requests do it, not operators");
const IN_LEDGER: (&[Surface], &str) = (&[Step], "it has more than an amount; use a `Ledger`");
const BY_HIT_ALL: (&[Surface], &str) =
    (&[Memory, Ledger, Step, Store, Redis, Remote, Rule, Command], "`hitAll` does it");
const BY_LIMITERS: (&[Surface], &str) = (OF_APPLICATIONS, "limiters with leases do it");

const fn optional(field: &'static str, kind: ArgumentKind, about: &'static str) -> ArgumentSchema {
    ArgumentSchema { field, kind, required: false, about }
}

const fn required(field: &'static str, kind: ArgumentKind, about: &'static str) -> ArgumentSchema {
    ArgumentSchema { field, kind, required: true, about }
}

const COST: ArgumentSchema = optional("cost", Costs, "");
const ID: ArgumentSchema = required("id", Reservation, "The id of a reservation, as reserve returned it.");

/// The fields of most operations.
const ON_KEY: OperationSchema = OperationSchema {
    name: "",
    summary: "",
    on: On::Key,
    policies: Named::None,
    takes: &[],
    gives: Gives::Decision,
    reads: false,
    plain: false,
    lacks: &[],
};

/// All operations.
pub const OPERATIONS: [OperationSchema; 17] = [
    OperationSchema {
        name: "hit",
        summary: "Decides whether the key may act now, and charges the cost if so.",
        policies: Named::All,
        takes: &[COST, optional("undoable", Flag, "Whether the result has an id for undo.")],
        gives: Gives::Hit,
        plain: true,
        lacks: &[BY_REQUESTS],
        ..ON_KEY
    },
    OperationSchema {
        name: "peek",
        summary: "Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0 tells what counts now. Changes no state.",
        policies: Named::All,
        takes: &[COST],
        reads: true,
        plain: true,
        lacks: &[(&[Command], "`get` prints it")],
        ..ON_KEY
    },
    OperationSchema {
        name: "inc",
        summary: "Adds a cost to the count, whether it fits or not.",
        policies: Named::One,
        takes: &[optional("cost", Change, "A negative cost gives back.")],
        gives: Gives::Count("count"),
        plain: true,
        lacks: &[(&[Command], "use `reset`, `except` or `ban`")],
        ..ON_KEY
    },
    OperationSchema {
        name: "set",
        summary: "Sets the key's count, as if it had just been used, or its tokens.",
        policies: Named::One,
        takes: &[required("count", Count, "")],
        gives: Gives::Count("count"),
        plain: true,
        lacks: &[(&[Command], "use `reset`, `except` or `ban`")],
        ..ON_KEY
    },
    OperationSchema {
        name: "get",
        summary: "Returns the key's count, and the exception that is in force.",
        policies: Named::One,
        gives: Gives::CountAndException("count"),
        reads: true,
        plain: true,
        ..ON_KEY
    },
    OperationSchema {
        name: "expires_at",
        summary: "Returns when the key's state ends; 0 if it has none.",
        policies: Named::One,
        gives: Gives::Time("expiresAt"),
        reads: true,
        plain: true,
        lacks: &[(&[Command], "`get` prints it")],
        ..ON_KEY
    },
    OperationSchema {
        name: "ban",
        summary: "Denies every hit of the key for so long, or changes the end of the ban that holds.",
        policies: Named::Ban,
        takes: &[required("for", Length, "Milliseconds, or a text such as 1h.")],
        gives: Gives::Time("until"),
        plain: true,
        ..ON_KEY
    },
    OperationSchema {
        name: "unban",
        summary: "Lifts the ban of the key and forgets its past ones.",
        policies: Named::Ban,
        gives: Gives::Flag("unbanned"),
        plain: true,
        ..ON_KEY
    },
    OperationSchema {
        name: "except",
        summary: "Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has.",
        takes: &[
            required("exception", Exception, ""),
            optional("until", Time, "When it ends, in milliseconds since the epoch."),
            optional(
                "for",
                ExceptionLength,
                "How long it lasts instead: milliseconds, or a text such as 7d; at most 400 days.",
            ),
        ],
        gives: Gives::ExceptionEnd("until"),
        lacks: &[IN_LEDGER],
        ..ON_KEY
    },
    OperationSchema {
        name: "exceptions",
        summary: "Returns the exception of the key that is in force.",
        gives: Gives::Exception,
        reads: true,
        lacks: &[IN_LEDGER, (&[Limits], "it is called `exception`")],
        ..ON_KEY
    },
    OperationSchema {
        name: "reset",
        summary: "Removes the key's states, and its reservations if `reservations` is true.",
        takes: &[optional("reservations", Flag, "")],
        gives: Gives::Flag("reset"),
        plain: true,
        ..ON_KEY
    },
    OperationSchema {
        name: "undo",
        summary: "Gives back what of a hit still counts, within ten seconds of it and once.",
        policies: Named::All,
        takes: &[required("id", Hit, "As hit returned it."), COST],
        gives: Gives::Flag("undone"),
        lacks: &[BY_HIT_ALL],
        ..ON_KEY
    },
    OperationSchema {
        name: "reserve",
        summary: "Decides as a hit does, and reserves the cost until it is settled, or charged in full at its end.",
        policies: Named::All,
        takes: &[COST, optional("ttl", Ttl, "")],
        gives: Gives::Reserved,
        lacks: &[IN_LEDGER, BY_REQUESTS],
        ..ON_KEY
    },
    OperationSchema {
        name: "settle",
        summary: "Closes a reservation and charges the used amount, by default all of it.",
        on: On::Reservation,
        policies: Named::All,
        takes: &[ID, optional("used", Used, "")],
        gives: Gives::Settlement,
        lacks: &[IN_LEDGER, BY_REQUESTS],
        ..ON_KEY
    },
    OperationSchema {
        name: "cancel",
        summary: "Closes a reservation without a charge.",
        on: On::Reservation,
        takes: &[ID],
        gives: Gives::Settlement,
        lacks: &[IN_LEDGER, BY_REQUESTS, (&[Ledger], "settle with 0")],
        ..ON_KEY
    },
    OperationSchema {
        name: "extend",
        summary: "Moves the end of a reservation to `ttl` from now.",
        on: On::Reservation,
        takes: &[ID, required("ttl", Ttl, "")],
        gives: Gives::Extension,
        lacks: &[IN_LEDGER, BY_REQUESTS],
        ..ON_KEY
    },
    OperationSchema {
        name: "lease",
        summary: "Decides as a hit does, charges the spent part of a lease, and renews the lease or gives back the rest.",
        takes: &[
            optional("cost", Amount, ""),
            optional("id", Lease, "The id of the lease, as lease returned it."),
            optional("used", Amount, "The amount that was spent since the last report."),
            optional("size", Amount, "The amount to reserve, including the unspent rest; 0 gives the rest back."),
            optional("ttl", LeaseTtl, ""),
        ],
        gives: Gives::Lease,
        lacks: &[BY_LIMITERS],
        ..ON_KEY
    },
];
