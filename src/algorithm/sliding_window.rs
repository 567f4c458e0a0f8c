//! A log of hits: exact at every moment, with no edges.
//!
//! A hit at `t` counts while `t + scale > now`; allowed when the sum in the window, this hit
//! included, is `<= limit`.
//!
//! The strictest, and the one whose memory grows with the limit: at most `limit + 1` entries a
//! key, since hits older than those that make up `limit + 1` cannot change an answer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::window::in_range;
use super::{Algorithm, Cell, Held};
use crate::number::MAX;

/// The numbers of a `sliding_window` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
    /// The limit the log is kept for: the policy's own, also when one call lowers the limit.
    pub(crate) keep: u64,
}

/// Hits of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    time: u64,
    cost: u64,
}

/// The hits that still count, oldest first, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    total: u64,
}

impl Log {
    /// So many empty logs.
    pub(crate) fn many(count: usize) -> Vec<Self> {
        let mut logs = Vec::new();
        logs.resize_with(count, Self::default);
        logs
    }
}

/// What a log comes to at a moment: which of it counts, and what has been added.
pub(crate) struct Reading {
    /// The time that counts: the clock's, or the newest hit's while the clock is a little behind.
    at: u64,
    /// The newest hit's time.
    newest: u64,
    /// How far every time moves back, when the clock fell far behind.
    shift: u64,
    /// How many of the oldest entries count no more.
    skip: usize,
    /// The sum of what counts.
    total: u64,
    /// What has been added at `at`.
    added: u64,
}

impl SlidingWindow {
    pub(crate) fn new(limit: u64, scale: u64) -> Self {
        Self { limit, scale, keep: limit }
    }

    /// The most that a log holds: one more than can matter, but no more than a count can be.
    fn most(&self) -> u64 {
        (self.keep + 1).min(MAX)
    }

    /// These numbers with the limit of a policy given for one call: its hits are kept for the own limit.
    pub(crate) fn adjusted(&self, call: &Self) -> Option<Self> {
        (call.limit <= self.keep).then_some(Self { keep: self.keep, ..*call })
    }

    /// Forgets the oldest hits past the most that a log holds.
    fn trim(&self, log: &mut Log) {
        let mut excess = log.total.saturating_sub(self.most());
        log.total -= excess;
        while excess > 0 {
            match log.entries.front_mut() {
                Some(oldest) if oldest.cost > excess => {
                    oldest.cost -= excess;
                    return;
                }
                Some(oldest) => excess -= oldest.cost,
                None => return,
            }
            log.entries.pop_front();
        }
    }
}

impl Algorithm for SlidingWindow {
    type State = Log;
    type View = Reading;

    fn name(&self) -> &'static str {
        "sliding_window"
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

    fn fresh(&self, _now: u64) -> Log {
        Log::default()
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Log) -> u64 {
        state.entries.back().map_or(0, |newest| newest.time)
    }

    #[inline]
    fn view(&self, state: &Log, now: u64) -> Reading {
        let latest = self.latest(state);
        let shift = if self.is_ahead(state, now) { latest - now } else { 0 };
        let newest = latest - shift;
        let mut view = Reading { at: now.max(newest), newest, shift, skip: 0, total: state.total, added: 0 };
        while let Some(entry) = state.entries.get(view.skip)
            && entry.time.saturating_sub(shift) + self.scale <= view.at
        {
            view.skip += 1;
            view.total -= entry.cost;
        }
        view
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Reading, cost: u64) -> bool {
        view.total + cost <= self.limit
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Reading, cost: u64, _now: u64) {
        view.total += cost;
        view.added += cost;
        view.newest = view.at;
    }

    fn assign(&self, view: &mut Reading, count: u64, _now: u64) {
        view.skip = usize::MAX;
        view.total = count;
        view.added = count;
        view.newest = view.at;
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Log, view: Reading) {
        for _ in 0..view.skip.min(state.entries.len()) {
            state.entries.pop_front();
        }
        if view.shift > 0 {
            for entry in &mut state.entries {
                entry.time = entry.time.saturating_sub(view.shift);
            }
            // Times before the epoch became the epoch.
            while state.entries.get(1).is_some_and(|second| second.time == 0) {
                let oldest = state.entries.pop_front().map_or(0, |oldest| oldest.cost);
                if let Some(second) = state.entries.front_mut() {
                    second.cost += oldest;
                }
            }
        }
        match state.entries.back_mut() {
            _ if view.added == 0 => {}
            Some(newest) if newest.time == view.at => newest.cost += view.added,
            _ => state.entries.push_back(Entry { time: view.at, cost: view.added }),
        }
        state.total = view.total;
        self.trim(state);
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Reading) -> u64 {
        view.total.min(self.most())
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Reading) -> u64 {
        self.limit.saturating_sub(view.total)
    }

