//! One counter per window of the clock: all keys' windows begin and end together.
//!
//! `window = floor(now / scale)`; allowed while `count + cost <= limit`.
//!
//! Two numbers a key and the cheapest of all, but a key may spend its limit at the end of one
//! window and again at the start of the next: up to twice the limit within one `scale`.

use super::Algorithm;
use super::window::Window;
use crate::number;
use alloc::vec::Vec;

/// The numbers of a `fix_window` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixWindow {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
}

impl FixWindow {
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn start_of(&self, now: u64) -> u64 {
        now - now % self.scale
    }
}

impl Algorithm for FixWindow {
    type State = Window;
    type View = Window;

    fn name(&self) -> &'static str {
        "fix_window"
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

    fn fresh(&self, _now: u64) -> Window {
        Window::NONE
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Window) -> u64 {
        state.started().unwrap_or(0)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn view(&self, state: &Window, now: u64) -> Window {
        // Most hits fall into the stored window: no division for them.
        if now >= state.start && now - state.start < self.scale {
            return *state;
        }
        let start = self.start_of(now);
        match state.started() {
            Some(stored) if stored > start && !self.is_ahead(state, now) => *state,
            Some(stored) if stored > start => Window { start, count: state.count },
            _ => Window { start, count: 0 },
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Window, cost: u64) -> bool {
        // Not the sum that saturates: that one would fit into the largest limit for ever.
        view.count + cost <= self.limit
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Window, cost: u64, _now: u64) {
        view.count = number::add(view.count, cost);
    }

    fn assign(&self, view: &mut Window, count: u64, _now: u64) {
        view.count = count;
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Window, view: Window) {
        *state = view;
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Window) -> u64 {
        view.count
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Window) -> u64 {
        self.limit.saturating_sub(view.count)
    }

    fn fits_at(&self, _state: &Window, view: &Window, _cost: u64) -> u64 {
        view.start + self.scale
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Window) -> u64 {
        if view.count == 0 { 0 } else { view.start + self.scale }
    }

    fn ends_at(&self, state: &Window, now: u64) -> u64 {
        match state.started() {
            Some(_) if self.is_ahead(state, now) => self.start_of(now) + self.scale,
            Some(start) => start + self.scale,
            None => 0,
        }
    }

    fn export(&self, state: &Window, numbers: &mut Vec<i64>) {
        state.export(numbers);
    }

    fn import(&self, numbers: &[i64]) -> Option<Window> {
        Window::import(numbers).filter(|window| self.latest(window).is_multiple_of(self.scale))
    }

    fn convert(&self, state: Window, made_by: &Self, now: u64) -> Window {
        // When in the old window the hits came is not known: the whole count goes to now's window.
        if made_by.ends_at(&state, now) <= now {
            return Window::NONE;
        }
        Window { start: self.start_of(now), count: made_by.view(&state, now).count }
    }

    fn width(&self) -> usize {
        Window::WIDTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::{Count, Free};
    use crate::algorithm::Act;
    use crate::number::MAX;

    const MINUTE: FixWindow = FixWindow { limit: 2, scale: 60_000 };

    #[test]
    fn the_largest_limit_is_a_limit() {
        let largest = FixWindow { limit: MAX, scale: 60_000 };
        let mut state = largest.fresh(0);
        assert!(largest.act_on(&mut state, Act::Hit(MAX, Free), 0).allowed);
        assert!(!largest.act_on(&mut state, Act::Hit(1, Free), 0).allowed);
    }

    #[test]
    fn a_window_ends_at_a_multiple_of_its_scale() {
        let mut state = MINUTE.fresh(90_000);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(2, Count), 90_000).reset_after, 30_000);
        assert!(!MINUTE.act_on(&mut state, Act::Hit(1, Count), 119_999).allowed);
        assert!(MINUTE.act_on(&mut state, Act::Hit(1, Count), 120_000).allowed);
    }

    #[test]
    fn a_denied_hit_counts_unless_it_is_free() {
        let mut state = MINUTE.fresh(0);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(3, Free), 0).count, 0);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(3, Count), 0).count, 3);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(3, Count), 0).retry_after, None);
    }

    #[test]
    fn a_clock_one_window_behind_still_counts_in_the_stored_window() {
        let mut state = MINUTE.fresh(60_000);
        MINUTE.act_on(&mut state, Act::Hit(2, Count), 60_000);
        let decision = MINUTE.act_on(&mut state, Act::Hit(1, Count), 1);
        assert_eq!((decision.allowed, decision.retry_after), (false, Some(119_999)));
    }

    #[test]
    fn a_clock_further_behind_takes_the_count_along_and_frees_the_key_in_a_window() {
        let mut state = MINUTE.fresh(6_000_000);
        MINUTE.act_on(&mut state, Act::Hit(2, Free), 6_000_000);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(1, Free), 90_000).retry_after, Some(30_000));
        assert!(MINUTE.act_on(&mut state, Act::Hit(1, Free), 120_000).allowed);
    }
}
