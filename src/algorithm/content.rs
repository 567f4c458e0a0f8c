//! The content of a bucket, packed into as few words as its `per` allows.

/// Whole hits, and a rest in units of `1 / per` of one, at a time. Tokens that a bucket owes make the hits negative,
/// never the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) at: u64,
    pub(crate) hits: i64,
    pub(crate) rest: u64,
}

/// The bits of `rest` in two words of 128 bits, where the time takes 53 and the hits with their sign 54.
const REST_BITS: u32 = 21;
/// The bits of `hits` that are in the first word, below the time.
const HIGH_BITS: u32 = 11;

impl Content {
    /// Returns whether content is packed into two words; otherwise it takes three.
    pub(crate) fn is_narrow(per: u64) -> bool {
        per <= 1 << REST_BITS
    }

    #[inline(always)]
    pub(crate) fn unpack(words: &[u64], per: u64) -> Self {
        match *words {
            [high, low, ..] if Self::is_narrow(per) => {
                let signed = (high << (64 - HIGH_BITS)) as i64 >> (REST_BITS - HIGH_BITS);
                let hits = signed | (low >> REST_BITS) as i64;
                Self { at: high >> HIGH_BITS, hits, rest: low & ((1 << REST_BITS) - 1) }
            }
            [at, hits, rest, ..] => Self { at, hits: hits as i64, rest },
            _ => Self { at: 0, hits: 0, rest: 0 },
        }
    }

    #[inline(always)]
    pub(crate) fn pack(self, words: &mut [u64], per: u64) {
        let hits = self.hits as u64;
        match words {
            [high, low, ..] if Self::is_narrow(per) => {
                *high = self.at << HIGH_BITS | hits >> (64 - REST_BITS) & ((1 << HIGH_BITS) - 1);
                *low = hits << REST_BITS | self.rest;
            }
            [at, whole, rest, ..] => (*at, *whole, *rest) = (self.at, hits, self.rest),
            _ => {}
        }
    }
}
