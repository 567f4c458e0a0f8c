//! Logs of operations, replayed: for stores that only order and stamp, such as Redis.
//!
//! A key's value is a text: a base (states, and the tokens of recent entries), then entries, each with the time that the
//! store gave it. Every process replays the same entries in the same order through the core, and so comes to the same
//! decisions; the store itself knows no algorithm. `docs/redis.md` has the format.
//!
//! It serves the bindings of this workspace; it is not part of the public API and may change in any version.

mod base;
mod by_position;
mod entry;
mod policy_set;
mod replica;
mod replicas;
mod result;
mod share;
mod text;

pub use policy_set::Hash;
pub use replicas::{Replayed, Replicas};
pub use result::{NUMBERS_PER_RESULT, kind, reading, settlement, status};
pub use share::share;

use crate::memory::OutOfMemory;

/// The version of what the algorithms do. Two processes with different versions would replay one log differently; it is
/// a part of every fingerprint, so that they see the difference.
pub const SEMANTICS: u32 = 1;

/// The first character of a value: the version of its format.
pub const FORMAT: char = 'a';

/// Why a text was not replayed. The replica is then of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not a log in this format.
    Malformed,
    /// It was written by a version with another format or other semantics.
    Version,
    /// There is no memory.
    OutOfMemory,
}

impl From<OutOfMemory> for Unreadable {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<crate::Error> for Unreadable {
    fn from(error: crate::Error) -> Self {
        if error == OutOfMemory.into() { Self::OutOfMemory } else { Self::Malformed }
    }
}
