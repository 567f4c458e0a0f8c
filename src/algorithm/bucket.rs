//! A bucket of tokens that starts full and refills steadily, and its mirror, which starts empty and leaks.
//!
//! token_bucket: allowed when `tokens >= cost`. leaky_bucket: allowed when `level + cost <= capacity`.
//! Either way a denied hit changes nothing.
//!
//! With `level = capacity - tokens` they are one and the same: the same hits pass, with the same
//! waits. Both let bursts of up to `capacity` through and hold the average to the rate. They differ
//! in the stored number, which a changed capacity leaves as it is, and in the count of a decision.
//!
//! Content is whole hits and a rest in units of `1 / per` of one, of which a millisecond moves `rate`.
//! The unit does not depend on the rate, so a rate may change under a state, and there is nothing to
//! round: a bucket never drifts.

use super::content::Content;
use super::{Algorithm, Push};
use crate::memory::OutOfMemory;
use crate::number::{MAX, in_range, ratio};

/// The numbers of a bucket policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) kind: Kind,
    pub(crate) capacity: u64,
    pub(crate) rate: u64,
    pub(crate) per: u64,
    /// How long it takes to fill or empty the whole bucket, rounded up.
    pub(crate) period: u64,
    /// Whether a key never used starts with no more tokens than the capacity. Else it starts with [`MAX`], so that a
    /// call with a larger capacity of its own starts full as well.
    pub(crate) bounded: bool,
}

/// The content of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Tokens, which hits take. The bucket starts full.
    Token,
    /// A level, which hits raise. The bucket starts empty.
    Leaky,
}

/// The level as of a time, for both kinds of bucket. It is never negative.
pub(crate) struct View {
    level: Content,
    followed: bool,
}

impl Bucket {
    pub(crate) fn new(kind: Kind, capacity: u64, rate: u64, per: u64) -> Self {
        let period = ratio(capacity, per, rate - 1, rate);
        Self { kind, capacity, rate, per, period, bounded: false }
    }

    /// Returns the larger capacity and the lower rate of two buckets: content takes longest to flow away under them.
    pub(crate) fn widest(&self, call: &Self) -> Self {
        Self { bounded: false, ..self.with_numbers(self.capacity.max(call.capacity), self.rate.min(call.rate)) }
    }

    /// Returns the bucket with another capacity and rate.
    pub(crate) fn with_numbers(&self, capacity: u64, rate: u64) -> Self {
        let other = Self::new(self.kind, capacity, rate, self.per);
        // The period of this combination has not been checked.
        Self { period: other.period.min(MAX), bounded: self.bounded, ..other }
    }

    /// Converts stored content into a level, or a level into stored content: each is the other's mirror.
    #[inline(always)]
    fn mirrored(&self, content: Content) -> Content {
        let Content { at, hits, rest } = content;
        match (self.kind, rest) {
            (Kind::Leaky, _) => content,
            (Kind::Token, 0) => Content { at, hits: self.capacity as i64 - hits, rest },
            (Kind::Token, _) => Content { at, hits: self.capacity as i64 - hits - 1, rest: self.per - rest },
        }
    }

    /// Returns the level at a later time. It may be negative.
    #[inline(always)]
    fn flowed(&self, level: Content, now: u64) -> Content {
        let elapsed = now - level.at;
        let hits = ratio(elapsed, self.rate, 0, self.per);
        // These may wrap around, but their difference does not.
        let rest = elapsed.wrapping_mul(self.rate).wrapping_sub(hits.wrapping_mul(self.per));
        let (left, borrows) = level.rest.overflowing_sub(rest);
        let borrowed = if borrows { self.per } else { 0 };
        Content { at: now, hits: level.hits - hits as i64 - i64::from(borrows), rest: left.wrapping_add(borrowed) }
    }

