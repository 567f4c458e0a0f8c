//! The buffer from which JavaScript reads the result of an operation.

use tollgate::boundary::status;
use tollgate::{Decision, verdict};

/// The numbers of a decision, as integers if all of them are small, else as floats.
#[repr(C)]
#[derive(Debug)]
pub struct ResultBuffer {
    /// Count, limit, remaining, retry after (infinite for never), reset after, more after.
    pub floats: [f64; 6],
    /// The same, then the position of the policy, and the bits of the policies that denied.
    pub integers: [i32; 8],
    /// 1 if the last operation moved slots, whether it failed or not. A plain hit moves none, and does not write it.
    pub moved: i32,
    /// The address and the length of a list of integers.
    pub list: [u32; 2],
    /// The index of the handle of a new limiter, or a status, and its generation.
    pub handle: [i32; 2],
}

impl ResultBuffer {
    pub(crate) const EMPTY: Self = Self { floats: [0.0; 6], integers: [0; 8], moved: 0, list: [0; 2], handle: [0; 2] };

    /// Writes a decision and returns its status.
    #[inline(always)]
    pub(crate) fn write_decision(&mut self, decision: &Decision) -> i32 {
        let status = i32::from(verdict::of(decision)) << status::VERDICT;
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

/// Converts a number below 2^63; machines convert signed numbers in fewer steps.
#[inline(always)]
fn float(number: u64) -> f64 {
    number as i64 as f64
}
