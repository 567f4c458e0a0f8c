//! Counters of windows of time.
//!
//! - `fix_window`: one counter per window of the clock, so that all keys' windows begin and end
//!   together. Allowed while `count + cost <= limit` in the window `floor(now / scale)`, or in the
//!   day, week or month of the calendar.
//! - `fix_window_per_key`: the same, in a window that starts at the key's first hit, so that keys
//!   do not all come back at once. It is over when `start + scale <= now`.
//! - `sliding_counter`: two counters that stand in for a log: this window's, and the last one's by
//!   how much of it still overlaps. Allowed when
//!   `previous * (scale - elapsed) + (current + cost) * scale <= limit * scale`.
//!
//! Two or three numbers a key whatever the limit, and the cheapest of all. At a fixed window's edge
//! a key may spend its limit twice within one `scale`. The sliding counter takes the last window's
//! hits to have been spread evenly: had they all come at its very end, then `elapsed` into this one
//! a key may have made up to `limit * (1 + elapsed / scale)` hits within one `scale`, never at once.
//! Had they come at its start, it denies some that a log would allow.

use super::calendar::CalendarScale;
use super::{Algorithm, Charge, Push};
use crate::growth::OutOfMemory;
use crate::number::{MAX, in_range, ratio};

/// The numbers of a window policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) kind: Kind,
    pub(crate) limit: u64,
    /// The length of a window; for the calendar, of the longest.
    pub(crate) scale: u64,
}

/// When windows start, and which of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// With a day, week or month of the calendar: `fix_window`.
    Calendar(CalendarScale),
    /// At multiples of the scale: `fix_window` too.
    Clock,
    /// At a key's first hit: `fix_window_per_key`.
    Key,
    /// At multiples of the scale, and the window before counts too: `sliding_counter`.
    Sliding,
}

/// Sentinel start: no window. It is so long ago that such a window has ended at any time.
const NONE: i64 = -(1 << 62);

/// A window as of a time, and what counts of it.
pub(crate) struct View {
    start: i64,
    /// The hits of this window.
    current: u64,
    /// The hits of the window before.
    previous: u64,
    /// The share of `previous` that still counts, in whole hits rounded up.
    faded: u64,
    followed: bool,
}

impl Window {
    /// Returns the start of a window that is opened at `now`.
    #[inline(always)]
    fn start_at(&self, now: u64) -> i64 {
        match self.kind {
            Kind::Key => now as i64,
            Kind::Calendar(calendar) => calendar.start_of(now),
            Kind::Clock | Kind::Sliding => (now - now % self.scale) as i64,
        }
    }

    // `==` on kinds would also compare units of the calendar, in a call of its own.

    #[inline(always)]
    pub(crate) fn slides(&self) -> bool {
        matches!(self.kind, Kind::Sliding)
    }

    #[inline(always)]
    fn is_per_key(&self) -> bool {
        matches!(self.kind, Kind::Key)
    }

    /// Returns the length of the window that starts at `start`.
    #[inline(always)]
    fn length(&self, start: i64) -> u64 {
        if let Kind::Calendar(calendar) = self.kind { calendar.length(start) } else { self.scale }
    }

    /// Moves the view of a stored window to a time outside that window.
    #[inline(always)]
    fn roll_over(&self, view: &mut View, now: u64) {
        let (age, scale) = (now as i64 - view.start, self.scale as i64);
        if age < 0 {
            // The clock stepped back.
            view.followed = -age > scale;
            // Counters at 0 have no time of their own, so that they are the same whether stored or not.
            if view.followed || (self.slides() && view.previous + view.current == 0) {
                view.start = self.start_at(now);
            }
            return;
        }
        if self.slides() && age < 2 * scale {
            (view.start, view.previous) = (view.start + scale, view.current);
        } else {
            (view.start, view.previous) = (NONE, 0);
        }
        view.current = 0;
    }

    /// Computes the share of the window before that still counts.
    #[inline(always)]
    fn fade(&self, view: &mut View, now: u64) {
        if view.previous > 0 {
            let elapsed = (now as i64 - view.start).max(0) as u64;
            view.faded = ratio(view.previous, self.scale - elapsed, self.scale - 1, self.scale);
        }
    }

