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

// The wasm of the npm package goes without the standard library, whose panics would outweigh the core.
#![cfg_attr(all(any(feature = "js", feature = "headers"), target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

mod algorithm;
#[cfg(all(any(feature = "js", feature = "headers"), target_arch = "wasm32", not(test)))]
mod allocator;
mod clock;
mod conversion;
mod decision;
mod duration;
mod earlier;
mod error;
mod headers;
mod key;
mod key_states;

mod ledger;
mod limiter;
mod memory;
mod number;
mod options;
mod policy;
mod policy_states;
mod record;
mod snapshot;
mod step;
mod store;
mod text;

#[cfg(any(feature = "cloudflare", all(test, not(target_arch = "wasm32"))))]
mod cloudflare;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
mod js;

#[cfg(feature = "system-clock")]
pub use clock::SystemClock;
pub use clock::{Clock, ManualClock};
pub use decision::{Decision, Reason, Violated};
pub use duration::Span;
pub use error::{Error, ErrorKind};
pub use headers::{PROBLEM_TYPE, legacy_headers, problem_body, rate_limit_headers, retry_after};
pub use key::{MAX_KEY_BYTES, check_key};
pub use ledger::{Answer, Ledger, MAX_STORED_LOG, Operation};
pub use limiter::{Cleaned, Limiter};
pub use number::MAX;
pub use options::{OnFull, Options};
pub use policy::{ALGORITHMS, Denied, IntoPolicies, MAX_POLICIES, Policies, Policy, PolicyDraft};
pub use record::Record;
pub use snapshot::Snapshot;
pub use step::{Step, step};
pub use store::{Store, StoreError, StoreLimiter};

/// What this project's own bindings build on. No part of the public interface: it changes without notice.
#[doc(hidden)]
pub mod binding {
    pub use crate::algorithm::Act;
    pub use crate::algorithm::rule::Rule;
    pub use crate::memory::OutOfMemory;
    pub use crate::policy_states::PolicyStates;
    pub use crate::record::{Afresh, Origin};
    pub use crate::store::slots::{Expired, SlotError, Slots};
}

/// Runs the Rust in the documents.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/embed.md")]
struct Documents;
