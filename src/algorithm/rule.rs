//! Whichever algorithm a policy names, and the one dispatch to it.

use super::Algorithm;
use super::bucket::Bucket;
use super::fix_window::FixWindow;
use super::fix_window_per_key::FixWindowPerKey;
use super::sliding_counter::SlidingCounter;
use super::sliding_window::SlidingWindow;
use crate::Error;
use crate::text::{digits, text};

/// An algorithm with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    FixWindow(FixWindow),
    FixWindowPerKey(FixWindowPerKey),
    SlidingWindow(SlidingWindow),
    SlidingCounter(SlidingCounter),
    Bucket(Bucket),
}

/// Runs one expression for whichever algorithm a rule holds.
macro_rules! dispatch {
    ($rule:expr, $algorithm:ident => $body:expr) => {
        match $rule {
            $crate::algorithm::rule::Rule::FixWindow($algorithm) => $body,
            $crate::algorithm::rule::Rule::FixWindowPerKey($algorithm) => $body,
            $crate::algorithm::rule::Rule::SlidingWindow($algorithm) => $body,
            $crate::algorithm::rule::Rule::SlidingCounter($algorithm) => $body,
            $crate::algorithm::rule::Rule::Bucket($algorithm) => $body,
        }
    };
}
pub(crate) use dispatch;

impl Rule {
    pub(crate) fn name(&self) -> &'static str {
        dispatch!(self, algorithm => algorithm.name())
    }

    pub(crate) fn scale(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.scale())
    }

    /// This rule with the numbers of a rule given for one call: the same algorithm and `scale` or `per`.
    pub(crate) fn adjusted(&self, call: &Self) -> Result<Self, Error> {
        if self.name() != call.name() {
            return Err(Error::mismatch("algorithm", call.name(), &["only ", self.name()]));
        }
        if self.scale() != call.scale() {
            let (own, found) = (digits(self.scale()), text(&[&digits(call.scale()), " ms"]));
            let field = if matches!(self, Self::Bucket(_)) { "per" } else { "scale" };
            return Err(Error::mismatch(field, &found, &["only ", &own, " ms"]));
        }
        match (self, call) {
            (Self::SlidingWindow(own), Self::SlidingWindow(call)) => Ok(Self::SlidingWindow(own.adjusted(call)?)),
            _ => Ok(*call),
        }
    }

    /// The rule by which a state lives longest under both.
    pub(crate) fn widest(&self, call: &Self) -> Self {
        match (self, call) {
            (Self::Bucket(own), Self::Bucket(call)) => Self::Bucket(own.widest(call)),
            // A window's numbers do not say how long it lives, and its `scale` is the same.
            _ => *self,
        }
    }
}
