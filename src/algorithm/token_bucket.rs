//! A bucket of tokens that starts full and refills steadily; a hit takes its cost in tokens.
//!
//! Allowed when `tokens >= cost`; a denied hit takes nothing.
//!
//! Lets bursts of up to `capacity` through and holds the average to the rate.

use super::Algorithm;
use super::bucket::{Bucket, Content};
use crate::number::divide;
use alloc::vec::Vec;

/// The numbers of a `token_bucket` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenBucket(pub(crate) Bucket);

impl Algorithm for TokenBucket {
    type State = Content;
    type View = Content;

    const NAME: &'static str = "token_bucket";

    fn scale(&self) -> u64 {
        self.0.per
    }

    fn with_scale(&self, scale: u64) -> Self {
        Self(Bucket::new(self.0.capacity, self.0.rate, scale))
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn limit(&self) -> u64 {
        self.0.capacity
    }

    fn period(&self) -> u64 {
        self.0.period
    }

    fn fresh(&self, now: u64) -> Content {
        Content { at: now, units: if self.0.bounded { self.0.full } else { self.0.most() } }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Content) -> u64 {
        state.at
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn view(&self, state: &Content, now: u64) -> Content {
        let (at, refilled) = self.0.flowed(state, now, state.units >= self.0.full);
        Content { at, units: (state.units + refilled).min(self.0.full) }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Content, cost: u64) -> bool {
        view.units >= self.0.units(cost)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Content, cost: u64, _now: u64) {
        view.units -= self.0.units(cost);
        if view.units < 0 {
            view.units = view.units.max(-self.0.most());
        }
    }

    fn assign(&self, view: &mut Content, count: u64, _now: u64) {
        view.units = self.0.units(count);
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn commit(&self, state: &mut Content, view: Content) {
        *state = view;
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn count(&self, view: &Content) -> u64 {
        if view.units < 0 { 0 } else { divide(view.units as u128, self.0.per) }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Content) -> u64 {
        self.count(view)
    }

    fn fits_at(&self, _state: &Content, view: &Content, cost: u64) -> u64 {
        view.at + self.0.time_for(self.0.units(cost) - view.units)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Content) -> u64 {
        if view.units >= self.0.full { 0 } else { view.at + self.0.time_for(self.0.full - view.units) }
    }

    fn export(&self, state: &Content, numbers: &mut Vec<i64>) {
        self.0.export(state, numbers);
    }

    fn import(&self, numbers: &[i64]) -> Option<Content> {
        self.0.import(numbers)
    }

    fn convert(&self, state: Content, made_by: &Self, _now: u64) -> Content {
        Content { units: made_by.0.rescaled(state.units, self.0.per), ..state }
    }

    fn width(&self) -> usize {
        self.0.width()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Denied::Free;
    use crate::algorithm::Act;
    use crate::number::MAX;

    fn bucket() -> TokenBucket {
        TokenBucket(Bucket::new(10, 3, 1_000))
    }

    #[test]
    fn it_starts_full_and_refills_to_the_millisecond() {
        let bucket = bucket();
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(10, Free), 0).reset_after, 3_334);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(1, Free), 333).retry_after, Some(1));
        assert!(bucket.act_on(&mut state, Act::Hit(1, Free), 334).allowed);
    }

    #[test]
    fn a_debt_past_every_clock_does_not_wrap_around() {
        let bucket = TokenBucket(Bucket::new(1, 1, 60_000));
        let (mut state, now) = (bucket.fresh(0), 1_767_227_321_853);
        bucket.act_on(&mut state, Act::Inc(MAX), now);
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(1, Free), now).retry_after, Some(MAX));
        assert_eq!(bucket.ends_at(&state, now), now + MAX);
    }

    #[test]
    fn a_larger_bucket_given_for_one_call_starts_full_as_well() {
        let (own, larger) = (bucket(), TokenBucket(Bucket::new(100, 3, 1_000)));
        let mut state = own.fresh(0);
        assert_eq!(larger.act_on(&mut state, Act::Hit(50, Free), 0).remaining, 50);
        assert_eq!(own.act_on(&mut state, Act::Hit(4, Free), 0).remaining, 6);
        assert_eq!(larger.act_on(&mut state, Act::Hit(1, Free), 0).remaining, 5);
    }

    #[test]
    fn a_debt_shows_as_nothing_and_is_paid_back() {
        let bucket = bucket();
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Inc(13), 0).count, 0);
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(0, Free), 0).retry_after, Some(1_000));
        assert_eq!(bucket.act_on(&mut state.clone(), Act::Hit(1, Free), 0).retry_after, Some(1_334));
    }
}
