//! What a bucket holds, packed into as few words as its `per` allows.

use super::Packed;

/// Content at a time. Tokens that a bucket owes make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) at: u64,
    pub(crate) units: i128,
}

impl Content {
    /// How many of two words' 128 bits the time takes.
    const TIME_BITS: u32 = 53;
    /// The longest `per` for which any content (at most 2^53 hits, either way) fits the other 75 bits.
    const NARROW_PER: u64 = 1 << 21;

    /// How many words the content of a bucket takes.
    pub(crate) fn width(per: u64) -> usize {
        if per <= Self::NARROW_PER { 2 } else { 3 }
    }
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
