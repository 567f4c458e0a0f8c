//! Tollgate decides whether a key may act now: exact rate limiting with an injected clock.
//!
//! ```
//! use tollgate::{Limiter, ManualClock, Policy};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let clock = ManualClock::new(1_767_225_600_000);
//! let mut limiter = Limiter::<String, _>::new(Policy::token_bucket(10, 2, "1s")?, &clock)?;
//!
//! let decision = limiter.hit("user:42", 1)?;
//! assert!(decision.allowed);
//! assert_eq!(decision.remaining, 9);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Policy`]: an algorithm and its numbers. [`Limiter`]: many keys in memory. [`Decision`]: the answer.
//! - [`Ledger`], [`step`], [`Store`]: one key's states, for stores outside the process.
//! - [`rate_limit_headers`] and [`problem_body`]: the answer over HTTP.
//! - [`guide`]: a tour of all of it.

#![cfg_attr(not(any(test, feature = "cloudflare", feature = "tower")), no_std)]
#![cfg_attr(not(feature = "cloudflare"), forbid(unsafe_code))]

extern crate alloc;
#[cfg(all(any(feature = "sync", feature = "system-clock"), not(any(test, feature = "cloudflare", feature = "tower"))))]
extern crate std;

#[cfg(any(feature = "cloudflare", feature = "tower"))]
mod address;
// Where algorithms are matched, a new one must not fall into a wildcard.
#[deny(clippy::wildcard_enum_match_arm)]
mod algorithm;
#[doc(hidden)]
pub mod boundary;
mod clock;
mod decision;
mod error;
mod growth;
#[deny(clippy::wildcard_enum_match_arm)]
mod headers;
#[deny(clippy::wildcard_enum_match_arm)]
mod key;
#[doc(hidden)]
#[deny(clippy::wildcard_enum_match_arm)]
pub mod lease;
#[deny(clippy::wildcard_enum_match_arm)]
mod memory;
mod number;
#[doc(hidden)]
pub mod operations;
mod policy;
#[doc(hidden)]
#[deny(clippy::wildcard_enum_match_arm)]
pub mod redis_log;
mod store;

#[cfg(feature = "cloudflare")]
pub mod cloudflare;
pub mod guide;
#[cfg(feature = "tower")]
pub mod tower;

pub use algorithm::calendar::Calendar;
#[cfg(feature = "system-clock")]
pub use clock::SystemClock;
pub use clock::{Clock, ManualClock};
#[doc(hidden)]
pub use decision::verdict;
pub use decision::{Decision, Reason, Violated};
pub use error::expected::Expected;
pub use error::found::Found;
pub use error::{Error, Mismatch};
pub use headers::{BANNED_PROBLEM_TYPE, PROBLEM_TYPE, legacy_headers, problem_body, rate_limit_headers, retry_after};
pub use key::check_key;
pub use key::reservation::{Reservation, ReservationId, Reserve, Reserving, Settlement};
pub use key::undo::{HitId, MAX_UNDO};
pub use lease::{DEFAULT_LEASE_TTL, Lease, MAX_LEASE_TTL, Renewal};
pub use memory::limiter::{Cleaned, Limiter};
pub use memory::options::{OnFull, Options};
#[cfg(feature = "sync")]
pub use memory::shared::SharedLimiter;
pub use number::MAX;
pub use policy::costs::Costs;
pub use policy::duration::Span;
pub use policy::schema::{
    ALGORITHMS, MAX_EXCEPTION, MAX_KEY_BYTES, MAX_POLICIES, MAX_RESERVATIONS, MAX_ROWS, MAX_STORED_LOG,
    MAX_STORED_RESERVATIONS,
};
pub use policy::{Denied, Exception, IntoPolicies, Policies, Policy, PolicyDraft, Value};
pub use store::ledger::Ledger;
pub use store::operation::{Answer, Operation};
pub use store::record::Record;
pub use store::snapshot::Snapshot;
pub use store::step::{Step, step};
pub use store::{Store, StoreError, StoreLimiter};

/// Runs the Rust in the documents.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/embed.md")]
#[doc = include_str!("../docs/exceptions.md")]
#[doc = include_str!("../docs/rust.md")]
struct Documents;
