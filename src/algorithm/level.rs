//! The state of a bucket, packed into as few words as its `per` allows.

use crate::number::{MAX, in_range};

/// How much of a bucket is used at a time: whole hits, and a rest in units of `1 / per` of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) at: u64,
    pub(crate) hits: u64,
    pub(crate) rest: u64,
    /// The numbers of the last charge.
    pub(crate) last: LastCharge,
}

/// The rate of a bucket and its lead: how far the clock may be behind a state. In one word; both may be 0 if nothing is used.
///
/// The lead is the time that it takes to empty the whole bucket, rounded up to six significant bits: an exponent and the five
/// bits after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LastCharge(u64);

const RATE_BITS: u32 = 53;
const LEAD_BITS: u32 = 5;

impl LastCharge {
    #[inline(never)]
    pub(crate) fn new(rate: u64, period: u64) -> Self {
        let period = period.min(MAX);
        let exponent = (u64::BITS - period.leading_zeros()).saturating_sub(LEAD_BITS + 1);
        // If it is rounded up to a power of two, the sum carries into the exponent.
        let packed = period.div_ceil(1 << exponent) + (u64::from(exponent) << LEAD_BITS);
        Self(packed << RATE_BITS | rate)
    }

    /// Returns the numbers of a state; `None` if one is out of range.
    pub(crate) fn from_numbers([rate, lead]: [i64; 2]) -> Option<Self> {
        let [_, longest] = Self::new(0, MAX).numbers();
        let is_valid = in_range(rate) && (0..=longest as i64).contains(&lead);
        is_valid.then_some(Self((lead as u64) << RATE_BITS | rate as u64))
    }

    /// Returns the rate, and the lead as it is packed.
    pub(crate) fn numbers(self) -> [u64; 2] {
        [self.rate(), self.0 >> RATE_BITS]
    }

    #[inline(always)]
    pub(crate) fn rate(self) -> u64 {
        self.0 & MAX
    }

    /// Returns whether a state is further ahead than the lead.
    #[cold]
    #[inline(never)]
    fn is_exceeded_by(self, ahead: u64) -> bool {
        ahead > self.lead()
    }

    pub(crate) fn lead(self) -> u64 {
        let packed = self.0 >> RATE_BITS;
        let exponent = (packed >> LEAD_BITS).saturating_sub(1);
        (packed - (exponent << LEAD_BITS)) << exponent
    }

    /// Returns these numbers with the lead of others if that is longer.
    #[cold]
    #[inline(never)]
    pub(crate) fn leading(self, other: Self) -> Self {
        // The lead is in the high bits.
        Self(self.0.max(other.0) & !MAX | self.rate())
    }
}

/// The bits of `rest` in two words of 128 bits, where the time and the hits take 53 each.
const REST_BITS: u32 = 22;
/// The bits of `hits` that are in the first word, below the time.
const HIGH_BITS: u32 = 11;
const LOW_BITS: u32 = 64 - REST_BITS;

impl Level {
    /// Returns the number of words that a level takes.
    pub(crate) fn width(per: u64) -> usize {
        if Self::is_narrow(per) { 3 } else { 4 }
    }

    fn is_narrow(per: u64) -> bool {
        per <= 1 << REST_BITS
    }

    /// Returns whether nothing is used.
    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.hits | self.rest == 0
    }

    /// Returns whether the time is ahead of the clock by more than the lead.
    #[inline(always)]
    pub(crate) fn is_far_ahead(self, now: u64) -> bool {
        self.at > now && self.last.is_exceeded_by(self.at - now)
    }

    #[inline(always)]
    pub(crate) fn unpack(words: &[u64], per: u64) -> Self {
        match *words {
            [high, low, last, ..] if Self::is_narrow(per) => {
                let hits = (high & ((1 << HIGH_BITS) - 1)) << LOW_BITS | low >> REST_BITS;
                Self { at: high >> HIGH_BITS, hits, rest: low & ((1 << REST_BITS) - 1), last: LastCharge(last) }
            }
            [at, hits, rest, last, ..] => Self { at, hits, rest, last: LastCharge(last) },
            _ => Self::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn pack(self, words: &mut [u64], per: u64) {
        match words {
            [high, low, last, ..] if Self::is_narrow(per) => {
                *high = self.at << HIGH_BITS | self.hits >> LOW_BITS;
                *low = self.hits << REST_BITS | self.rest;
                *last = self.last.0;
            }
            [at, hits, rest, last, ..] => (*at, *hits, *rest, *last) = (self.at, self.hits, self.rest, self.last.0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_a_period_rounded_up_by_at_most_a_thirty_second() {
        let mut longest = 0;
        for period in (0..10_000).chain((1..54).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let (period, charge) = (period.min(MAX), LastCharge::new(7, period));
            assert!((period..=period + period / 32).contains(&charge.lead()), "{period}");
            let [rate, lead] = charge.numbers().map(|number| number as i64);
            assert_eq!((LastCharge::from_numbers([rate, lead]), rate), (Some(charge), 7));
            longest = lead.max(longest);
        }
        assert_eq!(LastCharge::from_numbers([7, longest + 1]), None);
        assert_eq!(LastCharge::new(MAX, MAX).rate(), MAX);
        let [short, long] = [100, 200].map(|period| LastCharge::new(7, period));
        assert_eq!((short.leading(long), long.leading(short)), (long, long));
    }

    #[test]
    fn only_a_long_per_takes_a_fourth_word() {
        assert_eq!([1, 1_000, 1 << REST_BITS, (1 << REST_BITS) + 1, 86_400_000].map(Level::width), [3, 3, 3, 4, 4]);
    }
}
