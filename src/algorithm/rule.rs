//! Whichever algorithm a policy names, and the one dispatch to it.

use super::bucket::{self, Bucket};
use super::entry::{Entry, EntryMut, EntryState};
use super::sliding_window::SlidingWindow;
use super::window::{self, Window};
use super::{Act, Algorithm, Outcome};
use crate::memory::OutOfMemory;
use crate::text::{digits, text};
use crate::{Decision, Error, ErrorKind};

/// An algorithm with its numbers. Which one it is has a byte of its own, that takes one step to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    /// A counter of windows.
    Window(Window),
    /// A log.
    SlidingWindow(SlidingWindow),
    /// A bucket.
    Bucket(Bucket),
}

/// Runs one expression for whichever algorithm a rule holds.
macro_rules! dispatch {
    ($rule:expr, $algorithm:ident => $body:expr) => {
        match $rule {
            $crate::algorithm::rule::Rule::Window($algorithm) => $body,
            $crate::algorithm::rule::Rule::SlidingWindow($algorithm) => $body,
            $crate::algorithm::rule::Rule::Bucket($algorithm) => $body,
        }
    };
}
pub(crate) use dispatch;

impl Rule {
    /// The algorithm's name, as policies spell it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Window(Window { kind: window::Kind::Clock, .. }) => "fix_window",
            Self::Window(Window { kind: window::Kind::Key, .. }) => "fix_window_per_key",
            Self::Window(Window { kind: window::Kind::Sliding, .. }) => "sliding_counter",
            Self::SlidingWindow(_) => "sliding_window",
            Self::Bucket(Bucket { kind: bucket::Kind::Token, .. }) => "token_bucket",
            Self::Bucket(Bucket { kind: bucket::Kind::Leaky, .. }) => "leaky_bucket",
        }
    }

    /// The limit or the capacity.
    pub(crate) fn limit(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.limit())
    }

    /// The window's `scale` or the bucket's `per`.
    pub(crate) fn scale(&self) -> u64 {
        match self {
            Self::Window(window) => window.scale,
            Self::SlidingWindow(window) => window.scale,
            Self::Bucket(bucket) => bucket.per,
        }
    }

    /// How far behind a state the clock may be before the state follows it.
    pub(crate) fn period(&self) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.period,
            _ => self.scale(),
        }
    }

    /// Does an operation on the first state of an entry, and says in `outcome` what became of it. In wasm it is compiled
    /// once, for its size; elsewhere wherever it is used, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn act(&self, entry: EntryMut<'_>, act: Act, now: u64, outcome: &mut Outcome) -> Decision {
        let charged = dispatch!(self, algorithm => match EntryState::of_mut(entry) {
            Some(state) => algorithm.act(state, act, now, outcome),
            None => algorithm.try_on(EntryState::unused(), act, now).charged,
        });
        charged.decision(self.limit(), self.counts_down(), now)
    }

    /// Returns what an operation on the first state of an entry would return.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn peek(&self, entry: Entry<'_>, act: Act, now: u64) -> Decision {
        let charged = dispatch!(self, algorithm => algorithm.try_on(EntryState::of(entry), act, now).charged);
        charged.decision(self.limit(), self.counts_down(), now)
    }

    /// Makes room for an operation on the first state of an entry.
    pub(crate) fn prepare(&self, entry: EntryMut<'_>, act: Act, now: u64) -> Result<(), OutOfMemory> {
        match (self, EntryState::of_mut(entry)) {
            (Self::SlidingWindow(window), Some(log)) => window.prepare(log, act, now),
            // Other states have a fixed size.
            _ => Ok(()),
        }
    }

    /// Whether the count that is shown is what remains.
    fn counts_down(&self) -> bool {
        matches!(self, Self::Bucket(Bucket { kind: bucket::Kind::Token, .. }))
    }

    /// Returns when the first state of an entry ends; `now` or earlier if it has ended.
    pub(crate) fn ends_at(&self, entry: Entry<'_>, now: u64) -> u64 {
        match self {
            Self::SlidingWindow(window) => window.log_ends_at(EntryState::of(entry), now),
            // It lives to its end, though nothing may have been counted.
            Self::Window(window) if window.kind == window::Kind::Clock => {
                window.window_ends_at(EntryState::of(entry), now)
            }
            _ => match self.peek(entry, Act::LOOK, now).reset_after {
                0 => 0,
                after => now + after,
            },
        }
    }

    /// This rule with the numbers of a rule given for one call: the same algorithm and `scale` or `per`.
    pub(crate) fn adjusted(&self, call: &Self) -> Option<Self> {
        match (self, call) {
            _ if self.scale() != call.scale() => None,
            (Self::SlidingWindow(own), Self::SlidingWindow(call)) => own.adjusted(call).map(Self::SlidingWindow),
            (Self::Window(own), Self::Window(call)) if own.kind == call.kind => Some(Self::Window(*call)),
            (Self::Bucket(own), Self::Bucket(call)) if own.kind == call.kind => Some(Self::Bucket(*call)),
            _ => None,
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
