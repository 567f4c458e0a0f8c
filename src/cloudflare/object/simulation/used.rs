//! What is used of a policy, by the policy's definition.

use std::collections::VecDeque;

use super::world::Change;
use crate::Policy;

/// An event that changes what is used of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// A window of the key's own starts or ends.
    Edge,
    Use(u64),
    Change(Change),
}

/// What is used of a policy. It counts no more than the policy's state does, which counts what is set aside too.
#[derive(Debug)]
pub(super) struct Used {
    algorithm: &'static str,
    limit: u128,
    scale: u64,
    /// How much flows out of a bucket in its `per`.
    rate: u64,
    /// The start of the current window, or the last time of a bucket.
    time: u64,
    /// How much of the window has passed.
    elapsed: u64,
    /// The amount in the window before.
    previous: u128,
    /// The amount in the current or the sliding window, or the level of a bucket in parts of a hit.
    current: u128,
    /// The hits in the sliding window.
    log: VecDeque<(u64, u64)>,
}

impl Used {
    pub(super) fn new(policy: &Policy) -> Self {
        let (limit, scale, rate) = (policy.limit().into(), policy.scale(), policy.algorithm.rate());
        let algorithm = policy.algorithm();
        Self { algorithm, limit, scale, rate, time: 0, elapsed: 0, previous: 0, current: 0, log: VecDeque::new() }
    }

    pub(super) fn is_within_limit(&self) -> bool {
        self.is_within(self.limit)
    }

    /// Returns whether what is used is within another limit.
    pub(super) fn is_within(&self, limit: impl Into<u128>) -> bool {
        let (scale, limit) = (u128::from(self.scale), limit.into());
        match self.algorithm {
            "sliding_counter" => {
                self.previous * u128::from(self.scale - self.elapsed) + self.current * scale <= limit * scale
            }
            "token_bucket" | "leaky_bucket" => self.current <= limit * scale,
            _ => self.current <= limit,
        }
    }

    pub(super) fn apply(&mut self, effect: Effect, at: u64) {
        self.pass(at);
        match effect {
            Effect::Edge | Effect::Change(Change::Reset) => self.clear(),
            Effect::Use(cost) => self.add(cost, at),
            Effect::Change(Change::Set { used }) => {
                self.clear();
                self.add(used, at);
            }
            Effect::Change(Change::Refund { cost }) => self.refund(cost),
        }
    }

    /// Lets time pass.
    fn pass(&mut self, at: u64) {
        match self.algorithm {
            "fix_window" | "sliding_counter" => {
                let window = at - at % self.scale;
                if window != self.time {
                    self.previous = if window == self.time + self.scale { self.current } else { 0 };
                    (self.time, self.current) = (window, 0);
                }
                self.elapsed = at - window;
            }
            "fix_window_per_key" => {}
            "sliding_window" => {
                while let Some((_, cost)) = self.log.pop_front_if(|(then, _)| *then + self.scale <= at) {
                    self.current -= u128::from(cost);
                }
            }
            _ => {
                self.current = self.current.saturating_sub(u128::from(self.rate) * u128::from(at - self.time));
                self.time = at;
            }
        }
    }

    fn clear(&mut self) {
        (self.previous, self.current) = (0, 0);
        self.log.clear();
    }

    fn parts(&self, cost: u64) -> u128 {
        u128::from(cost) * if self.algorithm.ends_with("bucket") { u128::from(self.scale) } else { 1 }
    }

    fn add(&mut self, cost: u64, at: u64) {
        self.current += self.parts(cost);
        if self.algorithm == "sliding_window" {
            self.log.push_back((at, cost));
        }
    }

    /// Gives back. Of a sliding window the newest hits, which would count for longest.
    fn refund(&mut self, cost: u64) {
        let parts = self.parts(cost);
        self.previous = self.previous.saturating_sub(parts.saturating_sub(self.current));
        self.current = self.current.saturating_sub(parts);
        let mut left = cost;
        while let Some(newest) = self.log.back_mut().filter(|_| left > 0) {
            let taken = newest.1.min(left);
            newest.1 -= taken;
            left -= taken;
            if newest.1 == 0 {
                self.log.pop_back();
            }
        }
    }
}
