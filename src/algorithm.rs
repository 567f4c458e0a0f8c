//! What an algorithm is, and every operation on it: written once, here, for all of them.
//!
//! An algorithm knows no store, no clock and no platform. It reads a state as it stands at a
//! moment (a view), charges the view, and commits the view back into the state. What is not
//! committed did not happen, which is how `peek` and a denied hit change nothing.

pub(crate) mod bucket;
mod content;
pub(crate) mod fix_window;
pub(crate) mod fix_window_per_key;
pub(crate) mod rule;
pub(crate) mod sliding_counter;
pub(crate) mod sliding_window;
pub(crate) mod window;

use crate::{Decision, Denied, Violated};
use alloc::vec::Vec;
use core::ops::Deref;
use sliding_window::Log;

/// One algorithm with its numbers. Times are milliseconds; costs and counts are in range already.
pub(crate) trait Algorithm: Sized {
    /// What a store keeps of one key.
    type State: Held + Clone + 'static;
    /// What a state comes to at one moment, with what has been charged to it since.
    type View;

    /// The algorithm's name, as policies spell it.
    fn name(&self) -> &'static str;
    /// The window's `scale` or the bucket's `per`.
    fn scale(&self) -> u64;
    /// The same numbers with another `scale` or `per`: what a stored state was made by.
    fn with_scale(&self, scale: u64) -> Self;

    /// The most that fits at once: the limit or the capacity.
    fn limit(&self) -> u64;
    /// How far behind a state the clock may be before the state follows it.
    fn period(&self) -> u64;
    /// The state of a key that was never used.
    fn fresh(&self, now: u64) -> Self::State;
    /// The last time a state knows of.
    fn latest(&self, state: &Self::State) -> u64;

    /// What the state comes to at `now`. Reads only.
    fn view(&self, state: &Self::State, now: u64) -> Self::View;
    /// Whether a hit of `cost` fits.
    fn fits(&self, view: &Self::View, cost: u64) -> bool;
    /// Adds `cost`, whether it fits or not.
    fn charge(&self, view: &mut Self::View, cost: u64, now: u64);
    /// Makes the view as if `count` had just been used (or leaves `count` tokens).
    fn assign(&self, view: &mut Self::View, count: u64, now: u64);
    /// Keeps the view.
    fn commit(&self, state: &mut Self::State, view: Self::View);

    /// Hammer's number.
    fn count(&self, view: &Self::View) -> u64;
    /// How many hits of cost 1 fit.
    fn remaining(&self, view: &Self::View) -> u64;
    /// When a hit of `cost`, which does not fit now but can fit, will.
    fn fits_at(&self, state: &Self::State, view: &Self::View, cost: u64) -> u64;
    /// When the key will be as if it had never been used; `now` or earlier if it is so already.
    fn unused_at(&self, view: &Self::View) -> u64;
    /// When a stored state ends; `now` or earlier if it has ended.
    fn ends_at(&self, state: &Self::State, now: u64) -> u64 {
        self.unused_at(&self.view(state, now))
    }

    /// Adds the state as plain numbers.
    fn export(&self, state: &Self::State, numbers: &mut Vec<i64>);
    /// The state from plain numbers, which may be anything at all.
    fn import(&self, numbers: &[i64]) -> Option<Self::State>;
    /// A state made under another `scale` or `per`, rounded against the client.
    fn convert(&self, state: Self::State, made_by: &Self, now: u64) -> Self::State;

    /// How many words of a slot a state takes.
    fn width(&self) -> usize;

