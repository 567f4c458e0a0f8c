//! The buffer from which JavaScript reads the result of an operation.

use tollgate::boundary::{Failure, SlotLimiter};
use tollgate::{Decision, Reason};

/// Bits and values of a status, the result of an operation.
pub mod status {
    /// The hit was allowed.
    pub const ALLOWED: i32 = 1;
    /// The numbers are integers of 31 bits, in `integers`.
    pub const SMALL: i32 = 2;
    /// Slots were freed, or one was taken for the key: the owner of the keys must read `moves`.
    pub const MOVED: i32 = 4;
    /// Denied because the limiter is full.
    pub const FULL: i32 = 8;

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
    /// The policy at a position counts reservations alone: this minus the position.
    pub const RESERVE_ONLY: i32 = -50;
    /// The policy or state at a position is invalid: this minus the position. The position after the last is that of a
    /// reservation.
    pub const AT: i32 = -100;
}

/// Returns the status of an operation that failed.
#[cold]
pub(crate) fn status_of(failure: Failure) -> i32 {
    match failure {
        Failure::OutOfMemory => status::OUT_OF_MEMORY,
        Failure::Full => status::NO_ROOM,
        Failure::Amount => status::INVALID_AMOUNT,
        Failure::Mismatch => status::MISMATCH,
        Failure::ReserveOnly(position) => status::RESERVE_ONLY - position as i32,
        Failure::At(position) => status::AT - position as i32,
    }
}

/// The numbers of a decision, as integers if all of them are small, else as floats.
#[repr(C)]
#[derive(Debug)]
pub struct ResultBuffer {
    /// Count, limit, remaining, retry after (infinite for never), reset after, more after.
    pub floats: [f64; 6],
    /// The same, then the position of the policy, and the bits of the policies that denied.
    pub integers: [i32; 8],
    /// The address and the length of a list of integers.
    pub list: [u32; 2],
    /// The index of the handle of a new limiter, or a status, and its generation.
    pub handle: [i32; 2],
}

impl ResultBuffer {
    pub(crate) const EMPTY: Self = Self { floats: [0.0; 6], integers: [0; 8], list: [0; 2], handle: [0; 2] };

    /// Writes a decision and returns its status.
    #[inline(always)]
    pub(crate) fn write_decision(&mut self, decision: &Decision) -> i32 {
        let status = match decision.reason {
            Some(Reason::Full) => status::FULL,
            _ => i32::from(decision.allowed) * status::ALLOWED,
        };
        let Decision { count, limit, remaining, retry_after, reset_after, more_after, .. } = *decision;
        let [.., policy, violated] = &mut self.integers;
        (*policy, *violated) = (decision.policy as i32, decision.violated.bits() as i32);
        // "Never" must not count as small.
        let wait = retry_after.unwrap_or(u64::MAX);
        if (count | limit | remaining | wait | reset_after | more_after) >> 31 == 0 {
            let numbers = [count, limit, remaining, wait, reset_after, more_after].map(|number| number as i32);
            self.integers[..6].copy_from_slice(&numbers);
            return status | status::SMALL;
        }
        let wait = retry_after.map_or(f64::INFINITY, float);
        self.floats = [float(count), float(limit), float(remaining), wait, float(reset_after), float(more_after)];
        status
    }

    /// Writes the address and the length of a list.
    pub(crate) fn write_list(&mut self, numbers: &[i64]) {
        self.list = [numbers.as_ptr().expose_provenance() as u32, numbers.len() as u32];
    }
}

/// Returns the status bit for slots that were freed or taken.
#[inline(always)]
pub(crate) fn moved(limiter: &SlotLimiter) -> i32 {
    if limiter.has_moved() { status::MOVED } else { 0 }
}

/// Converts a number below 2^63; machines convert signed numbers in fewer steps.
#[inline(always)]
fn float(number: u64) -> f64 {
    number as i64 as f64
}
