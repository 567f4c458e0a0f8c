//! A bucket of tokens that starts full and refills steadily, and its mirror, which starts empty and leaks.
//!
//! token_bucket: allowed when `tokens >= cost`. leaky_bucket: allowed when `level + cost <= capacity`.
//! Either way a denied hit changes nothing.
//!
//! With `level = capacity - tokens` they are one and the same: the same hits pass, with the same
//! waits. Both let bursts of up to `capacity` through and hold the average to the rate. What differs
//! is what is stored, which a changed capacity leaves as it is, and the number that is shown.
//!
//! Content is in units of `1 / per` of a hit, so that a millisecond moves `rate` units. The unit
//! does not depend on the rate, so a rate may change under a state, and there is nothing to round:
//! a bucket never drifts.

use super::Algorithm;
use super::content::Content;
use super::window::in_range;
use crate::number::{MAX, divide, divide_down, divide_up, product};
use alloc::vec::Vec;

/// The numbers of a bucket policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) kind: Kind,
    pub(crate) capacity: u64,
    pub(crate) rate: u64,
    pub(crate) per: u64,
    /// How long it takes to fill or empty the whole bucket, rounded up.
    pub(crate) period: u64,
    /// The capacity in units.
    full: i128,
    /// Whether the tokens of a key never used are no more than the capacity. Else they are as many as any capacity
    /// can be, so that a call which brings a larger one starts full as well.
    pub(crate) bounded: bool,
}

/// What a bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Tokens, which hits take: it starts full.
    Token,
    /// What hits poured in: it starts empty.
    Leaky,
}

impl Bucket {
    pub(crate) fn new(kind: Kind, capacity: u64, rate: u64, per: u64) -> Self {
        let full = product(capacity, per);
        Self { kind, capacity, rate, per, period: divide_up(full, rate), full: full as i128, bounded: false }
    }

    /// What `cost` weighs, in units.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn units(&self, cost: u64) -> i128 {
        product(cost, self.per) as i128
    }

    /// The largest content there can be, in units: accumulators saturate here.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn most(&self) -> i128 {
        self.units(MAX)
    }

    /// The level for what is stored, or what is stored for a level: each is the other's mirror.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn mirrored(&self, units: i128) -> i128 {
        match self.kind {
            Kind::Token => self.full - units,
            Kind::Leaky => units,
        }
    }

    /// How long `units` take to flow, rounded up: at most what every clock's range can take.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn time_for(&self, units: i128) -> u64 {
        if units < 0 { 0 } else { divide_up(units as u128, self.rate).min(MAX) }
    }

    /// The level in whole hits, rounded up.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn used(&self, view: &Content) -> u64 {
        divide_up(view.units as u128, self.per).min(MAX)
    }

    /// `units` of this bucket in the units of one with another `per`, rounded down.
    fn rescaled(&self, units: i128, per: u64) -> i128 {
        let (whole, rest) = divide_down(units, self.per);
        i128::from(whole) * i128::from(per) + i128::from(divide(product(rest, per), self.per))
    }

    /// The numbers by which content takes longest to flow away.
    pub(crate) fn widest(&self, call: &Self) -> Self {
        let widest = Self::new(self.kind, self.capacity.max(call.capacity), self.rate.min(call.rate), self.per);
        // No one checked that these numbers go together.
        Self { period: widest.period.min(MAX), ..widest }
    }
}