    /// The state in a cell.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn read(&self, cell: &Cell<'_>) -> impl Deref<Target = Self::State> {
        Self::State::read(cell)
    }

    /// Whether the clock fell so far behind the state that the state must follow it.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn is_ahead(&self, state: &Self::State, now: u64) -> bool {
        self.latest(state) > now + self.period()
    }

    /// What an operation comes to, charged to the view. Every operation goes through here.
    #[inline(always)]
    fn decide(&self, state: &Self::State, view: &mut Self::View, act: Act, now: u64) -> Decision {
        let (allowed, cost) = match act {
            Act::Hit(cost, _) => (self.fits(view, cost), cost),
            Act::Inc(cost) => (true, cost),
            Act::Set(count) => {
                self.assign(view, count, now);
                (true, 0)
            }
        };
        if cost > 0 && act.changes(allowed) {
            self.charge(view, cost, now);
        }
        self.decision(state, view, allowed, cost, now)
    }

    /// The decision about what has been charged, or not, to a view.
    #[inline(always)]
    fn decision(&self, state: &Self::State, view: &Self::View, allowed: bool, cost: u64, now: u64) -> Decision {
        let retry_after = if allowed {
            Some(0)
        } else if cost > self.limit() {
            None
        } else {
            Some(self.fits_at(state, view, cost).saturating_sub(now))
        };
        Decision {
            allowed,
            count: self.count(view),
            limit: self.limit(),
            remaining: self.remaining(view),
            retry_after,
            reset_after: self.unused_at(view).saturating_sub(now),
            policy: 0,
            violated: Violated(u32::from(!allowed)),
            reason: None,
        }
    }

    /// Does an operation, and notes if the state changed: where the cell is only to be read it does not.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn act(&self, mut cell: Cell<'_>, act: Act, now: u64, changed: &mut bool) -> Decision {
        let state = self.read(&cell);
        let mut view = self.view(&state, now);
        let decision = self.decide(&state, &mut view, act, now);
        // A state that followed the clock is kept even on a denial: else it would follow it for ever.
        let keeps = act.changes(decision.allowed) || self.is_ahead(&state, now);
        drop(state);
        if keeps {
            *changed |= Self::State::keep(&mut cell, self, view);
        }
        decision
    }

    /// Does an operation on a state that lies in no cell.
    #[cfg(test)]
    fn act_on(&self, state: &mut Self::State, act: Act, now: u64) -> Decision {
        let mut view = self.view(state, now);
        let decision = self.decide(state, &mut view, act, now);
        if act.changes(decision.allowed) || self.is_ahead(state, now) {
            self.commit(state, view);
        }
        decision
    }
}

/// An operation on one policy's state of one key.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// Asks whether a cost fits, and takes it if so. A cost of 0 asks only.
    Hit(u64, Denied),
    /// Adds a cost without asking.
    Inc(u64),
    /// Makes it as if that much had just been used, or leaves that many tokens.
    Set(u64),
}

impl Act {
    /// Reads, and changes nothing: a hit of no cost.
    pub(crate) const LOOK: Self = Self::Hit(0, Denied::Free);

    /// Whether it leaves something behind, if it is allowed or not.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn changes(self, allowed: bool) -> bool {
        match self {
            Self::Hit(cost, denied) => cost > 0 && (allowed || denied == Denied::Count),
            Self::Inc(cost) => cost > 0,
            Self::Set(_) => true,
        }
    }
}

/// Where one policy's state of one key lies: a run of words, and a log if the algorithm keeps one.
pub(crate) enum Cell<'a> {
    /// To be read only.
    Read(&'a [u64], Option<&'a Log>),
    /// To be changed too.
    Write(&'a mut [u64], Option<&'a mut Log>),
}

/// A state that can lie in a cell. No closures here: in wasm, which is compiled for size, they would stay calls.
pub(crate) trait Held: Sized {
    /// A way to read it: where it lies, or a copy.
    type Seen<'a>: Deref<Target = Self>
    where
        Self: 'a;
    /// Reads the state.
    fn read<'a>(cell: &'a Cell<'_>) -> Self::Seen<'a>;
    /// Commits a view to the state, if the cell may be changed. Says whether it may.
    fn keep<A: Algorithm<State = Self>>(cell: &mut Cell<'_>, algorithm: &A, view: A::View) -> bool;
    /// Puts a state in the place of the one that lies there.
    fn put(self, cell: Cell<'_>);
}

/// A state of fixed size, packed into words.
pub(crate) trait Packed: Copy {
    /// The state in these words.
    fn unpack(words: &[u64]) -> Self;
    /// Puts the state into these words.
    fn pack(self, words: &mut [u64]);
}

/// A copy of a state.
pub(crate) struct Unpacked<S>(S);

impl<S> Deref for Unpacked<S> {
    type Target = S;

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Packed> Held for S {
    type Seen<'a>
        = Unpacked<S>
    where
        S: 'a;

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn read(cell: &Cell<'_>) -> Unpacked<S> {
        match cell {
            Cell::Read(words, _) => Unpacked(S::unpack(words)),
            Cell::Write(words, _) => Unpacked(S::unpack(words)),
        }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn keep<A: Algorithm<State = Self>>(cell: &mut Cell<'_>, algorithm: &A, view: A::View) -> bool {
        let Cell::Write(words, _) = cell else { return false };
        let mut state = S::unpack(words);
        algorithm.commit(&mut state, view);
        state.pack(words);
        true
    }

    fn put(self, cell: Cell<'_>) {
        if let Cell::Write(words, _) = cell {
            self.pack(words);
        }
    }
}
