//! A bucket that starts empty and leaks steadily; a hit pours its cost in.
//!
//! Allowed when `level + cost <= capacity`; a denied hit adds nothing.
//!
//! The mirror of the token bucket: the same hits pass, and the number that is shown rises with use.

use super::Algorithm;
use super::bucket::{Bucket, Content};
use crate::number::{MAX, divide_up};
use alloc::vec::Vec;

/// The numbers of a `leaky_bucket` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeakyBucket(pub(crate) Bucket);

impl Algorithm for LeakyBucket {
    type State = Content;
    type View = Content;

    const NAME: &'static str = "leaky_bucket";

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
        Content { at: now, units: 0 }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn latest(&self, state: &Content) -> u64 {
        state.at
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn view(&self, state: &Content, now: u64) -> Content {
        let (at, leaked) = self.0.flowed(state, now, state.units == 0);
        Content { at, units: (state.units - leaked).max(0) }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn fits(&self, view: &Content, cost: u64) -> bool {
        view.units + self.0.units(cost) <= self.0.full
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn charge(&self, view: &mut Content, cost: u64, _now: u64) {
        view.units = (view.units + self.0.units(cost)).min(self.0.most());
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
        divide_up(view.units as u128, self.0.per).min(MAX)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn remaining(&self, view: &Content) -> u64 {
        // The capacity is whole, so what is left beside the level rounded up is what would be left rounded down.
        self.0.capacity.saturating_sub(self.count(view))
    }

    fn fits_at(&self, _state: &Content, view: &Content, cost: u64) -> u64 {
        view.at + self.0.time_for(view.units + self.0.units(cost) - self.0.full)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn unused_at(&self, view: &Content) -> u64 {
        if view.units == 0 { 0 } else { view.at + self.0.time_for(view.units) }
    }

    fn export(&self, state: &Content, numbers: &mut Vec<i64>) {
        self.0.export(state, numbers);
    }

    fn import(&self, numbers: &[i64]) -> Option<Content> {
        self.0.import(numbers).filter(|content| content.units >= 0)
    }

    fn convert(&self, state: Content, made_by: &Self, _now: u64) -> Content {
        // Rounded up: the negative of the negative rounded down.
        Content { units: -made_by.0.rescaled(-state.units, self.0.per), ..state }
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

    #[test]
    fn it_starts_empty_and_leaks_to_the_millisecond() {
        let bucket = LeakyBucket(Bucket::new(2, 3, 1_000));
        let mut state = bucket.fresh(0);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(2, Free), 0).count, 2);
        assert_eq!(bucket.act_on(&mut state, Act::Hit(1, Free), 333).retry_after, Some(1));
        let allowed = bucket.act_on(&mut state, Act::Hit(1, Free), 334);
        assert_eq!((allowed.allowed, allowed.count, allowed.remaining), (true, 2, 0));
    }
}
