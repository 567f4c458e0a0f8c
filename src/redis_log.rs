//! Replays logs of operations, for stores that only order entries and add their times, such as Redis.
//!
//! The value of a key is a string: perhaps a base (states, and the tokens of recent entries), then entries, each with the
//! store's time. Every process replays the same entries in the same order through the core, so all make the same decisions; the
//! store contains no algorithm. `docs/redis.md` describes the format.
//!
//! This module is for the bindings of this workspace. It is not part of the public API and may change in any version.

mod base;
mod by_position;
mod entry;
mod inspect;
mod lines;
mod policy_set;
mod policy_sets;
mod replica;
mod replicas;
mod result;
mod share;
mod text;
mod value_sets;

pub use inspect::{Inspection, inspect};
pub use replica::Replayed;
pub use replicas::{NO_SLOT, Replicas};
pub use result::{NUMBERS_PER_OUTCOME, NUMBERS_PER_RESULT, SETTLEMENTS, kind, reading, status};
pub use share::share;

use crate::growth::OutOfMemory;

/// The first character of a value: the version of its format and of the algorithms' behaviour. Processes with different
/// versions would replay one log differently, so they do not read each other's values.
pub const FORMAT: char = 'b';

/// The error of a text that cannot be replayed. The replica must then be discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The text is not a log in this format.
    Malformed,
    /// A version with another format or other semantics wrote the text.
    UnsupportedVersion,
    /// There is not enough memory.
    OutOfMemory,
}

impl From<OutOfMemory> for ReplayError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<crate::Error> for ReplayError {
    fn from(error: crate::Error) -> Self {
        if error == OutOfMemory.into() { Self::OutOfMemory } else { Self::Malformed }
    }
}
