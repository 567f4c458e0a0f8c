//! The counter of one window, which both fixed windows keep.

use super::Packed;
use crate::number::MAX;
use alloc::vec::Vec;

/// A count, and when its window started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) count: u64,
}

impl Window {
    pub(crate) const WIDTH: usize = 2;

    /// The window of a key that has none yet: its start is no time.
    pub(crate) const NONE: Self = Self { start: u64::MAX, count: 0 };

    /// When the window started, if there is one.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn started(self) -> Option<u64> {
        (self.start != Self::NONE.start).then_some(self.start)
    }

    pub(crate) fn export(self, numbers: &mut Vec<i64>) {
        if let Some(start) = self.started() {
            numbers.extend([start as i64, self.count as i64]);
        }
    }

    pub(crate) fn import(numbers: &[i64]) -> Option<Self> {
        match *numbers {
            [] => Some(Self::NONE),
            [start, count] => Some(Self { start: in_range(start)?, count: in_range(count)? }),
            _ => None,
        }
    }
}

/// A number that a count or a time may be.
pub(crate) fn in_range(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|&number| number <= MAX)
}

impl Packed for Window {
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unpack(words: &[u64]) -> Self {
        match *words {
            [start, count, ..] => Self { start, count },
            _ => Self::NONE,
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn pack(self, words: &mut [u64]) {
        if let [start, count, ..] = words {
            *start = self.start;
            *count = self.count;
        }
    }
}
