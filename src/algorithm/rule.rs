//! Whichever algorithm a policy names, and the one dispatch to it.

use super::Algorithm;
use super::bucket::Bucket;
use super::fix_window::FixWindow;
use super::fix_window_per_key::FixWindowPerKey;
use super::sliding_counter::SlidingCounter;
use super::sliding_window::SlidingWindow;
use crate::text::{digits, text};
use crate::{Error, ErrorKind};
use core::mem::discriminant;

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

    pub(crate) fn limit(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.limit())
    }

    /// This rule with the numbers of a rule given for one call: the same algorithm and `scale` or `per`.
    pub(crate) fn adjusted(&self, call: &Self) -> Option<Self> {
        match (self, call) {
            _ if self.scale() != call.scale() || discriminant(self) != discriminant(call) => None,
            (Self::SlidingWindow(own), Self::SlidingWindow(call)) => own.adjusted(call).map(Self::SlidingWindow),
            (Self::Bucket(own), Self::Bucket(call)) if own.kind != call.kind => None,
            _ => Some(*call),
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

/// Why rules given for one call do not go with a limiter's own.
pub(crate) fn mismatch(own: &[Rule], call: &[Rule]) -> Error {
    let differ = own.iter().zip(call).find(|(one, other)| own.len() == call.len() && one.adjusted(other).is_none());
    let Some((own, call)) = differ else {
        let (own, call) = (digits(own.len() as u64), digits(call.len() as u64));
        let pieces = ["this call has ", &call, " policies, but this limiter accepts as many as its own, ", &own];
        return Error::new(ErrorKind::PolicyMismatch, &pieces);
    };
    if own.name() != call.name() {
        return Error::mismatch("algorithm", call.name(), &["only ", own.name()]);
    }
    if own.scale() != call.scale() {
        let (accepted, found) = (digits(own.scale()), text(&[&digits(call.scale()), " ms"]));
        let field = if matches!(own, Rule::Bucket(_)) { "per" } else { "scale" };
        return Error::mismatch(field, &found, &["only ", &accepted, " ms"]);
    }
    let accepts = ["at most ", &digits(own.limit()), ", for which its sliding window keeps hits"];
    Error::mismatch("limit", &digits(call.limit()), &accepts)
}
