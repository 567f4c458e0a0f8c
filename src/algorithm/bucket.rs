//! What both buckets share: content in units of `1 / per` of a hit, so that a millisecond moves `rate` units.
//!
//! The unit does not depend on the rate, so a rate may change under a state, and there is nothing
//! to round: a bucket never drifts.

use super::Packed;
use super::window::in_range;
use crate::number::{MAX, divide, divide_down, divide_up, product};
use alloc::vec::Vec;

/// The numbers of a bucket policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) capacity: u64,
    pub(crate) rate: u64,
    pub(crate) per: u64,
    /// How long it takes to fill or empty the whole bucket, rounded up.
    pub(crate) period: u64,
    /// The capacity in units.
    pub(crate) full: i128,
    /// Whether a key never used starts with no more than the capacity. Else it has as many tokens as any capacity
    /// can be, so that a call which brings a larger one starts full as well.
    pub(crate) bounded: bool,
}

/// Content at a time. Tokens that a bucket owes make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) at: u64,
    pub(crate) units: i128,
}

impl Bucket {
    pub(crate) fn new(capacity: u64, rate: u64, per: u64) -> Self {
        let full = product(capacity, per);
        Self { capacity, rate, per, period: divide_up(full, rate), full: full as i128, bounded: false }
    }

    /// What `cost` weighs, in units.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn units(&self, cost: u64) -> i128 {
        product(cost, self.per) as i128
    }

    /// The largest content there can be, in units: accumulators saturate here.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn most(&self) -> i128 {
        self.units(MAX)
    }

    /// What flows in `milliseconds`, in units.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn flow(&self, milliseconds: u64) -> i128 {
        product(milliseconds, self.rate) as i128
    }

    /// How long `units` take to flow, rounded up: at most what every clock's range can take.
    #[inline]
    pub(crate) fn time_for(&self, units: i128) -> u64 {
        if units < 0 { 0 } else { divide_up(units as u128, self.rate).min(MAX) }
    }

    /// The time that counts for a state: the clock's, or the state's own while the clock is a little behind.
    ///
    /// An `unused` bucket holds no time of its own, so that it is the same stored or not.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn flowed(&self, state: &Content, now: u64, unused: bool) -> (u64, i128) {
        if now >= state.at {
            (now, self.flow(now - state.at))
        } else if unused || state.at > now + self.period {
            (now, 0)
        } else {
            (state.at, 0)
        }
    }

    /// Content in whole hits and a rest that is never negative, so that each number fits JSON.
    pub(crate) fn export(&self, state: &Content, numbers: &mut Vec<i64>) {
        let (whole, rest) = divide_down(state.units, self.per);
        numbers.extend([state.at as i64, whole, rest as i64]);
    }

    pub(crate) fn import(&self, numbers: &[i64]) -> Option<Content> {
        let &[at, whole, rest] = numbers else { return None };
        let (at, rest) = (in_range(at)?, in_range(rest)?);
        let units = i128::from(whole) * i128::from(self.per) + i128::from(rest);
        (rest < self.per && units.abs() <= self.most()).then_some(Content { at, units })
    }

    /// `units` of this bucket in the units of one with another `per`, rounded down.
    pub(crate) fn rescaled(&self, units: i128, per: u64) -> i128 {
        let (whole, rest) = divide_down(units, self.per);
        i128::from(whole) * i128::from(per) + i128::from(divide(product(rest, per), self.per))
    }

    /// The numbers by which content takes longest to flow away.
    pub(crate) fn widest(&self, call: &Self) -> Self {
        let widest = Self::new(self.capacity.max(call.capacity), self.rate.min(call.rate), self.per);
        // No one checked that these numbers go together.
        Self { period: widest.period.min(MAX), ..widest }
    }

    pub(crate) fn width(&self) -> usize {
        if self.per <= Content::NARROW_PER { 2 } else { 3 }
    }
}

impl Content {
    /// How many of two words' 128 bits the time takes.
    const TIME_BITS: u32 = 53;
    /// The longest `per` for which any content (at most 2^53 hits, either way) fits the other 75 bits.
    const NARROW_PER: u64 = 1 << 21;
}

impl Packed for Content {
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unpack(words: &[u64]) -> Self {
        match *words {
            [high, low] => {
                let both = u128::from(high) << 64 | u128::from(low);
                let units = (both << Self::TIME_BITS) as i128 >> Self::TIME_BITS;
                Self { at: high >> (64 - Self::TIME_BITS), units }
            }
            [at, high, low, ..] => Self { at, units: (u128::from(high) << 64 | u128::from(low)) as i128 },
            _ => Self { at: 0, units: 0 },
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn pack(self, words: &mut [u64]) {
        let units = self.units as u128;
        match words {
            [high, low] => {
                let below_time = (units >> 64) as u64 & ((1 << (64 - Self::TIME_BITS)) - 1);
                *high = self.at << (64 - Self::TIME_BITS) | below_time;
                *low = units as u64;
            }
            [at, high, low, ..] => {
                *at = self.at;
                *high = (units >> 64) as u64;
                *low = units as u64;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_survive_packing() {
        for per in [1, 1_000, Content::NARROW_PER, Content::NARROW_PER + 1, MAX] {
            let bucket = Bucket::new(MAX, MAX, per);
            for at in [0, 1, 1_767_227_321_853, MAX] {
                for units in [0, 1, -1, bucket.full, bucket.most(), -bucket.most()] {
                    let state = Content { at, units };
                    let mut words = vec![0; bucket.width()];
                    state.pack(&mut words);
                    assert_eq!(Content::unpack(&words), state, "per {per}");
                    let mut numbers = Vec::new();
                    bucket.export(&state, &mut numbers);
                    assert_eq!(bucket.import(&numbers), Some(state), "per {per}");
                }
            }
        }
    }
}