    fn fits_at(&self, state: &Log, view: &Reading, cost: u64) -> u64 {
        let mut excess = (view.total + cost).saturating_sub(self.limit);
        let mut position = view.skip;
        while let Some(entry) = state.entries.get(position) {
            position += 1;
            excess = excess.saturating_sub(entry.cost);
            if excess == 0 {
                return entry.time.saturating_sub(view.shift) + self.scale;
            }
        }
        view.at + self.scale
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Reading) -> u64 {
        if view.total == 0 { 0 } else { view.newest + self.scale }
    }

    fn ends_at(&self, state: &Log, now: u64) -> u64 {
        // The newest hit tells, however long the log.
        match self.latest(state) {
            _ if state.entries.is_empty() => 0,
            newest if newest > now + self.scale => now + self.scale,
            newest => newest + self.scale,
        }
    }

    fn export(&self, state: &Log, numbers: &mut Vec<i64>) {
        let mut last = 0;
        for entry in &state.entries {
            // Each time is told from the one before it: short numbers, however long the log.
            numbers.extend([(entry.time - last) as i64, entry.cost as i64]);
            last = entry.time;
        }
    }

    fn import(&self, numbers: &[i64]) -> Option<Log> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let mut log = Log::default();
        let mut time = 0;
        for (position, &[since, cost]) in pairs.iter().enumerate() {
            let (since, cost) = (in_range(since)?, in_range(cost).filter(|&cost| cost > 0)?);
            if since == 0 && position > 0 {
                return None;
            }
            time = in_range(i64::try_from(time + since).ok()?)?;
            log.entries.push_back(Entry { time, cost });
            log.total = log.total.checked_add(cost)?;
        }
        self.trim(&mut log);
        Some(log)
    }

    fn convert(&self, mut state: Log, _made_by: &Self, _now: u64) -> Log {
        // Every hit knows its own time, so there is nothing to convert.
        self.trim(&mut state);
        state
    }

    fn width(&self) -> usize {
        0
    }
}

impl Held for Log {
    type Seen<'a> = &'a Self;

    #[inline]
    fn read<'a>(cell: &'a Cell<'_>) -> &'a Self {
        match cell {
            Cell::Read(_, Some(log)) => log,
            Cell::Write(_, Some(log)) => log,
            _ => const { &Self { entries: VecDeque::new(), total: 0 } },
        }
    }

    #[inline]
    fn keep<A: Algorithm<State = Self>>(cell: &mut Cell<'_>, algorithm: &A, view: A::View) -> bool {
        let Cell::Write(_, Some(log)) = cell else { return false };
        algorithm.commit(log, view);
        true
    }

    fn put(self, cell: Cell<'_>) {
        if let Cell::Write(_, Some(log)) = cell {
            *log = self;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::{Count, Free};
    use crate::algorithm::Act;

    fn three() -> SlidingWindow {
        SlidingWindow::new(3, 1_000)
    }

    #[test]
    fn a_hit_counts_for_a_scale_and_no_longer() {
        let (three, mut log) = (three(), Log::default());
        three.act_on(&mut log, Act::Hit(2, Free), 100);
        three.act_on(&mut log, Act::Hit(1, Free), 600);
        assert_eq!(three.act_on(&mut log, Act::Hit(1, Free), 700).retry_after, Some(400));
        assert_eq!(three.act_on(&mut log, Act::Hit(3, Free), 700).retry_after, Some(900));
        assert!(!three.act_on(&mut log, Act::Hit(1, Free), 1_099).allowed);
        assert!(three.act_on(&mut log, Act::Hit(2, Free), 1_100).allowed);
    }

    #[test]
    fn the_log_is_bounded_and_the_count_saturates() {
        let (three, mut log) = (three(), Log::default());
        for now in 0..900 {
            three.act_on(&mut log, Act::Hit(7, Count), now);
        }
        assert_eq!((log.entries.len(), log.total), (1, 4));
        for now in 900..990 {
            three.act_on(&mut log, Act::Hit(1, Count), now);
        }
        assert_eq!((log.entries.len(), log.total), (4, 4));
        assert_eq!(three.act_on(&mut log.clone(), Act::Hit(1, Free), 990).retry_after, Some(997));
    }

    #[test]
    fn a_log_at_the_end_of_the_range_can_be_read_again() {
        let (largest, mut log) = (SlidingWindow::new(MAX, 1_000), Log::default());
        largest.act_on(&mut log, Act::Inc(MAX), 0);
        assert!(!largest.act_on(&mut log, Act::Hit(2, Count), 0).allowed);
        let mut numbers = Vec::new();
        largest.export(&log, &mut numbers);
        assert_eq!(largest.import(&numbers), Some(log));
    }

    #[test]
    fn a_clock_far_behind_takes_the_log_along() {
        let (three, mut log) = (three(), Log::default());
        three.act_on(&mut log, Act::Hit(1, Free), 50_000);
        three.act_on(&mut log, Act::Hit(2, Free), 50_400);
        assert_eq!(three.act_on(&mut log, Act::Hit(1, Free), 10_000).retry_after, Some(600));
        assert!(three.act_on(&mut log, Act::Hit(1, Free), 10_600).allowed);
    }
}
