//! What an algorithm is, and every operation on it: written once, here, for all of them.
//!
//! An algorithm knows no store, no clock and no platform. It reads a state as it stands at a
//! moment (a view), charges the view, and commits the view back into the state. What is not
//! committed did not happen, which is how `peek` and a denied hit change nothing.

pub(crate) mod bucket;
pub(crate) mod fix_window;
pub(crate) mod fix_window_per_key;
pub(crate) mod leaky_bucket;
pub(crate) mod rule;
pub(crate) mod sliding_counter;
pub(crate) mod sliding_window;
pub(crate) mod token_bucket;
pub(crate) mod window;

use crate::{Decision, Denied, Violated};
use alloc::vec::Vec;
use sliding_window::Log;

/// One algorithm with its numbers. Times are milliseconds; costs and counts are in range already.
pub(crate) trait Algorithm: Sized {
    /// What a store keeps of one key.
    type State: Held + Clone;
    /// What a state comes to at one moment, with what has been charged to it since.
    type View;
    /// The algorithm's name, as policies spell it.
    const NAME: &'static str;

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

    /// The state as plain numbers.
    fn export(&self, state: &Self::State) -> Vec<i64>;
    /// The state from plain numbers, which may be anything at all.
    fn import(&self, numbers: &[i64]) -> Option<Self::State>;
    /// A state made under another `scale` or `per`, rounded against the client.
    fn convert(&self, state: Self::State, made_by: &Self, now: u64) -> Self::State;

    /// How many words of a slot a state takes.
    fn width(&self) -> usize;

    /// Puts a state into a cell.
    fn put(&self, cell: CellMut<'_>, state: Self::State) {
        Self::State::write(cell, |held| *held = state);
    }

    /// Whether the clock fell so far behind the state that the state must follow it.
    #[inline]
    fn is_ahead(&self, state: &Self::State, now: u64) -> bool {
        self.latest(state) > now + self.period()
    }

    /// What an operation comes to, charged to the view. Every operation goes through here.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
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
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
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

    /// What an operation would come to. Changes nothing.
    fn peek(&self, cell: Cell<'_>, act: Act, now: u64) -> Decision {
        Self::State::read(cell, |state| self.consider(state, act, now))
    }

    fn consider(&self, state: &Self::State, act: Act, now: u64) -> Decision {
        self.decide(state, &mut self.view(state, now), act, now)
    }

    /// Does an operation, and notes if the state changed.
    #[inline]
    fn act(&self, cell: CellMut<'_>, act: Act, now: u64, changed: &mut bool) -> Decision {
        Self::State::write(cell, |state| self.apply(state, act, now, changed))
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn apply(&self, state: &mut Self::State, act: Act, now: u64, changed: &mut bool) -> Decision {
        let mut view = self.view(state, now);
        let decision = self.decide(state, &mut view, act, now);
        // A state that followed the clock is kept even on a denial: else it would follow it for ever.
        if act.changes(decision.allowed) || self.is_ahead(state, now) {
            self.commit(state, view);
            *changed = true;
        }
        decision
    }

    /// Does an operation on a state that lies in no cell.
    #[cfg(test)]
    fn act_on(&self, state: &mut Self::State, act: Act, now: u64) -> Decision {
        self.apply(state, act, now, &mut false)
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
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) log: Option<&'a Log>,
}

/// The same, to be written.
pub(crate) struct CellMut<'a> {
    pub(crate) words: &'a mut [u64],
    pub(crate) log: Option<&'a mut Log>,
}

/// A state that can lie in a cell.
pub(crate) trait Held: Sized {
    /// Reads the state where it lies.
    fn read<R>(cell: Cell<'_>, with: impl FnOnce(&Self) -> R) -> R;
    /// Changes the state where it lies.
    fn write<R>(cell: CellMut<'_>, with: impl FnOnce(&mut Self) -> R) -> R;
}

/// A state of fixed size, packed into words.
pub(crate) trait Packed: Copy {
    /// The state in these words.
    fn unpack(words: &[u64]) -> Self;
    /// Puts the state into these words.
    fn pack(self, words: &mut [u64]);
}

impl<S: Packed> Held for S {
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn read<R>(cell: Cell<'_>, with: impl FnOnce(&Self) -> R) -> R {
        with(&S::unpack(cell.words))
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn write<R>(cell: CellMut<'_>, with: impl FnOnce(&mut Self) -> R) -> R {
        let mut state = S::unpack(cell.words);
        let answer = with(&mut state);
        state.pack(cell.words);
        answer
    }
}
