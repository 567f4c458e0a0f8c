//! A log of hits: exact at every moment, with no edges.
//!
//! A hit at `t` counts while `t + scale > now`; allowed when the sum in the window, this hit
//! included, is `<= limit`.
//!
//! The strictest, and the one whose memory grows with the limit: at most `limit + 1` entries a
//! key, since hits older than those that make up `limit + 1` cannot change a decision. But another
//! limit may read the log next, as while a deploy is under way, and must find every hit that was
//! admitted. So hits that were denied take the place of the oldest, and only what is charged
//! otherwise makes a log longer than its limit: `inc` up to 1,001, and a settlement by what was
//! reserved, since a higher limit granted it.

use super::log::{Hits, Log};
use super::{Algorithm, Charge, Push};
use crate::growth::OutOfMemory;
use crate::key::open_reservations::OpenOf;
use crate::number::{MAX, in_range};
use crate::policy::schema::MAX_STORED_LOG;

/// The numbers of a `sliding_window` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    pub(crate) limit: u64,
    pub(crate) scale: u64,
    /// The limit that the log is kept for: the policy's own, or that of a call if it is higher.
    pub(crate) keep: u64,
}

/// A log as of a time: which entries count, and what has been added.
pub(crate) struct View {
    /// The time of the decision: the clock's, or the newest hit's while the clock is a little behind.
    at: u64,
    /// The newest hit's time.
    newest: u64,
    /// How far every time moves back, if the clock fell far behind.
    shift: u64,
    /// The number of words of the entries that no longer count.
    skip: u32,
    /// The sum of the entries that count.
    total: u64,
    /// The cost added at `at`.
    added: u64,
    /// The largest sum. Beyond it, what is added takes the place of the oldest entries.
    most: u64,
    /// The cost that the oldest entries give back.
    refunded: u64,
}

impl SlidingWindow {
    pub(crate) fn new(limit: u64, scale: u64) -> Self {
        Self { limit, scale, keep: limit }
    }

    /// Returns the numbers of a call under which the log keeps hits for this limit as well.
    pub(crate) fn keeping_for(&self, call: &Self) -> Self {
        Self { keep: self.keep.max(call.limit), ..*call }
    }

    /// Drops the oldest hits until the sum is at most `most`. Returns the time of the newest that was dropped; 0 if none was.
    fn trim(log: &mut Log, most: u64) -> u64 {
        let mut excess = log.total.saturating_sub(most);
        let mut newest = 0;
        log.total -= excess;
        while excess > 0
            && let Some(oldest) = log.entry(0)
        {
            newest = oldest.time;
            if oldest.cost > excess {
                log.replace_oldest(oldest.words(), Hits { cost: oldest.cost - excess, ..oldest });
                break;
            }
            excess -= oldest.cost;
            log.forget(oldest.words());
        }
        newest
    }

    /// Makes room for `added` words after `dropped` words were dropped. Trimming keeps a log within `most` words, since
    /// each word stands for a cost of at least 1.
    #[inline(always)]
    fn make_room(&self, log: &mut Log, dropped: u32, added: u32, most: u64) -> Result<(), OutOfMemory> {
        let words = (u64::from(log.len() - dropped) + u64::from(added)).min(most);
        // Few logs grow beyond their limit: there, room is made for one entry at a time.
        log.make_room(words, self.most_by_hits())
    }