    /// Returns when a stored window of the clock ends; `now` or earlier if it has ended.
    pub(crate) fn window_ends_at(&self, state: &[u64], now: u64) -> u64 {
        let start = state.first().map_or(NONE, |&start| start as i64);
        let follows = start > (now + self.scale) as i64;
        let start = if follows { self.start_at(now) } else { start };
        (start + self.length(start) as i64).max(0) as u64
    }

    /// Returns the end of the window in force under `fix_window_per_key`; 0 if there is none. If `starts` is set, a
    /// window starts at `now` where there is none.
    pub(crate) fn own_end(&self, state: &[u64], starts: bool, now: u64) -> u64 {
        let view = self.view(state, now);
        match (view.start, starts) {
            (NONE, false) => 0,
            (NONE, true) => now + self.scale,
            (start, _) => start as u64 + self.scale,
        }
    }

    /// Returns when the amounts end that are used at `now` after `charged` was charged; 0 if none are. The window must not
    /// slide.
    pub(crate) fn used_until(&self, state: &[u64], charged: u64, now: u64) -> u64 {
        let mut view = self.view(state, now);
        if charged > 0 {
            self.charge(&mut view, charged, now);
        }
        if view.current == 0 { 0 } else { view.start as u64 + self.length(view.start) }
    }

    /// Returns when the window ends to which an amount is charged at `charged_at`, if nothing is used now and nothing else
    /// is charged before. The window must not slide.
    pub(crate) fn end_after(&self, state: &[u64], charged_at: u64, now: u64) -> u64 {
        let view = self.view(state, now);
        let end = view.start + self.length(view.start) as i64;
        if view.start != NONE && (charged_at as i64) < end {
            return end as u64;
        }
        let start = self.start_at(charged_at);
        (start + self.length(start) as i64).max(0) as u64
    }

    /// Returns when the window in force at `now` ends; 0 if a key's own has not begun.
    pub(crate) fn end_in_force(&self, state: &[u64], now: u64) -> u64 {
        if self.is_per_key() {
            return self.own_end(state, false, now);
        }
        let start = self.start_at(now);
        (start + self.length(start) as i64).max(0) as u64
    }

    /// Returns the time from which on enough of a window has faded for a cost to fit.
    #[inline(always)]
    fn fades_at(&self, view: &View, cost: u64, end: u64) -> u64 {
        // The hit waits for one of the two counts to fade: the previous one if it fits beside the current one.
        let (end, fading, beside) = match self.limit.checked_sub(view.current + cost) {
            Some(room) => (end, view.previous, room),
            None => (end + self.scale, view.current, self.limit - cost),
        };
        end - ratio(beside, self.scale, 0, fading.max(1)).min(self.scale)
    }
}

