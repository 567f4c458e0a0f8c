//! One counter per key, whose window starts at the key's first hit and ends `scale` later.
//!
//! Active while `start + scale > now`; allowed while `count + cost <= limit`.
//!
//! As cheap as `fix_window` and without an edge common to all keys, so that they do not all come
//! back at once; a single key may still spend up to twice its limit around the end of its window.

use super::Algorithm;
use super::window::Window;
use crate::number;
use alloc::vec::Vec;

/// The numbers of a `fix_window_per_key` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixWindowPerKey {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
}

impl Algorithm for FixWindowPerKey {
    type State = Window;
    /// No window until something is counted.
    type View = Option<Window>;

    fn name(&self) -> &'static str {
        "fix_window_per_key"
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

    #[inline]
    fn view(&self, state: &Window, now: u64) -> Option<Window> {
        let end = state.started()? + self.scale;
        if self.is_ahead(state, now) {
            Some(Window { start: now, count: state.count })
        } else {
            (end > now).then_some(*state)
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Option<Window>, cost: u64) -> bool {
        self.count(view) + cost <= self.limit
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Option<Window>, cost: u64, now: u64) {
        let window = view.get_or_insert(Window { start: now, count: 0 });
        window.count = number::add(window.count, cost);
    }

    fn assign(&self, view: &mut Option<Window>, count: u64, now: u64) {
        *view = Some(Window { start: now, count });
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Window, view: Option<Window>) {
        if let Some(window) = view {
            *state = window;
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Option<Window>) -> u64 {
        view.map_or(0, |window| window.count)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Option<Window>) -> u64 {
        self.limit.saturating_sub(self.count(view))
    }

    fn fits_at(&self, _state: &Window, view: &Option<Window>, _cost: u64) -> u64 {
        self.unused_at(view)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Option<Window>) -> u64 {
        view.map_or(0, |window| window.start + self.scale)
    }

    fn export(&self, state: &Window, numbers: &mut Vec<i64>) {
        state.export(numbers);
    }

    fn import(&self, numbers: &[i64]) -> Option<Window> {
        Window::import(numbers)
    }

    fn convert(&self, state: Window, made_by: &Self, now: u64) -> Window {
        // When in the old window the hits came is not known: the whole count starts a window now.
        match made_by.view(&state, now) {
            Some(window) => Window { start: now, count: window.count },
            None => Window::NONE,
        }
    }

    fn width(&self) -> usize {
        Window::WIDTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::Count;
    use crate::algorithm::Act;

    const MINUTE: FixWindowPerKey = FixWindowPerKey { limit: 2, scale: 60_000 };

    #[test]
    fn a_window_starts_with_the_first_hit_and_is_over_at_its_end_exactly() {
        let mut state = MINUTE.fresh(90_000);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(2, Count), 90_000).reset_after, 60_000);
        assert!(!MINUTE.act_on(&mut state, Act::Hit(1, Count), 149_999).allowed);
        assert!(MINUTE.act_on(&mut state, Act::Hit(1, Count), 150_000).allowed);
    }

    #[test]
    fn the_first_hit_at_the_epoch_is_a_first_hit() {
        let mut state = MINUTE.fresh(0);
        assert_eq!(MINUTE.act_on(&mut state, Act::Hit(1, Count), 0).count, 1);
        assert_eq!(MINUTE.ends_at(&state, 0), 60_000);
    }

    #[test]
    fn setting_to_nothing_starts_a_window_too() {
        let mut state = MINUTE.fresh(1_000);
        assert_eq!(MINUTE.act_on(&mut state, Act::Set(0), 1_000).count, 0);
        assert_eq!(MINUTE.ends_at(&state, 1_000), 61_000);
    }
}
