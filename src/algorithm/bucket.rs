//! A bucket that hits fill and time empties: `token_bucket` and `leaky_bucket`.
//!
//! Allowed when `level + cost <= capacity`. The two names are one algorithm read from either side: the
//! tokens of a token bucket are `capacity - level`. Both let bursts of up to `capacity` through and
//! hold the average to the rate. A denied hit changes nothing.
//!
//! A level is whole hits and a rest in units of `1 / per` of one, of which a millisecond moves `rate`.
//! The unit does not depend on the rate, so a rate may change under a state, and there is nothing to
//! round: a bucket never drifts.
//!
//! A charge brings its rate: a state has the rate of its last charge, by whatever it was charged. It flows at that rate
//! or at the call's, whichever is faster, so that it ends at a time of its own, whichever call reads it and however often
//! it was read before. A refund is no charge, and keeps the rate.

use super::level::{LastCharge, Level};
use super::{Algorithm, Charge, Push};
use crate::growth::OutOfMemory;
use crate::number::{MAX, in_range, ratio};

/// The numbers of a bucket policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) kind: Kind,
    pub(crate) capacity: u64,
    /// 0 if only the shape is known: then the state flows at its own rate.
    pub(crate) rate: u64,
    pub(crate) per: u64,
    /// How long it takes to empty the whole bucket, rounded up.
    pub(crate) period: u64,
    /// What a state that is charged by these numbers keeps of them.
    charge: LastCharge,
}

/// The meaning of the count in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The tokens that are left.
    Token,
    /// The level.
    Leaky,
}

/// The level as of a time.
pub(crate) struct View {
    level: Level,
    followed: bool,
}

impl Bucket {
    pub(crate) fn new(kind: Kind, capacity: u64, rate: u64, per: u64) -> Self {
        let period = ratio(capacity, per, rate - 1, rate);
        Self { kind, capacity, rate, per, period, charge: LastCharge::new(rate, period) }
    }

    /// Returns a bucket of which only the shape is known.
    pub(crate) fn of_shape(kind: Kind, per: u64) -> Self {
        Self { kind, capacity: MAX, rate: 0, per, period: MAX, charge: LastCharge::new(1, MAX) }
    }

    /// Returns the bucket with another capacity and rate.
    pub(crate) fn with_numbers(&self, capacity: u64, rate: u64) -> Self {
        let other = Self::new(self.kind, capacity, rate, self.per);
        // The period of this combination has not been checked.
        Self { period: other.period.min(MAX), ..other }
    }

    /// Returns the rate at which a state flows.
    #[inline(always)]
    fn flow(&self, level: &Level) -> u64 {
        level.last.rate().max(self.rate)
    }

    /// Returns the level at a later time.
    #[inline(always)]
    fn flowed(&self, level: Level, now: u64) -> Level {
        let flowed = self.flow_in(now - level.at, self.flow(&level));
        let (hits, rest) = self.less((level.hits, level.rest), flowed);
        Level { at: now, hits, rest, last: level.last }
    }

    /// Returns how much flows in a time at a rate: whole hits, and the rest.
    #[inline(always)]
    fn flow_in(&self, elapsed: u64, rate: u64) -> (u64, u64) {
        let hits = ratio(elapsed, rate, 0, self.per);
        // These may wrap around, but their difference does not.
        (hits, elapsed.wrapping_mul(rate).wrapping_sub(hits.wrapping_mul(self.per)))
    }

    /// Returns an amount less another; nothing if that is more.
    #[inline(always)]
    fn less(&self, (hits, rest): (u64, u64), (by, rest_by): (u64, u64)) -> (u64, u64) {
        let (left, borrows) = rest.overflowing_sub(rest_by);
        let by = by + u64::from(borrows);
        let borrowed = if borrows { self.per } else { 0 };
        if by > hits { (0, 0) } else { (hits - by, left.wrapping_add(borrowed)) }
    }

    /// Returns how long an amount takes to flow, rounded up and at most [`MAX`].
    fn time_for(&self, hits: u64, rest: u64, rate: u64) -> u64 {
        let rate = rate.max(1);
        ratio(hits, self.per, rest + rate - 1, rate).min(MAX)
    }

    /// Returns when a stored level is gone by its own rate; `now` or earlier if it is.
    pub(crate) fn level_ends_at(&self, state: &[u64], now: u64) -> u64 {
        let level = Level::unpack(state, self.per);
        if level.is_empty() {
            return 0;
        }
        let at = if level.is_far_ahead(now) { now } else { level.at };
        at + self.time_for(level.hits, level.rest, level.last.rate())
    }

