//! Two counters that stand in for a log: this window's, and the last one's by how much of it still overlaps.
//!
//! Allowed when `previous * (scale - elapsed) + (current + cost) * scale <= limit * scale`.
//!
//! Three numbers a key whatever the limit. It takes the last window's hits to have been spread
//! evenly: had they all come at its very end, then `elapsed` into this one a key may have made up
//! to `limit * (1 + elapsed / scale)` hits within one `scale`, which is less than twice the limit
//! and never at once. Had they come at its start, it denies some that a log would allow.

use super::window::in_range;
use super::{Algorithm, Packed};
use crate::number::{self, divide, divide_up, product};
use alloc::vec::Vec;

/// The numbers of a `sliding_counter` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingCounter {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
}

/// The counts of a window of the clock and of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    start: u64,
    previous: u64,
    current: u64,
}

/// The counters, and what they come to.
pub(crate) struct Reading {
    counters: Counters,
    /// What counts now, in `1 / scale` of a hit.
    weight: u128,
}

impl SlidingCounter {
    #[inline]
    fn start_of(&self, now: u64) -> u64 {
        now - now % self.scale
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn reading(&self, counters: Counters, elapsed: u64) -> Reading {
        let Counters { previous, current, .. } = counters;
        let weight = product(previous, self.scale - elapsed) + product(current, self.scale);
        Reading { counters, weight }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn capacity(&self) -> u128 {
        product(self.limit, self.scale)
    }
}

impl Algorithm for SlidingCounter {
    type State = Counters;
    type View = Reading;

    fn name(&self) -> &'static str {
        "sliding_counter"
    }

    fn scale(&self) -> u64 {
        self.scale
    }

    fn with_scale(&self, scale: u64) -> Self {
        Self { scale, ..*self }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.scale
    }

    fn fresh(&self, now: u64) -> Counters {
        Counters { start: self.start_of(now), previous: 0, current: 0 }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Counters) -> u64 {
        state.start
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn view(&self, state: &Counters, now: u64) -> Reading {
        // Most hits fall into the stored window: no division for them.
        if now >= state.start && now - state.start < self.scale {
            return self.reading(*state, now - state.start);
        }
        let start = self.start_of(now);
        let counters = if state.start + self.scale == start {
            Counters { start, previous: state.current, current: 0 }
        } else if state.start < start {
            Counters { start, previous: 0, current: 0 }
        } else if self.is_ahead(state, now) || (state.previous, state.current) == (0, 0) {
            // Counters of nothing hold no time either, so that they are the same stored or not.
            Counters { start, ..*state }
        } else {
            *state
        };
        self.reading(counters, now.saturating_sub(counters.start))
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Reading, cost: u64) -> bool {
        view.weight + product(cost, self.scale) <= self.capacity()
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Reading, cost: u64, _now: u64) {
        let current = number::add(view.counters.current, cost);
        view.weight += product(current - view.counters.current, self.scale);
        view.counters.current = current;
    }

    fn assign(&self, view: &mut Reading, count: u64, _now: u64) {
        view.counters = Counters { previous: 0, current: count, ..view.counters };
        view.weight = product(count, self.scale);
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Counters, view: Reading) {
        *state = view.counters;
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Reading) -> u64 {
        divide_up(view.weight, self.scale).min(number::MAX)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Reading) -> u64 {
        // The limit is whole, so what is left beside the count rounded up is what would be left rounded down.
        self.limit.saturating_sub(self.count(view))
    }

    fn fits_at(&self, _state: &Counters, view: &Reading, cost: u64) -> u64 {
        let Counters { start, previous, current } = view.counters;
        // The hit waits for the older of two counts to fade: the previous one if there is room beside the current.
        let (start, fading, beside) = match self.limit.checked_sub(current + cost) {
            Some(room) => (start, previous, room),
            None => (start + self.scale, current, self.limit - cost),
        };
        let overlap = divide(product(beside, self.scale), fading.max(1)).min(self.scale);
        start + self.scale - overlap
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Reading) -> u64 {
        match view.counters {
            Counters { previous: 0, current: 0, .. } => 0,
            Counters { start, current: 0, .. } => start + self.scale,
            Counters { start, .. } => start + 2 * self.scale,
        }
    }

    fn export(&self, state: &Counters, numbers: &mut Vec<i64>) {
        numbers.extend([state.start as i64, state.previous as i64, state.current as i64]);
    }

    fn import(&self, numbers: &[i64]) -> Option<Counters> {
        let &[start, previous, current] = numbers else { return None };
        let counters = Counters { start: in_range(start)?, previous: in_range(previous)?, current: in_range(current)? };
        counters.start.is_multiple_of(self.scale).then_some(counters)
    }

    fn convert(&self, state: Counters, made_by: &Self, now: u64) -> Counters {
        // When in the old windows the hits came is not known: what counts of them goes to now's window.
        let current = made_by.count(&made_by.view(&state, now));
        Counters { current, ..self.fresh(now) }
    }

    fn width(&self) -> usize {
        3
    }
}

impl Packed for Counters {
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unpack(words: &[u64]) -> Self {
        match *words {
            [start, previous, current, ..] => Self { start, previous, current },
            _ => Self { start: 0, previous: 0, current: 0 },
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn pack(self, words: &mut [u64]) {
        if let [start, previous, current, ..] = words {
            *start = self.start;
            *previous = self.previous;
            *current = self.current;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::Free;
    use crate::algorithm::Act;

    const TEN: SlidingCounter = SlidingCounter { limit: 10, scale: 1_000 };

    #[test]
    fn the_last_window_fades_as_this_one_passes() {
        let mut state = TEN.fresh(0);
        assert!(TEN.act_on(&mut state, Act::Hit(10, Free), 999).allowed);
        let denied = TEN.act_on(&mut state, Act::Hit(1, Free), 1_000);
        assert_eq!((denied.count, denied.remaining, denied.retry_after), (10, 0, Some(100)));
        assert!(!TEN.act_on(&mut state, Act::Hit(1, Free), 1_099).allowed);
        assert!(TEN.act_on(&mut state, Act::Hit(1, Free), 1_100).allowed);
        assert_eq!(TEN.act_on(&mut state.clone(), Act::Hit(5, Free), 1_500).retry_after, Some(100));
    }

    #[test]
    fn a_hit_as_large_as_the_limit_waits_for_both_windows() {
        let mut state = TEN.fresh(0);
        TEN.act_on(&mut state, Act::Hit(1, Free), 0);
        assert_eq!(TEN.act_on(&mut state, Act::Hit(10, Free), 0).retry_after, Some(2_000));
        assert_eq!(TEN.ends_at(&state, 0), 2_000);
    }

    #[test]
    fn a_state_lives_to_the_end_of_the_next_window() {
        let mut state = TEN.fresh(0);
        TEN.act_on(&mut state, Act::Set(7), 500);
        assert_eq!(TEN.act_on(&mut state.clone(), Act::Hit(0, Free), 1_999).count, 1);
        assert_eq!(TEN.act_on(&mut state.clone(), Act::Hit(0, Free), 2_000).count, 0);
    }
}
