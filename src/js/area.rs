//! Where the answer to an operation lies, laid out for JavaScript to read.

use crate::store::slots::Slots;
use crate::{Decision, Reason};

/// Bits of a status; `js/core/area.ts` knows the same.
const ALLOWED: i32 = 1;
/// The numbers are small and lie among the integers, which JavaScript holds without allocating.
const SMALL: i32 = 2;
/// Slots were freed: their keys must be forgotten.
const FREED: i32 = 4;
/// A slot was taken for the key.
const TAKEN: i32 = 8;
/// Denied for want of room.
const NO_ROOM: i32 = 16;

/// The answer, as integers where all of them are small, else as floats.
#[repr(C)]
pub(super) struct Area {
    /// Count, limit, remaining, retry after (infinite for never), reset after.
    floats: [f64; 5],
    /// The same, then the policy's position, which policies denied, and the slot that was taken.
    integers: [i32; 8],
    /// Where the numbers lie and how many there are.
    list: [u32; 2],
}

impl Area {
    pub(super) const EMPTY: Self = Self { floats: [0.0; 5], integers: [0; 8], list: [0; 2] };

    /// Where it lies in the memory.
    pub(super) fn address(&self) -> u32 {
        (&raw const *self).addr() as u32
    }

    /// Writes a decision, and answers its status.
    #[inline(always)]
    pub(super) fn decide(&mut self, decision: &Decision) -> i32 {
        let status = match decision.reason {
            Some(Reason::Full) => NO_ROOM,
            _ => i32::from(decision.allowed) * ALLOWED,
        };
        let Decision { count, limit, remaining, retry_after, reset_after, .. } = *decision;
        let [.., policy, violated, _slot] = &mut self.integers;
        (*policy, *violated) = (decision.policy as i32, decision.violated.0 as i32);
        // Never is as far from small as can be.
        let wait = retry_after.unwrap_or(u64::MAX);
        if (count | limit | remaining | wait | reset_after) >> 31 == 0 {
            let numbers = [count as i32, limit as i32, remaining as i32, wait as i32, reset_after as i32];
            self.integers[..5].copy_from_slice(&numbers);
            return status | SMALL;
        }
        let wait = retry_after.map_or(f64::INFINITY, float);
        self.floats = [float(count), float(limit), float(remaining), wait, float(reset_after)];
        status
    }

    /// Writes a single number.
    pub(super) fn number(&mut self, number: u64) -> i32 {
        self.floats[0] = float(number);
        0
    }

    /// Says where the numbers lie.
    pub(super) fn point_to(&mut self, address: usize, count: usize) {
        self.list = [address as u32, count as u32];
    }

    /// Whether slots were freed, and one was taken for the key, which is written.
    pub(super) fn moved(&mut self, slots: &mut Slots) -> i32 {
        let mut status = if slots.freed.is_empty() { 0 } else { FREED };
        if let Some(slot) = slots.taken.take() {
            self.integers[7] = slot as i32;
            status |= TAKEN;
        }
        status
    }
}

/// A number as JavaScript has it. None is so large that a sign would matter, and signed ones take fewer steps.
#[inline(always)]
fn float(number: u64) -> f64 {
    number as i64 as f64
}