    /// Returns the level in whole hits, rounded down.
    pub(crate) fn whole_level(&self, state: &[u64], now: u64) -> u64 {
        self.view(state, now).level.hits
    }

    /// Returns whether a state flows at this bucket's rate and no other.
    pub(crate) fn flows_alike(&self, state: &[u64]) -> bool {
        let level = Level::unpack(state, self.per);
        level.is_empty() || level.last.rate() == self.rate
    }
}

impl Algorithm for Bucket {
    type State = [u64];
    type View = View;

    fn limit(&self) -> u64 {
        self.capacity
    }

    fn period(&self) -> u64 {
        self.period
    }

    fn lead(&self) -> u64 {
        self.charge.lead()
    }

    #[inline(always)]
    fn view(&self, state: &[u64], now: u64) -> View {
        let mut level = Level::unpack(state, self.per);
        let followed = level.is_far_ahead(now);
        if now > level.at {
            level = self.flowed(level, now);
        } else if followed || level.is_empty() {
            // An empty bucket has no time of its own, so that it is the same whether stored or not.
            level.at = now;
        }
        View { level, followed: followed && !level.is_empty() }
    }

    fn followed(&self, view: &View) -> bool {
        view.followed
    }

    fn used(&self, view: &View) -> u64 {
        // The capacity and costs are whole, so the level may be rounded up before the comparison.
        view.level.hits + u64::from(view.level.rest > 0)
    }

    #[inline(always)]
    fn charge(&self, view: &mut View, cost: u64, now: u64) {
        let level = &mut view.level;
        level.hits += cost;
        if level.hits >= MAX {
            (level.hits, level.rest) = (MAX, 0);
        }
        // A state that is ahead of the clock stays so: a shorter lead holds once the clock has reached it.
        level.last = if level.at > now { self.charge.leading(level.last) } else { self.charge };
    }

    fn refund(&self, view: &mut View, cost: u64, _now: u64) {
        match view.level.hits.checked_sub(cost) {
            Some(hits) => view.level.hits = hits,
            None => (view.level.hits, view.level.rest) = (0, 0),
        }
    }

    /// Gives back what of the hit is still in the bucket. Without the hit, the level would be lower by its cost, unless it
    /// had become empty meanwhile: since the hit, the level was at least what was beside it plus the cost less all that can
    /// have flowed, and by no more than what that lacks of the cost was the bucket kept from being empty.
    fn undo(&self, state: &mut [u64], cost: u64, charge: Charge, now: u64) -> u64 {
        let mut view = self.view(state, now);
        // Of a level that has saturated, it is not known how much the others used.
        if view.followed || view.level.hits >= MAX {
            return 0;
        }
        let level = (view.level.hits, view.level.rest);
        let flowed = self.flow_in(now - charge.at, self.flow(&view.level));
        let left = self.less((cost + charge.beside, 0), flowed);
        let given = left.min((cost, 0)).min(level);
        (view.level.hits, view.level.rest) = self.less(level, given);
        let whole = given.0 + u64::from(given.1 > 0);
        if whole > 0 {
            self.commit(state, view);
        }
        whole
    }

    #[inline(always)]
    fn wipe(&self, view: &mut View, count: u64) -> u64 {
        (view.level.hits, view.level.rest) = (0, 0);
        match self.kind {
            // The caller has checked that `count` is within the capacity.
            Kind::Token => self.capacity - count,
            Kind::Leaky => count,
        }
    }

    #[inline(always)]
    fn commit(&self, state: &mut [u64], view: View) {
        view.level.pack(state, self.per);
    }

    #[inline(always)]
    fn fits_at(&self, _state: &[u64], view: &View, cost: u64) -> u64 {
        let Level { at, hits, rest, .. } = view.level;
        at + self.time_for(hits + cost - self.capacity, rest, self.flow(&view.level))
    }

    #[inline(always)]
    fn more_at(&self, state: &[u64], view: &View, used: u64) -> u64 {
        if used > self.capacity {
            return self.fits_at(state, view, 1);
        }
        let Level { at, rest, .. } = view.level;
        let part = if rest > 0 { rest } else { self.per };
        at + part.div_ceil(self.flow(&view.level).max(1))
    }

    #[inline(always)]
    fn unused_at(&self, view: &View) -> u64 {
        let Level { at, hits, rest, .. } = view.level;
        if view.level.is_empty() { 0 } else { at + self.time_for(hits, rest, self.flow(&view.level)) }
    }

    fn width(&self) -> usize {
        Level::width(self.per)
    }

    fn latest(&self, state: &[u64]) -> u64 {
        let level = Level::unpack(state, self.per);
        // An empty bucket has no time of its own.
        if level.is_empty() { 0 } else { level.at }
    }

