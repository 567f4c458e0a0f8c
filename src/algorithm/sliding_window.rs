//! A log of hits: exact at every moment, with no edges.
//!
//! A hit at `t` counts while `t + scale > now`; allowed when the sum in the window, this hit
//! included, is `<= limit`.
//!
//! The strictest, and the one whose memory grows with the limit: at most `limit + 1` entries a
//! key, since hits older than those that make up `limit + 1` cannot change an answer.

use alloc::vec::Vec;

use super::Algorithm;
use super::log::{Hits, Log};
use crate::number::{MAX, in_range};

/// The numbers of a `sliding_window` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
    /// The limit the log is kept for: the policy's own, also when one call lowers the limit.
    pub(crate) keep: u64,
}

/// What a log comes to at a moment: which of it counts, and what has been added.
pub(crate) struct View {
    /// The time that counts: the clock's, or the newest hit's while the clock is a little behind.
    at: u64,
    /// The newest hit's time.
    newest: u64,
    /// How far every time moves back, when the clock fell far behind.
    shift: u64,
    /// How many of the oldest entries count no more.
    skip: u32,
    /// The sum of what counts.
    total: u64,
    /// What has been added at `at`.
    added: u64,
}

impl SlidingWindow {
    pub(crate) fn new(limit: u64, scale: u64) -> Self {
        Self { limit, scale, keep: limit }
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
            match log.get_mut(0) {
                Some(oldest) if oldest.cost > excess => {
                    oldest.cost -= excess;
                    return;
                }
                Some(oldest) => excess -= oldest.cost,
                None => return,
            }
            log.forget(1);
        }
    }

    /// Moves all times back with the clock.
    #[cold]
    fn shift(log: &mut Log, shift: u64) {
        let mut position = 0;
        while let Some(hits) = log.get_mut(position) {
            hits.time = hits.time.saturating_sub(shift);
            position += 1;
        }
        // Times before the epoch became the epoch.
        while let (Some(&Hits { cost, .. }), Some(second)) = (log.get(0), log.get(1))
            && second.time == 0
        {
            log.forget(1);
            if let Some(oldest) = log.get_mut(0) {
                oldest.cost += cost;
            }
        }
    }

    /// When a stored log ends; `now` or earlier if it has. The newest hit tells, however long the log.
    pub(crate) fn log_ends_at(&self, log: &Log, now: u64) -> u64 {
        match log.newest() {
            _ if log.len() == 0 => 0,
            newest if newest > now + self.scale => now + self.scale,
            newest => newest + self.scale,
        }
    }
}

impl Algorithm for SlidingWindow {
    type State = Log;
    type View = View;

    fn limit(&self) -> u64 {
        self.limit
    }

    /// The most that a log holds: one more than can matter, but no more than a count can be.
    fn most(&self) -> u64 {
        (self.keep + 1).min(MAX)
    }

    #[inline(always)]
    fn view(&self, log: &Log, now: u64) -> View {
        let (oldest, latest) = log.span();
        let shift = if latest > now + self.scale { latest - now } else { 0 };
        let newest = latest - shift;
        let mut view = View { at: now.max(newest), newest, shift, skip: 0, total: log.total, added: 0 };
        // Most hits find nothing to skip.
        let counts = |time: u64| time.saturating_sub(shift) + self.scale > view.at;
        if !counts(oldest) {
            while let Some(hits) = log.get(view.skip)
                && !counts(hits.time)
            {
                view.skip += 1;
                view.total -= hits.cost;
            }
        }
        view
    }

    fn followed(&self, view: &View) -> bool {
        view.shift > 0
    }

    fn used(&self, view: &View) -> u64 {
        view.total
    }

    fn charge(&self, view: &mut View, cost: u64, _now: u64) {
        view.total += cost;
        view.added += cost;
        view.newest = view.at;
    }

    fn wipe(&self, view: &mut View, count: u64) -> u64 {
        (view.skip, view.total) = (u32::MAX, 0);
        count
    }

    #[inline(always)]
    fn commit(&self, log: &mut Log, view: View) {
        log.forget(view.skip.min(log.len()));
        if view.shift > 0 {
            Self::shift(log, view.shift);
        }
        if view.added > 0 {
            log.push(Hits { time: view.at, cost: view.added });
        }
        log.total = view.total;
        if view.total > self.most() {
            self.trim(log);
        }
    }