    /// Adds hits that are not older than the newest, and drops the oldest so that the sum is at most `most`. There must
    /// be room for them.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn add(log: &mut Log, time: u64, cost: u64, most: u64) {
        let cost = cost.min(most);
        if log.total + cost > most {
            log.lost = Self::trim(log, most - cost);
        }
        log.push(Hits { time, cost });
        log.total += cost;
    }

    /// Returns the largest sum. Another limit, up to that of stored logs, may read the log next.
    fn most(&self) -> u64 {
        self.most_by_hits().max(MAX_STORED_LOG + 1)
    }

    /// Returns the largest sum that hits make: one more than the limit, so that it is exceeded, but at most [`MAX`].
    fn most_by_hits(&self) -> u64 {
        (self.keep + 1).min(MAX)
    }

    /// Returns the time from which on a hit of `cost` fits beside open amounts. An open amount
    /// becomes a hit at the time at which it is charged; before, it counts because it is open.
    pub(crate) fn fits_beside(&self, log: &Log, charged: u64, cost: u64, open: OpenOf<'_>, now: u64) -> u64 {
        let mut view = self.view(log, now);
        if charged > 0 {
            self.charge(&mut view, charged, now);
        }
        let mut excess = (view.total + open.sum() + cost).saturating_sub(self.limit);
        let (mut at, mut newest, mut fits_at) = (view.skip, view.newest, now);
        let mut ends = open.amounts().map(|(_, open)| open).peekable();
        let mut charges = open.amounts().map(|(_, open)| open);
        while excess > 0 {
            let (time, amount) = match log.entry(at) {
                Some(hits) => {
                    at += hits.words();
                    (hits.time.saturating_sub(view.shift), hits.cost)
                }
                None if view.added > 0 => (view.at, core::mem::take(&mut view.added)),
                None => {
                    let Some(open) = charges.next() else { return fits_at };
                    newest = newest.max(open.charged_at(self.scale));
                    (newest, open.amount)
                }
            };
            fits_at = time + self.scale;
            // A charge ahead of the clock moves the log's time forward, so that hits no longer count from its end on.
            while ends.next_if(|open| open.charged_at(self.scale) < fits_at).is_some() {}
            if let Some(open) = ends.peek() {
                fits_at = fits_at.min(open.end);
            }
            excess = excess.saturating_sub(amount);
        }
        fits_at
    }

    /// Returns when a stored log ends; `now` or earlier if it has ended. Only its newest hit is read.
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

    fn period(&self) -> u64 {
        self.scale
    }

    #[inline(always)]
    fn view(&self, log: &Log, now: u64) -> View {
        let (oldest, latest) = (log.oldest(), log.newest());
        let shift = if latest > now + self.scale { latest - now } else { 0 };
        let newest = latest - shift;
        let mut view = View {
            at: now.max(newest),
            newest,
            shift,
            skip: 0,
            total: log.total,
            added: 0,
            most: self.most(),
            refunded: 0,
        };
        // Most hits skip no entry.
        let counts = |time: u64| time.saturating_sub(shift) + self.scale > view.at;
        if !counts(oldest) {
            while let Some(hits) = log.entry(view.skip)
                && !counts(hits.time)
            {
                view.skip += hits.words();
                view.total -= hits.cost;
            }
        }
        // A log that was read from a limiter with a higher limit stays as long as it is.
        view.most = view.most.max(view.total);
        view
    }

    fn followed(&self, view: &View) -> bool {
        view.shift > 0
    }

    fn used(&self, view: &View) -> u64 {
        view.total.min(view.most)
    }

    fn charge(&self, view: &mut View, cost: u64, _now: u64) {
        view.total += cost;
        view.added += cost;
        view.newest = view.at;
    }

    fn bound(&self, view: &mut View) {
        view.most = self.most_by_hits().max(view.total);
    }

    fn refund(&self, view: &mut View, cost: u64, _now: u64) {
        view.refunded = cost.min(view.total);
        view.total -= view.refunded;
    }

    /// Gives back from the entry of the hit's time, which is all that differs from a log without the hit: whatever time is
    /// looked at, the entries after it sum up to what they would without the hit, or more where a refund, which drops the
    /// oldest, has dropped the hit instead of others.
    fn undo(&self, log: &mut Log, cost: u64, charge: Charge, now: u64) -> u64 {
        let view = self.view(log, now);
        // Others' hits that still count may have been dropped for this one.
        if view.shift > 0 || log.lost > 0 && log.lost + self.scale > view.at {
            return 0;
        }
        let mut at = view.skip;
        while let Some(hits) = log.entry(at)
            && hits.time < charge.at
        {
            at += hits.words();
        }
        match log.entry(at) {
            Some(hits) if hits.time == charge.at => log.take(at, cost),
            _ => 0,
        }
    }

    fn wipe(&self, view: &mut View, count: u64) -> u64 {
        (view.skip, view.total, view.most) = (u32::MAX, 0, self.most());
        count
    }

    #[inline(always)]
    fn make_room(&self, log: &mut Log, view: &View) -> Result<(), OutOfMemory> {
        if view.added == 0 {
            return Ok(());
        }
        let dropped = view.skip.min(log.len());
        let hits = Hits { time: view.at, cost: view.added.min(view.most) };
        // The hits are merged into the newest entry if it has the same time and is not dropped.
        let merges = dropped < log.len() && log.newest() - view.shift == view.at;
        let added = if merges { log.words_to_add(Hits { time: log.newest(), ..hits }) } else { hits.words() };
        self.make_room(log, dropped, added, view.most)
    }

    #[inline(always)]
    fn commit(&self, log: &mut Log, view: View) {
        if view.skip > 0 {
            log.forget(view.skip.min(log.len()));
        }
        if view.shift > 0 {
            log.shift(view.shift);
        }
        log.total = view.total - view.added;
        if view.refunded > 0 {
            log.total += view.refunded;
            Self::trim(log, view.total);
        }
        if view.added > 0 {
            Self::add(log, view.at, view.added, view.most);
        }
    }

    #[inline(always)]
    fn fits_at(&self, log: &Log, view: &View, cost: u64) -> u64 {
        let mut excess = view.total + cost - self.limit;
        let mut at = view.skip;
        while let Some(hits) = log.entry(at) {
            at += hits.words();
            excess = excess.saturating_sub(hits.cost);
            if excess == 0 {
                return hits.time.saturating_sub(view.shift) + self.scale;
            }
        }
        view.at + self.scale
    }

    #[inline(always)]
    fn more_at(&self, log: &Log, view: &View, used: u64) -> u64 {
        // The oldest entries, which a refund drops, are still in the log.
        let cost = self.limit.saturating_sub(used) + 1 + view.refunded;
        self.fits_at(log, view, cost)
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
        *log = Log::EMPTY;
    }

    fn export(&self, log: &Log, push: Push<'_>) -> Result<(), OutOfMemory> {
        let (mut at, mut last) = (0, 0);
        while let Some(hits) = log.entry(at) {
            // Each time is relative to the one before it: short numbers, however long the log.
            push((hits.time - last) as i64)?;
            push(hits.cost as i64)?;
            (at, last) = (at + hits.words(), hits.time);
        }
        // Few logs ever dropped a hit that counts.
        if log.lost > 0 { push(log.lost as i64) } else { Ok(()) }
    }

    /// Reads a log. All hits are kept, since the limit may change back.
    fn import(&self, log: &mut Log, numbers: &[i64]) -> Result<bool, OutOfMemory> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        let (mut total, mut words) = (0_u64, 0_u64);
        for &[_, cost] in pairs {
            let hits = Hits { time: 0, cost: cost.max(0) as u64 };
            (total, words) = (total.saturating_add(hits.cost), words + u64::from(hits.words()));
        }
        let most = self.most().max(total.min(MAX));
        log.make_room(words, words)?;
        let mut time = 0;
        for &[since, cost] in pairs {
            let newer = since > 0 || log.len() == 0;
            if !newer || cost == 0 || !in_range(since) || !in_range(cost) || !in_range(time + since) {
                return Ok(false);
            }
            time += since;
            Self::add(log, time as u64, cost as u64, most);
        }
        match *rest {
            [] => Ok(true),
            [lost] => {
                log.lost = lost as u64;
                Ok(lost > 0 && lost <= time)
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Act;
    use crate::algorithm::any::AnyAlgorithm;
    use crate::algorithm::testing::Key;

    fn three() -> SlidingWindow {
        SlidingWindow::new(3, 1_000)
    }

    #[test]
    fn a_hit_counts_for_a_scale_and_no_longer() {
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(three()), 0);
        log.act(Act::Hit(2), 100);
        log.act(Act::Hit(1), 600);
        assert_eq!(log.act(Act::Hit(1), 700).retry_after, Some(400));
        assert_eq!(log.act(Act::Hit(3), 700).retry_after, Some(900));
        assert!(!log.act(Act::Hit(1), 1_099).allowed);
        assert!(log.act(Act::Hit(2), 1_100).allowed);
    }

    #[test]
    fn the_log_is_bounded_and_the_count_saturates() {
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(three()), 0);
        for now in 0..900 {
            log.act(Act::Count(7), now);
        }
        assert_eq!((log.logs[0].len(), log.logs[0].total), (1, 4));
        for now in 900..990 {
            log.act(Act::Count(1), now);
        }
        assert_eq!((log.logs[0].len(), log.logs[0].total), (4, 4));
        assert_eq!(log.peek(Act::Hit(1), 990).retry_after, Some(997));
        assert_eq!(log.act(Act::Charge(96), 990).count, 100);
        assert_eq!(log.act(Act::Refund(97), 990).count, 3);
        assert_eq!(log.act(Act::Charge(MAX), 990).count, 1_001);
    }

    #[test]
    fn an_undo_gives_back_while_no_hit_that_counts_was_dropped_for_it() {
        let charge = |at| Charge { at, beside: 0 };
        let window = three();
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(window), 0);
        log.act(Act::Hit(1), 100);
        log.act(Act::Hit(2), 200);
        // A denied hit that counts, for which nothing is dropped yet.
        log.act(Act::Count(1), 300);
        assert_eq!(window.undo(&mut log.logs[0].clone(), 2, charge(200), 300), 2);
        // This one takes the place of another's hit, which counts until 1,100.
        log.act(Act::Count(1), 400);
        for now in [400, 1_099] {
            assert_eq!(window.undo(&mut log.logs[0].clone(), 2, charge(200), now), 0);
        }
        let mut again = Key::new(AnyAlgorithm::SlidingWindow(window), 0);
        assert!(again.import(&log.export()));
        assert_eq!(window.undo(&mut again.logs[0].clone(), 2, charge(200), 1_099), 0);
        assert_eq!(window.undo(&mut again.logs[0], 2, charge(200), 1_100), 2);
        // An empty log is as one that was never used.
        log.act(Act::Refund(4), 400);
        assert!(log.export().is_empty());
        assert!(Key::new(AnyAlgorithm::SlidingWindow(window), 0).import(&log.export()));
    }

    #[test]
    fn a_lower_limit_leaves_the_hits_that_a_higher_one_counts() {
        let ten = SlidingWindow::new(10, 1_000);
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(ten), 0);
        for now in 0..8 {
            assert!(log.act(Act::Hit(1), now).allowed);
        }
        let mut lower = Key::new(AnyAlgorithm::SlidingWindow(three()), 0);
        assert!(lower.import(&log.export()));
        assert_eq!(lower.act(Act::Hit(1), 20).retry_after, Some(985));
        // Hits that count although they are denied take the place of the oldest, and what is charged is added.
        for now in 20..40 {
            assert_eq!(lower.act(Act::Count(1), now).count, 8);
        }
        lower.act(Act::Charge(1), 40);
        let mut again = Key::new(AnyAlgorithm::SlidingWindow(ten), 0);
        assert!(again.import(&lower.export()));
        assert!(again.act(Act::Hit(1), 50).allowed);
        assert!(!again.act(Act::Hit(1), 50).allowed);
    }

    #[test]
    fn a_log_at_the_end_of_the_range_can_be_read_again() {
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(SlidingWindow::new(MAX, 1_000)), 0);
        log.act(Act::Charge(MAX), 0);
        assert!(!log.act(Act::Count(2), 0).allowed);
        let mut again = Key::new(log.algorithm, 0);
        assert!(again.import(&log.export()));
        assert_eq!(again.export(), log.export());
    }

    #[test]
    fn a_clock_far_behind_takes_the_log_along() {
        let mut log = Key::new(AnyAlgorithm::SlidingWindow(three()), 0);
        log.act(Act::Hit(1), 50_000);
        log.act(Act::Hit(2), 50_400);
        assert_eq!(log.act(Act::Hit(1), 10_000).retry_after, Some(600));
        assert!(log.act(Act::Hit(1), 10_600).allowed);
    }
}
