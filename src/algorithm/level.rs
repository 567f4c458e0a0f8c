//! The state of a bucket, packed into as few words as its `per` allows.

/// How much of a bucket is used at a time: whole hits, and a rest in units of `1 / per` of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) at: u64,
    pub(crate) hits: u64,
    pub(crate) rest: u64,
    /// The rate of the last charge; may be 0 if nothing is used.
    pub(crate) rate: u64,
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

    #[inline(always)]
    pub(crate) fn unpack(words: &[u64], per: u64) -> Self {
        match *words {
            [high, low, rate, ..] if Self::is_narrow(per) => {
                let hits = (high & ((1 << HIGH_BITS) - 1)) << LOW_BITS | low >> REST_BITS;
                Self { at: high >> HIGH_BITS, hits, rest: low & ((1 << REST_BITS) - 1), rate }
            }
            [at, hits, rest, rate, ..] => Self { at, hits, rest, rate },
            _ => Self::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn pack(self, words: &mut [u64], per: u64) {
        match words {
            [high, low, rate, ..] if Self::is_narrow(per) => {
                *high = self.at << HIGH_BITS | self.hits >> LOW_BITS;
                *low = self.hits << REST_BITS | self.rest;
                *rate = self.rate;
            }
            [at, hits, rest, rate, ..] => (*at, *hits, *rest, *rate) = (self.at, self.hits, self.rest, self.rate),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_per_takes_a_fourth_word() {
        assert_eq!([1, 1_000, 1 << REST_BITS, (1 << REST_BITS) + 1, 86_400_000].map(Level::width), [3, 3, 3, 4, 4]);
    }
}