impl Algorithm for Window {
    type State = [u64];
    type View = View;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.scale
    }

    #[inline(always)]
    fn view(&self, state: &[u64], now: u64) -> View {
        let (start, current, previous) = match *state {
            [start, current, previous, ..] if self.slides() => (start as i64, current, previous),
            [start, current, ..] => (start as i64, current, 0),
            _ => (NONE, 0, 0),
        };
        let mut view = View { start, current, previous, faded: 0, followed: false };
        // Most hits fall into the stored window.
        if (now as i64 - start) as u64 >= self.length(start) {
            self.roll_over(&mut view, now);
        }
        self.fade(&mut view, now);
        view
    }

    fn followed(&self, view: &View) -> bool {
        view.followed
    }

    fn used(&self, view: &View) -> u64 {
        // The limit and costs are whole, so the faded count may be rounded up before the comparison.
        view.current + view.faded
    }

    #[inline(always)]
    fn charge(&self, view: &mut View, cost: u64, now: u64) {
        if view.start == NONE {
            view.start = self.start_at(now);
        }
        view.current = (view.current + cost).min(MAX);
    }

    fn refund(&self, view: &mut View, cost: u64, now: u64) {
        let of_current = cost.min(view.current);
        view.current -= of_current;
        view.previous -= (cost - of_current).min(view.previous);
        view.faded = 0;
        self.fade(view, now);
        // Counters always have a start.
        if self.slides() && view.start == NONE {
            view.start = self.start_at(now);
        }
    }

    /// Gives back in the window of the hit. That window's count is then what the others used in it: the hit was added to it
    /// once, and no other window has it. The window that a key's first hit opened stays while others have hits in it.
    fn undo(&self, state: &mut [u64], cost: u64, charge: Charge, now: u64) -> u64 {
        let mut view = self.view(state, now);
        let since = charge.at as i64 - view.start;
        let is_current = view.start != NONE && since >= 0 && (since as u64) < self.length(view.start);
        let is_previous = self.slides() && since < 0 && since >= -(self.scale as i64);
        let count = match (is_current, is_previous) {
            (true, _) => &mut view.current,
            (_, true) => &mut view.previous,
            _ => return 0,
        };
        // Of a count that has saturated, it is not known how much the others used.
        let given = if *count < MAX && !view.followed { cost.min(*count) } else { 0 };
        *count -= given;
        if given > 0 {
            if !self.slides() && view.current == 0 {
                view.start = NONE;
            }
            self.commit(state, view);
        }
        given
    }

    #[inline(always)]
    fn wipe(&self, view: &mut View, count: u64) -> u64 {
        if self.is_per_key() {
            view.start = NONE;
        }
        (view.current, view.previous, view.faded) = (0, 0, 0);
        count
    }

    #[inline(always)]
    fn commit(&self, state: &mut [u64], view: View) {
        if let [start, current, before @ ..] = state {
            (*start, *current) = (view.start as u64, view.current);
            if self.slides()
                && let [previous, ..] = before
            {
                *previous = view.previous;
            }
        }
    }

    #[inline(always)]
    fn fits_at(&self, _state: &[u64], view: &View, cost: u64) -> u64 {
        let end = view.start as u64 + self.length(view.start);
        if self.slides() { self.fades_at(view, cost, end) } else { end }
    }

    #[inline(always)]
    fn unused_at(&self, view: &View) -> u64 {
        let windows = match (self.kind, view.current, view.previous) {
            (Kind::Clock | Kind::Calendar(_), 0, _) | (Kind::Sliding, 0, 0) => return 0,
            (Kind::Sliding, 1.., _) => 2,
            _ => 1,
        };
        (view.start + windows * self.length(view.start) as i64).max(0) as u64
    }

    /// Returns the width of the start, the hits, and those of the window before if they count.
    fn width(&self) -> usize {
        if self.slides() { 3 } else { 2 }
    }

    fn latest(&self, state: &[u64]) -> u64 {
        match *state {
            // Counters at 0 have no time of their own.
            [_, 0, 0, ..] if self.slides() => 0,
            [start, ..] => (start as i64).max(0) as u64,
            [] => 0,
        }
    }

    fn clear(&self, state: &mut [u64], now: u64) {
        let start = if self.slides() { self.start_at(now) } else { NONE };
        self.commit(state, View { start, current: 0, previous: 0, faded: 0, followed: false });
    }

    /// Passes the counts in order of time; no number at all if there is no window.
    fn export(&self, state: &[u64], push: Push<'_>) -> Result<(), OutOfMemory> {
        let (&[start, current, ..], previous) = (state, state.get(2)) else { return Ok(()) };
        if start as i64 != NONE {
            push(start as i64)?;
            if self.slides() {
                push(previous.map_or(0, |&previous| previous as i64))?;
            }
            push(current as i64)?;
        }
        Ok(())
    }

    fn import(&self, state: &mut [u64], numbers: &[i64]) -> Result<bool, OutOfMemory> {
        let (start, current, previous) = match (self.kind, numbers) {
            (Kind::Sliding, &[start, previous, current]) => (start, current, previous),
            (Kind::Sliding, _) => return Ok(false),
            (_, &[start, current]) => (start, current, 0),
            (_, []) => return Ok(true),
            _ => return Ok(false),
        };
        if !in_range(start) || self.start_at(start as u64) != start || !in_range(current) || !in_range(previous) {
            return Ok(false);
        }
        let (current, previous) = (current as u64, previous as u64);
        self.commit(state, View { start, current, previous, faded: 0, followed: false });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Act;
    use crate::algorithm::any::AnyAlgorithm;
    use crate::algorithm::testing::Key;

    const MINUTE: Window = Window { kind: Kind::Clock, limit: 2, scale: 60_000 };

    #[test]
    fn the_largest_limit_is_a_limit() {
        let largest = Window { kind: Kind::Clock, limit: MAX, scale: 60_000 };
        let mut state = Key::new(AnyAlgorithm::Window(largest), 0);
        assert!(state.act(Act::Hit(MAX), 0).allowed);
        assert!(!state.act(Act::Hit(1), 0).allowed);
    }

    #[test]
    fn a_window_ends_at_a_multiple_of_its_scale() {
        let mut state = Key::new(AnyAlgorithm::Window(MINUTE), 90_000);
        assert_eq!(state.act(Act::Count(2), 90_000).reset_after, 30_000);
        assert!(!state.act(Act::Count(1), 119_999).allowed);
        assert!(state.act(Act::Count(1), 120_000).allowed);
    }

    #[test]
    fn a_denied_hit_counts_unless_it_is_free() {
        let mut state = Key::new(AnyAlgorithm::Window(MINUTE), 0);
        assert_eq!(state.act(Act::Hit(3), 0).count, 0);
        assert_eq!(state.act(Act::Count(3), 0).count, 3);
        assert_eq!(state.act(Act::Count(3), 0).retry_after, None);
    }

    #[test]
    fn a_clock_one_window_behind_still_counts_in_the_stored_window() {
        let mut state = Key::new(AnyAlgorithm::Window(MINUTE), 60_000);
        state.act(Act::Count(2), 60_000);
        let decision = state.act(Act::Count(1), 1);
        assert_eq!((decision.allowed, decision.retry_after), (false, Some(119_999)));
    }

    #[test]
    fn a_clock_further_behind_takes_the_count_along_and_frees_the_key_in_a_window() {
        let mut state = Key::new(AnyAlgorithm::Window(MINUTE), 6_000_000);
        state.act(Act::Hit(2), 6_000_000);
        assert_eq!(state.act(Act::Hit(1), 90_000).retry_after, Some(30_000));
        assert!(state.act(Act::Hit(1), 120_000).allowed);
    }

    const OWN_MINUTE: Window = Window { kind: Kind::Key, limit: 2, scale: 60_000 };

    #[test]
    fn a_window_starts_with_the_first_hit_and_is_over_at_its_end_exactly() {
        let mut state = Key::new(AnyAlgorithm::Window(OWN_MINUTE), 90_000);
        assert_eq!(state.act(Act::Count(2), 90_000).reset_after, 60_000);
        assert!(!state.act(Act::Count(1), 149_999).allowed);
        assert!(state.act(Act::Count(1), 150_000).allowed);
    }

    #[test]
    fn the_first_hit_at_the_epoch_is_a_first_hit() {
        let mut state = Key::new(AnyAlgorithm::Window(OWN_MINUTE), 0);
        assert_eq!(state.act(Act::Count(1), 0).count, 1);
        assert_eq!(state.ends_at(0), 60_000);
    }

    #[test]
    fn setting_to_nothing_starts_a_window_too() {
        let mut state = Key::new(AnyAlgorithm::Window(OWN_MINUTE), 1_000);
        assert_eq!(state.act(Act::Set(0), 1_000).count, 0);
        assert_eq!(state.ends_at(1_000), 61_000);
    }

    const TEN: Window = Window { kind: Kind::Sliding, limit: 10, scale: 1_000 };

    #[test]
    fn the_last_window_fades_as_this_one_passes() {
        let mut state = Key::new(AnyAlgorithm::Window(TEN), 0);
        assert!(state.act(Act::Hit(10), 999).allowed);
        let denied = state.act(Act::Hit(1), 1_000);
        assert_eq!((denied.count, denied.remaining, denied.retry_after), (10, 0, Some(100)));
        assert!(!state.act(Act::Hit(1), 1_099).allowed);
        assert!(state.act(Act::Hit(1), 1_100).allowed);
        assert_eq!(state.peek(Act::Hit(5), 1_500).retry_after, Some(100));
    }

    #[test]
    fn a_hit_as_large_as_the_limit_waits_for_both_windows() {
        let mut state = Key::new(AnyAlgorithm::Window(TEN), 0);
        state.act(Act::Hit(1), 0);
        assert_eq!(state.act(Act::Hit(10), 0).retry_after, Some(2_000));
        assert_eq!(state.ends_at(0), 2_000);
    }

    #[test]
    fn a_state_lives_to_the_end_of_the_next_window() {
        let mut state = Key::new(AnyAlgorithm::Window(TEN), 0);
        state.act(Act::Set(7), 500);
        assert_eq!(state.peek(Act::Hit(0), 1_999).count, 1);
        assert_eq!(state.peek(Act::Hit(0), 2_000).count, 0);
    }
}
