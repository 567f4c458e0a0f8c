//! The policies that the oracle knows.

use tollgate::{Denied, Policy};

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    FixWindow,
    FixWindowPerKey,
    SlidingWindow,
    SlidingCounter,
    TokenBucket,
    LeakyBucket,
    Concurrency,
}

use Algorithm::*;

pub(crate) const ALGORITHMS: [Algorithm; 7] =
    [FixWindow, FixWindowPerKey, SlidingWindow, SlidingCounter, TokenBucket, LeakyBucket, Concurrency];

impl Algorithm {
    pub(crate) fn is_bucket(self) -> bool {
        matches!(self, TokenBucket | LeakyBucket)
    }
}

/// The names of policies.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A policy's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    pub(crate) algorithm: Algorithm,
    /// The limit or the capacity.
    pub(crate) limit: i64,
    /// The `scale`, `per` or `ttl`.
    pub(crate) scale: i64,
    /// The rate of a bucket; 1 for the others.
    pub(crate) rate: i64,
    /// Whether denied hits count.
    pub(crate) counts: bool,
    /// The number of its name, in `NAMES`.
    pub(crate) name: usize,
    /// The number of its shape: policies of one shape share a state.
    pub(crate) shape: usize,
}

impl Spec {
    pub(crate) fn policy(&self) -> Policy {
        let (limit, scale, rate) = (self.limit as u64, self.scale as u64, self.rate as u64);
        let policy = match self.algorithm {
            FixWindow => Policy::fix_window(limit, scale),
            FixWindowPerKey => Policy::fix_window_per_key(limit, scale),
            SlidingWindow => Policy::sliding_window(limit, scale),
            SlidingCounter => Policy::sliding_counter(limit, scale),
            TokenBucket => Policy::token_bucket(limit, rate, scale),
            LeakyBucket => Policy::leaky_bucket(limit, rate, scale),
            Concurrency => Policy::concurrency(limit, scale),
        };
        let policy = policy.and_then(|policy| policy.named(NAMES[self.name])).expect("a policy");
        match self.algorithm {
            TokenBucket | LeakyBucket | Concurrency => policy,
            _ => policy.denied(if self.counts { Denied::Count } else { Denied::Free }).expect("a choice"),
        }
    }

    /// How far the clock may be behind a state before the state follows it.
    pub(crate) fn period(&self) -> i64 {
        match self.algorithm.is_bucket() {
            true => (self.limit * self.scale + self.rate - 1) / self.rate,
            false => self.scale,
        }
    }

    /// Whether two policies share a state: by name, algorithm and `scale` or `per`. A `ttl` is no part of a shape.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let same_scale = self.scale == other.scale || self.algorithm == Concurrency;
        self.name == other.name && self.algorithm == other.algorithm && same_scale
    }

    /// So many hits in parts, of which one hit has `scale`.
    pub(crate) fn parts(&self, hits: i64) -> i64 {
        hits * self.scale
    }
}