    /// Returns how long an amount takes to flow, rounded up and at most [`MAX`].
    fn time_for(&self, hits: u64, rest: u64) -> u64 {
        ratio(hits, self.per, rest + self.rate - 1, self.rate).min(MAX)
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

    #[inline(always)]
    fn view(&self, state: &[u64], now: u64) -> View {
        let mut level = self.mirrored(Content::unpack(state, self.per));
        let followed = level.at > now + self.period;
        if now > level.at {
            level = self.flowed(level, now);
        } else if followed || level.hits < 0 || (level.hits, level.rest) == (0, 0) {
            // A bucket that is as if unused has no time of its own, so that it is the same whether stored or not.
            level.at = now;
        }
        if level.hits < 0 {
            (level.hits, level.rest) = (0, 0);
        }
        View { level, followed }
    }

    fn followed(&self, view: &View) -> bool {
        view.followed
    }

    fn used(&self, view: &View) -> u64 {
        // The capacity and costs are whole, so the level may be rounded up before the comparison.
        view.level.hits as u64 + u64::from(view.level.rest > 0)
    }

    #[inline(always)]
    fn charge(&self, view: &mut View, cost: u64, _now: u64) {
        view.level.hits += cost as i64;
        // The stored content saturates, be it a level or a debt.
        let most = self.mirrored(Content { at: 0, hits: 0, rest: 0 }).hits + MAX as i64;
        if view.level.hits >= most {
            (view.level.hits, view.level.rest) = (most, 0);
        }
    }

    fn refund(&self, view: &mut View, cost: u64, _now: u64) {
        view.level.hits -= cost as i64;
        if view.level.hits < 0 {
            (view.level.hits, view.level.rest) = (0, 0);
        }
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
        self.mirrored(view.level).pack(state, self.per);
    }

    #[inline(always)]
    fn fits_at(&self, _state: &[u64], view: &View, cost: u64) -> u64 {
        let Content { at, hits, rest } = view.level;
        at + self.time_for(hits as u64 + cost - self.capacity, rest)
    }

    #[inline(always)]
    fn unused_at(&self, view: &View) -> u64 {
        match view.level {
            Content { hits: 0, rest: 0, .. } => 0,
            Content { at, hits, rest } => at + self.time_for(hits as u64, rest),
        }
    }

    fn width(&self) -> usize {
        if Content::is_narrow(self.per) { 2 } else { 3 }
    }

    fn latest(&self, state: &[u64]) -> u64 {
        // A bucket that is as if unused has no time of its own.
        match self.mirrored(Content::unpack(state, self.per)) {
            Content { hits: ..0, .. } | Content { hits: 0, rest: 0, .. } => 0,
            Content { at, .. } => at,
        }
    }

    fn clear(&self, state: &mut [u64], now: u64) {
        let hits = match self.kind {
            Kind::Leaky => 0,
            Kind::Token if self.bounded => self.capacity,
            Kind::Token => MAX,
        };
        Content { at: now, hits: hits as i64, rest: 0 }.pack(state, self.per);
    }

    fn export(&self, state: &[u64], push: Push<'_>) -> Result<(), OutOfMemory> {
        let Content { at, hits, rest } = Content::unpack(state, self.per);
        [at as i64, hits, rest as i64].into_iter().try_for_each(push)
    }

    fn import(&self, state: &mut [u64], per: u64, numbers: &[i64]) -> Result<bool, OutOfMemory> {
        let &[at, hits, rest] = numbers else { return Ok(false) };
        let least = if self.kind == Kind::Token { -(MAX as i64) } else { 0 };
        let most = MAX as i64 - i64::from(rest > 0);
        if !in_range(at) || !in_range(rest) || rest as u64 >= per || hits < least || hits > most {
            return Ok(false);
        }
        // Against the client: tokens are rounded down, a level is rounded up.
        let up = if self.kind == Kind::Token { 0 } else { per - 1 };
        let rest = ratio(rest as u64, self.per, up, per);
        let carry = i64::from(rest == self.per);
        Content { at: at as u64, hits: hits + carry, rest: if carry > 0 { 0 } else { rest } }.pack(state, self.per);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Act;
    use crate::algorithm::rule::Rule;
    use crate::algorithm::testing::Key;

    fn token(capacity: u64) -> Bucket {
        Bucket::new(Kind::Token, capacity, 3, 1_000)
    }

    #[test]
    fn extremes_survive_packing() {
        for per in [1, 1_000, 1 << 21, (1 << 21) + 1, MAX] {
            let bucket = Bucket::new(Kind::Token, MAX, MAX, per);
            for at in [0, 1, 1_767_227_321_853, MAX] {
                for (hits, rest) in [(0, 0), (0, per - 1), (-1, 0), (-1, per - 1), (MAX as i64, 0), (-(MAX as i64), 0)]
                {
                    let state = Content { at, hits, rest };
                    let mut key = Key::new(Rule::Bucket(bucket), 0);
                    state.pack(&mut key.words, per);
                    assert_eq!(Content::unpack(&key.words, per), state, "per {per}");
                    let (numbers, mut again) = (key.export(), Key::new(Rule::Bucket(bucket), 0));
                    assert!(again.import(per, &numbers));
                    assert_eq!(again.words, key.words, "per {per}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_content_is_refused() {
        let (most, mut key) = (MAX as i64, Key::new(Rule::Bucket(Bucket::new(Kind::Leaky, 5, 1, 1_000)), 0));
        let before = key.words.clone();
        for wrong in
            [[-1, 0, 0], [most + 1, 0, 0], [0, -1, 999], [0, most, 1], [0, most + 1, 0], [0, 0, 1_000], [0, 0, -1]]
        {
            assert!(!key.import(1_000, &wrong), "{wrong:?}");
        }
        assert!(!key.import(1_000, &[0, 0]) && !key.import(1_000, &[0; 4]));
        assert_eq!(key.words, before);
        assert!(Key::new(Rule::Bucket(token(5)), 0).import(1_000, &[0, -most, 999]));
        assert!(!Key::new(Rule::Bucket(token(5)), 0).import(1_000, &[0, -most - 1, 999]));
    }

    #[test]
    fn another_per_is_rounded_against_the_client() {
        for (kind, expected) in [(Kind::Token, [7, 2, 1]), (Kind::Leaky, [7, 2, 2])] {
            let mut key = Key::new(Rule::Bucket(Bucket::new(kind, 5, 1, 3)), 0);
            assert!(key.import(1_000, &[7, 2, 334]));
            assert_eq!(key.export(), expected, "{kind:?}");
        }
        let mut key = Key::new(Rule::Bucket(Bucket::new(Kind::Leaky, 5, 1, 3)), 0);
        assert!(key.import(1_000, &[7, 2, 999]));
        assert_eq!(key.export(), [7, 3, 0]);
    }

    #[test]
    fn tokens_start_full_and_refill_to_the_millisecond() {
        let bucket = token(10);
        let mut state = Key::new(Rule::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Hit(10), 0).reset_after, 3_334);
        assert_eq!(state.act(Act::Hit(1), 333).retry_after, Some(1));
        assert!(state.act(Act::Hit(1), 334).allowed);
    }

    #[test]
    fn a_level_starts_empty_and_leaks_to_the_millisecond() {
        let bucket = Bucket::new(Kind::Leaky, 2, 3, 1_000);
        let mut state = Key::new(Rule::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Hit(2), 0).count, 2);
        assert_eq!(state.act(Act::Hit(1), 333).retry_after, Some(1));
        let allowed = state.act(Act::Hit(1), 334);
        assert_eq!((allowed.allowed, allowed.count, allowed.remaining), (true, 2, 0));
    }

    #[test]
    fn a_debt_past_every_clock_does_not_wrap_around() {
        let bucket = Bucket::new(Kind::Token, 1, 1, 60_000);
        let (mut state, now) = (Key::new(Rule::Bucket(bucket), 0), 1_767_227_321_853);
        state.act(Act::Inc(MAX), now);
        assert_eq!(state.peek(Act::Hit(1), now).retry_after, Some(MAX));
        assert_eq!(state.ends_at(now), now + MAX);
    }

    #[test]
    fn what_is_stored_saturates() {
        for kind in [Kind::Token, Kind::Leaky] {
            let bucket = Bucket::new(kind, 5, 1, 1_000);
            let mut state = Key::new(Rule::Bucket(bucket), 0);
            for _ in 0..3 {
                state.act(Act::Inc(MAX), 0);
            }
            let Content { hits, rest, .. } = Content::unpack(&state.words, 1_000);
            assert_eq!((hits.unsigned_abs(), rest), (MAX, 0), "{kind:?}");
        }
    }

    #[test]
    fn a_larger_bucket_given_for_one_call_starts_full_as_well() {
        let (own, larger) = (token(10), token(100));
        let mut state = Key::new(Rule::Bucket(own), 0);
        state.rule = Rule::Bucket(larger);
        assert_eq!(state.act(Act::Hit(50), 0).remaining, 50);
        state.rule = Rule::Bucket(own);
        assert_eq!(state.act(Act::Hit(4), 0).remaining, 6);
        state.rule = Rule::Bucket(larger);
        assert_eq!(state.act(Act::Hit(1), 0).remaining, 5);
    }

    #[test]
    fn a_debt_shows_as_nothing_and_is_paid_back() {
        let bucket = token(10);
        let mut state = Key::new(Rule::Bucket(bucket), 0);
        assert_eq!(state.act(Act::Inc(13), 0).count, 0);
        assert_eq!(state.peek(Act::Hit(0), 0).retry_after, Some(1_000));
        assert_eq!(state.peek(Act::Hit(1), 0).retry_after, Some(1_334));
    }
}
