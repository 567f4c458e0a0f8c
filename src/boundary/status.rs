//! Bits and values of a status, the result of an operation that crosses as a number.

use super::Failure;

/// The numbers are integers of 31 bits, in `integers`.
pub const SMALL: i32 = 1;
/// Slots were freed, or one was taken for the key: the owner of the keys must read `moves`. An error has no such bit: it may
/// have moved slots.
pub const MOVED: i32 = 2;
/// How many bits there are before the [verdict](crate::verdict) on a hit.
pub const VERDICT: i32 = 2;

/// The cost is invalid.
pub const INVALID_COST: i32 = -1;
/// The time is invalid.
pub const INVALID_TIME: i32 = -2;
/// The handle is stale, wrong or dropped.
pub const INVALID_HANDLE: i32 = -3;
/// There is no memory left.
pub const OUT_OF_MEMORY: i32 = -4;
/// The numbers of this call do not match the limiter's policies.
pub const MISMATCH: i32 = -5;
/// The limiter is full and denies new keys.
pub const NO_ROOM: i32 = -6;
/// The cost or count of a cold operation is invalid.
pub const INVALID_AMOUNT: i32 = -7;
/// Half of the keys that the limiter holds have exceptions.
pub const MANY_EXCEPTIONS: i32 = -8;
/// The key has as many rows as a key outside the process may have.
pub const MANY_ROWS: i32 = -9;
/// The policy at a position counts reservations alone, or denials: this minus the position.
pub const UNCOUNTABLE: i32 = -50;
/// The policy or state at a position is invalid: this minus the position. The position after the last is that of a
/// reservation.
pub const AT: i32 = -100;

/// Returns the status of an operation that failed.
#[cold]
pub fn status_of(failure: Failure) -> i32 {
    match failure {
        Failure::OutOfMemory => OUT_OF_MEMORY,
        Failure::Full => NO_ROOM,
        Failure::ManyExceptions => MANY_EXCEPTIONS,
        Failure::ManyRows => MANY_ROWS,
        Failure::Amount => INVALID_AMOUNT,
        Failure::Mismatch => MISMATCH,
        Failure::Uncountable(position) => UNCOUNTABLE - position as i32,
        Failure::At(position) => AT - position as i32,
    }
}
