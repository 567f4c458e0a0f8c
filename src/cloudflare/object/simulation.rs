//! A simulation of isolates that hold leases, and of an object with credit that crashes: never more is admitted than the
//! definition of the policy allows, whatever is lost, late or skewed.
//!
//! Times are true times. A use counts when it is decided: at the object for a hit that is sent to it, in the isolate for a
//! hit that a lease covers.

mod admission;
mod credit;
mod disk;
mod efficiency;
mod event;
mod exceptions;
mod isolate;
mod oracle;
mod plan;
mod policies;
pub(super) mod random;
mod scenario;
mod several_keys;
mod used;
mod world;

/// The key, as a holder knows it under each plan.
const KEYS: [&str; 5] = ["0 key", "1 key", "2 key", "3 key", "4 key"];

const START: u64 = 1_800_000_000_000;