    fn clear(&self, state: &mut [u64], _now: u64) {
        Level::default().pack(state, self.per);
    }

    fn export(&self, state: &[u64], push: Push<'_>) -> Result<(), OutOfMemory> {
        let level = Level::unpack(state, self.per);
        let mut numbers = [level.at, level.hits, level.rest].into_iter().chain(level.last.numbers());
        numbers.try_for_each(|number| push(number as i64))
    }

    fn import(&self, state: &mut [u64], numbers: &[i64]) -> Result<bool, OutOfMemory> {
        let &[at, hits, rest, rate, lead] = numbers else { return Ok(false) };
        let most = MAX as i64 - i64::from(rest > 0);
        let in_range = [at, hits, rest].into_iter().all(in_range) && hits <= most && rest < self.per as i64;
        let last = LastCharge::from_numbers([rate, lead]);
        let Some(last) = last.filter(|_| in_range && (rate > 0 || hits + rest == 0)) else { return Ok(false) };
        let [at, hits, rest] = [at, hits, rest].map(|number| number as u64);
        Level { at, hits, rest, last }.pack(state, self.per);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Act;
    use crate::algorithm::any::AnyAlgorithm;
    use crate::algorithm::testing::Key;

    fn token(capacity: u64) -> Bucket {
        Bucket::new(Kind::Token, capacity, 3, 1_000)
    }

    #[test]
    fn extremes_survive_packing() {
        for per in [1, 1_000, 1 << 22, (1 << 22) + 1, MAX] {
            let bucket = Bucket::new(Kind::Token, MAX, MAX, per);
            for at in [0, 1, 1_767_227_321_853, MAX] {
                for (hits, rest, rate) in [(0, 0, 0), (0, per - 1, 1), (MAX - 1, per - 1, MAX), (MAX, 0, 7)] {
                    let state = Level { at, hits, rest, last: LastCharge::new(rate, at) };
                    let mut key = Key::new(AnyAlgorithm::Bucket(bucket), 0);
                    state.pack(&mut key.words, per);
                    assert_eq!(Level::unpack(&key.words, per), state, "per {per}");
                    let (numbers, mut again) = (key.export(), Key::new(AnyAlgorithm::Bucket(bucket), 0));
                    assert!(again.import(&numbers));
                    assert_eq!(again.export(), numbers, "per {per}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_not_a_level_are_rejected() {
        let (most, mut key) = (MAX as i64, Key::new(AnyAlgorithm::Bucket(Bucket::new(Kind::Leaky, 5, 1, 1_000)), 0));
        let before = key.words.clone();
        for wrong in [
            [-1, 0, 0, 1, 0],
            [most + 1, 0, 0, 1, 0],
            [0, -1, 999, 1, 0],
            [0, most, 1, 1, 0],
            [0, most + 1, 0, 1, 0],
            [0, 0, 1_000, 1, 0],
            [0, 0, -1, 1, 0],
            [0, 1, 0, 0, 0],
            [0, 0, 1, 0, 0],
            [0, 1, 0, -1, 0],
            [0, 1, 0, most + 1, 0],
            [0, 1, 0, 1, -1],
            [0, 1, 0, 1, 2_047],
        ] {
            assert!(!key.import(&wrong), "{wrong:?}");
        }
        assert!(!key.import(&[0, 0, 0, 0]) && !key.import(&[0; 6]));
        assert_eq!(key.words, before);
    }

    #[test]
    fn tokens_start_full_and_refill_to_the_millisecond() {
        let bucket = token(10);
        let mut state = Key::new(AnyAlgorithm::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Hit(10), 0).reset_after, 3_334);
        let denied = state.act(Act::Hit(1), 333);
        assert_eq!((denied.retry_after, denied.more_after), (Some(1), 1));
        assert!(state.act(Act::Hit(1), 334).allowed);
    }

    #[test]
    fn a_level_starts_empty_and_leaks_to_the_millisecond() {
        let bucket = Bucket::new(Kind::Leaky, 2, 3, 1_000);
        let mut state = Key::new(AnyAlgorithm::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Hit(2), 0).count, 2);
        assert_eq!(state.act(Act::Hit(1), 333).retry_after, Some(1));
        let allowed = state.act(Act::Hit(1), 334);
        assert_eq!((allowed.allowed, allowed.count, allowed.remaining), (true, 2, 0));
    }

    #[test]
    fn more_remains_when_the_next_whole_hit_has_flowed() {
        let mut state = Key::new(AnyAlgorithm::Bucket(token(10)), 0);
        assert_eq!(state.act(Act::Hit(1), 0).more_after, 334);
        assert_eq!(state.peek(Act::LOOK, 100).more_after, 234);
        assert_eq!(state.peek(Act::LOOK, 334).more_after, 0);
        assert_eq!(state.act(Act::Charge(14), 334).more_after, 1_667);
    }

    #[test]
    fn a_debt_past_every_clock_does_not_wrap_around() {
        let bucket = Bucket::new(Kind::Token, 1, 1, 60_000);
        let (mut state, now) = (Key::new(AnyAlgorithm::Bucket(bucket), 0), 1_767_227_321_853);
        state.act(Act::Charge(MAX), now);
        assert_eq!(state.peek(Act::Hit(1), now).retry_after, Some(MAX));
        assert_eq!(state.ends_at(now), now + MAX);
    }

    #[test]
    fn a_level_saturates() {
        for kind in [Kind::Token, Kind::Leaky] {
            let bucket = Bucket::new(kind, 5, 1, 1_000);
            let mut state = Key::new(AnyAlgorithm::Bucket(bucket), 0);
            for _ in 0..3 {
                state.act(Act::Charge(MAX), 0);
            }
            let Level { hits, rest, .. } = Level::unpack(&state.words, 1_000);
            assert_eq!((hits, rest), (MAX, 0), "{kind:?}");
        }
    }

    #[test]
    fn another_capacity_applies_to_what_is_used() {
        let (own, larger) = (token(10), token(100));
        let mut state = Key::new(AnyAlgorithm::Bucket(own), 0);
        state.algorithm = AnyAlgorithm::Bucket(larger);
        assert_eq!(state.act(Act::Hit(50), 0).remaining, 50);
        state.algorithm = AnyAlgorithm::Bucket(own);
        assert!(!state.act(Act::Hit(1), 0).allowed);
        state.algorithm = AnyAlgorithm::Bucket(larger);
        assert_eq!(state.act(Act::Hit(1), 0).remaining, 49);
    }

    #[test]
    fn a_state_flows_at_the_faster_of_its_rate_and_the_calls_and_ends_by_its_own() {
        let bucket = |rate| AnyAlgorithm::Bucket(Bucket::new(Kind::Token, 10, rate, 1_000));
        let mut state = Key::new(bucket(1), 0);
        state.act(Act::Hit(10), 0);
        assert_eq!(state.ends_at(0), 10_000);
        state.algorithm = bucket(5);
        // A read flows faster, and changes nothing.
        assert_eq!((state.peek(Act::LOOK, 1_000).remaining, state.ends_at(1_000)), (5, 10_000));
        // A refund keeps the rate, every charge replaces it.
        state.act(Act::Refund(1), 1_000);
        assert_eq!(state.ends_at(1_000), 5_000);
        for (act, ends_at) in [(Act::Charge(2), 2_200), (Act::Hit(1), 2_400), (Act::Set(4), 2_200)] {
            state.act(act, 1_000);
            assert_eq!(state.ends_at(1_000), ends_at, "{act:?}");
        }
        state.algorithm = bucket(1);
        assert_eq!(state.peek(Act::LOOK, 2_000).remaining, 9);
    }

    #[test]
    fn a_state_is_far_ahead_by_the_numbers_of_its_last_charge_whoever_reads_it() {
        let bucket = |capacity| AnyAlgorithm::Bucket(Bucket::new(Kind::Token, capacity, 1, 1_000));
        let mut state = Key::new(bucket(60), 100_000);
        state.act(Act::Hit(10), 100_000);
        // The clock steps back by 60 s, the full period of 60 tokens and six times that of 10.
        state.algorithm = bucket(10);
        assert_eq!(state.peek(Act::Hit(1), 40_000).retry_after, Some(61_000));
        assert_eq!(state.ends_at(40_000), 110_000);
        // A charge by the smaller numbers brings their lead once the clock has reached the state.
        state.act(Act::Charge(1), 40_000);
        assert_eq!(state.peek(Act::Hit(1), 40_000).retry_after, Some(62_000));
        state.act(Act::Charge(1), 100_001);
        assert_eq!(state.peek(Act::Hit(1), 40_000).retry_after, Some(2_999));
    }

    #[test]
    fn a_debt_shows_as_nothing_and_is_paid_back() {
        let bucket = token(10);
        let mut state = Key::new(AnyAlgorithm::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Charge(13), 0).count, 0);
        assert_eq!(state.peek(Act::Hit(0), 0).retry_after, Some(1_000));
        assert_eq!(state.peek(Act::Hit(1), 0).retry_after, Some(1_334));
    }
}