    #[inline(always)]
    fn fits_at(&self, log: &Log, view: &View, cost: u64) -> u64 {
        let mut excess = view.total + cost - self.limit;
        let mut position = view.skip;
        while let Some(hits) = log.get(position) {
            position += 1;
            excess = excess.saturating_sub(hits.cost);
            if excess == 0 {
                return hits.time.saturating_sub(view.shift) + self.scale;
            }
        }
        view.at + self.scale
    }

    fn unused_at(&self, view: &View) -> u64 {
        if view.total == 0 { 0 } else { view.newest + self.scale }
    }

    fn width(&self) -> usize {
        0
    }

    fn latest(&self, log: &Log) -> u64 {
        log.newest()
    }

    fn clear(&self, log: &mut Log, _now: u64) {
        *log = Log::default();
    }

    fn export(&self, log: &Log, numbers: &mut Vec<i64>) {
        let (mut position, mut last) = (0, 0);
        while let Some(&Hits { time, cost }) = log.get(position) {
            // Each time is told from the one before it: short numbers, however long the log.
            numbers.push((time - last) as i64);
            numbers.push(cost as i64);
            (position, last) = (position + 1, time);
        }
    }

    /// Every hit knows its own time, so there is nothing to convert.
    fn import(&self, log: &mut Log, _scale: u64, numbers: &[i64]) -> bool {
        let (pairs, rest) = numbers.as_chunks::<2>();
        let mut time = 0;
        for &[since, cost] in pairs {
            let newer = since > 0 || log.len() == 0;
            if !newer || cost == 0 || !in_range(since) || !in_range(cost) || !in_range(time + since) {
                return false;
            }
            time += since;
            log.push(Hits { time: time as u64, cost: cost as u64 });
            // What is past the most goes as it comes, so that no sum is too large.
            log.total += cost as u64;
            self.trim(log);
        }
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Act;
    use crate::algorithm::rule::Rule;
    use crate::algorithm::testing::Key;

    fn three() -> SlidingWindow {
        SlidingWindow::new(3, 1_000)
    }

    #[test]
    fn a_hit_counts_for_a_scale_and_no_longer() {
        let mut log = Key::new(Rule::SlidingWindow(three()), 0);
        log.act(Act::Hit(2), 100);
        log.act(Act::Hit(1), 600);
        assert_eq!(log.act(Act::Hit(1), 700).retry_after, Some(400));
        assert_eq!(log.act(Act::Hit(3), 700).retry_after, Some(900));
        assert!(!log.act(Act::Hit(1), 1_099).allowed);
        assert!(log.act(Act::Hit(2), 1_100).allowed);
    }

    #[test]
    fn the_log_is_bounded_and_the_count_saturates() {
        let mut log = Key::new(Rule::SlidingWindow(three()), 0);
        for now in 0..900 {
            log.act(Act::Count(7), now);
        }
        assert_eq!((log.logs[0].len(), log.logs[0].total), (1, 4));
        for now in 900..990 {
            log.act(Act::Count(1), now);
        }
        assert_eq!((log.logs[0].len(), log.logs[0].total), (4, 4));
        assert_eq!(log.peek(Act::Hit(1), 990).retry_after, Some(997));
    }

    #[test]
    fn a_log_at_the_end_of_the_range_can_be_read_again() {
        let mut log = Key::new(Rule::SlidingWindow(SlidingWindow::new(MAX, 1_000)), 0);
        log.act(Act::Inc(MAX), 0);
        assert!(!log.act(Act::Count(2), 0).allowed);
        let mut again = Key::new(log.rule, 0);
        assert!(again.import(1_000, &log.export()));
        assert_eq!(again.export(), log.export());
    }

    #[test]
    fn a_clock_far_behind_takes_the_log_along() {
        let mut log = Key::new(Rule::SlidingWindow(three()), 0);
        log.act(Act::Hit(1), 50_000);
        log.act(Act::Hit(2), 50_400);
        assert_eq!(log.act(Act::Hit(1), 10_000).retry_after, Some(600));
        assert!(log.act(Act::Hit(1), 10_600).allowed);
    }
}