impl Algorithm for Bucket {
    type State = Content;
    /// The content is the level, whichever kind it is.
    type View = Content;

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Token => "token_bucket",
            Kind::Leaky => "leaky_bucket",
        }
    }

    fn scale(&self) -> u64 {
        self.per
    }

    fn with_scale(&self, scale: u64) -> Self {
        Self::new(self.kind, self.capacity, self.rate, scale)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn limit(&self) -> u64 {
        self.capacity
    }

    fn period(&self) -> u64 {
        self.period
    }

    fn fresh(&self, now: u64) -> Content {
        let units = match self.kind {
            Kind::Leaky => 0,
            Kind::Token if self.bounded => self.full,
            Kind::Token => self.most(),
        };
        Content { at: now, units }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Content) -> u64 {
        state.at
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn view(&self, state: &Content, now: u64) -> Content {
        let level = self.mirrored(state.units);
        if now >= state.at {
            let flowed = product(now - state.at, self.rate) as i128;
            return Content { at: now, units: (level - flowed).max(0) };
        }
        // The clock is behind. A bucket that is as if unused holds no time of its own, so that it is the same stored or not.
        let follows = level <= 0 || self.is_ahead(state, now);
        Content { at: if follows { now } else { state.at }, units: level.max(0) }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Content, cost: u64) -> bool {
        view.units + self.units(cost) <= self.full
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Content, cost: u64, _now: u64) {
        view.units += self.units(cost);
        // What is stored saturates, be it a level or a debt. A hit that fits is far from it.
        if view.units > self.full {
            view.units = view.units.min(self.most() + self.mirrored(0));
        }
    }

    fn assign(&self, view: &mut Content, count: u64, _now: u64) {
        view.units = self.mirrored(self.units(count));
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Content, view: Content) {
        *state = Content { units: self.mirrored(view.units), ..view };
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Content) -> u64 {
        match self.kind {
            Kind::Token => self.remaining(view),
            Kind::Leaky => self.used(view),
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Content) -> u64 {
        // The capacity is whole, so what is left beside the level rounded up is what would be left rounded down.
        self.capacity.saturating_sub(self.used(view))
    }

    fn fits_at(&self, _state: &Content, view: &Content, cost: u64) -> u64 {
        view.at + self.time_for(view.units + self.units(cost) - self.full)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Content) -> u64 {
        if view.units == 0 { 0 } else { view.at + self.time_for(view.units) }
    }

    /// Content in whole hits and a rest that is never negative, so that each number fits JSON.
    fn export(&self, state: &Content, numbers: &mut Vec<i64>) {
        let (whole, rest) = divide_down(state.units, self.per);
        numbers.extend([state.at as i64, whole, rest as i64]);
    }

    fn import(&self, numbers: &[i64]) -> Option<Content> {
        let &[at, whole, rest] = numbers else { return None };
        let (at, rest) = (in_range(at)?, in_range(rest)?);
        let units = i128::from(whole) * i128::from(self.per) + i128::from(rest);
        let least = if self.kind == Kind::Token { -self.most() } else { 0 };
        (rest < self.per && units >= least && units <= self.most()).then_some(Content { at, units })
    }

    fn convert(&self, state: Content, made_by: &Self, _now: u64) -> Content {
        // Against the client: tokens are rounded down, a level is rounded up.
        let units = match self.kind {
            Kind::Token => made_by.rescaled(state.units, self.per),
            Kind::Leaky => -made_by.rescaled(-state.units, self.per),
        };
        Content { units, ..state }
    }

    fn width(&self) -> usize {
        Content::width(self.per)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::Free;
    use crate::algorithm::{Act, Packed};

    fn token(capacity: u64) -> Bucket {
        Bucket::new(Kind::Token, capacity, 3, 1_000)
    }

    #[test]
    fn extremes_survive_packing() {
        for per in [1, 1_000, 1 << 21, (1 << 21) + 1, MAX] {
            let bucket = Bucket::new(Kind::Token, MAX, MAX, per);
            for at in [0, 1, 1_767_227_321_853, MAX] {
                for units in [0, 1, -1, bucket.full, bucket.most(), -bucket.most()] {
                    let state = Content { at, units };
                    let mut words = vec![0; bucket.width()];
                    state.pack(&mut words);
                    assert_eq!(Content::unpack(&words), state, "per {per}");
                    let mut numbers = Vec::new();
                    bucket.export(&state, &mut numbers);
                    assert_eq!(bucket.import(&numbers), Some(state), "per {per}");
                }
            }
        }
    }

    #[test]
    fn tokens_start_full_and_refill_to_the_millisecond() {
        let bucket = token(10);
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(10, Free), 0).reset_after, 3_334);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(1, Free), 333).retry_after, Some(1));
        assert!(bucket.act_on(&mut state, Act::Hit(1, Free), 334).allowed);
    }

    #[test]
    fn a_level_starts_empty_and_leaks_to_the_millisecond() {
        let bucket = Bucket::new(Kind::Leaky, 2, 3, 1_000);
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(2, Free), 0).count, 2);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(1, Free), 333).retry_after, Some(1));
        let allowed = bucket.act_on(&mut state, Act::Hit(1, Free), 334);
        assert_eq!((allowed.allowed, allowed.count, allowed.remaining), (true, 2, 0));
    }

    #[test]
    fn a_debt_past_every_clock_does_not_wrap_around() {
        let bucket = Bucket::new(Kind::Token, 1, 1, 60_000);
        let (mut state, now) = (bucket.fresh(0), 1_767_227_321_853);
        bucket.act_on(&mut state, Act::Inc(MAX), now);
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(1, Free), now).retry_after, Some(MAX));
        assert_eq!(bucket.ends_at(&state, now), now + MAX);
    }

    #[test]
    fn what_is_stored_saturates() {
        for kind in [Kind::Token, Kind::Leaky] {
            let bucket = Bucket::new(kind, 5, 1, 1_000);
            let mut state = bucket.fresh(0);
            for _ in 0..3 {
                bucket.act_on(&mut state, Act::Inc(MAX), 0);
            }
            assert_eq!(state.units.abs(), bucket.most(), "{kind:?}");
        }
    }

    #[test]
    fn a_larger_bucket_given_for_one_call_starts_full_as_well() {
        let (own, larger) = (token(10), token(100));
        let mut state = own.fresh(0);
        assert_eq!(larger.act_on(&mut state, Act::Hit(50, Free), 0).remaining, 50);
        assert_eq!(own.act_on(&mut state, Act::Hit(4, Free), 0).remaining, 6);
        assert_eq!(larger.act_on(&mut state, Act::Hit(1, Free), 0).remaining, 5);
    }

    #[test]
    fn a_debt_shows_as_nothing_and_is_paid_back() {
        let bucket = token(10);
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Inc(13), 0).count, 0);
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(0, Free), 0).retry_after, Some(1_000));
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(1, Free), 0).retry_after, Some(1_334));
    }
}
