//! What an algorithm is, and every operation on it: written once, here, for all of them.
//!
//! An algorithm knows no store, no clock and no platform. It reads a state as it stands at a
//! moment (a view), charges the view, and commits the view back into the state. What is not
//! committed did not happen, which is how `peek` and a denied hit change nothing.

pub(crate) mod bucket;
pub(crate) mod calendar;
pub(crate) mod concurrency;
mod content;
pub(crate) mod entry;
pub(crate) mod forecast;
pub(crate) mod log;
pub(crate) mod rule;
pub(crate) mod sliding_window;
#[cfg(test)]
mod testing;
pub(crate) mod window;

use crate::memory::OutOfMemory;
use crate::number::{MAX, NEVER};
use crate::wording::NEGATIVE;
use crate::{Decision, Error, Found, Violated};
use entry::EntryState;

/// One algorithm with its numbers. Times are milliseconds; costs and counts are in range already.
///
/// What is handed a view and is more than a step is `inline(always)`: in wasm, which is compiled for size, it would else
/// be a call, and the view would lie in memory.
pub(crate) trait Algorithm {
    /// What a store keeps of one key: the first of some words, or a log.
    type State: EntryState + ?Sized;
    /// What a state comes to at one moment, with what has been charged to it since.
    type View;

    /// The most that fits at once: the limit or the capacity.
    fn limit(&self) -> u64;
    /// How far behind a state the clock may be before the state follows it.
    fn period(&self) -> u64;
    /// The most that is counted: what is past it stays denied instead of wrapping.
    fn most(&self) -> u64 {
        MAX
    }

    /// What the state comes to at `now`. Reads only.
    fn view(&self, state: &Self::State, now: u64) -> Self::View;
    /// Whether the clock fell more than a period behind the state, so that the view followed it.
    fn followed(&self, view: &Self::View) -> bool;
    /// What is used of the limit, in whole hits: a part of one counts as one.
    fn used(&self, view: &Self::View) -> u64;
    /// Adds `cost`, whether it fits or not.
    fn charge(&self, view: &mut Self::View, cost: u64, now: u64);
    /// Gives back `cost`, but no more than is used. A window does not restart.
    fn refund(&self, view: &mut Self::View, cost: u64, now: u64);
    /// Makes the view as if nothing had been used, and answers the cost that makes it as if `count` had just been (or
    /// that leaves `count` tokens).
    fn wipe(&self, view: &mut Self::View, count: u64) -> u64;
    /// Makes room for the view, so that it can be committed.
    fn reserve(&self, _state: &mut Self::State, _view: &Self::View) -> Result<(), OutOfMemory> {
        Ok(())
    }
    /// Keeps the view. There must be room for it.
    fn commit(&self, state: &mut Self::State, view: Self::View);

    /// When a hit of `cost`, which does not fit now but can fit, will.
    fn fits_at(&self, state: &Self::State, view: &Self::View, cost: u64) -> u64;
    /// When the key will be as if it had never been used; `now` or earlier if it is so already.
    fn unused_at(&self, view: &Self::View) -> u64;

    /// How many words a state takes; none if it is a log.
    fn width(&self) -> usize;
    /// The last time a state knows of; 0 if it is as if unused and holds none.
    fn latest(&self, state: &Self::State) -> u64;
    /// Makes a state that of a key never used.
    fn clear(&self, state: &mut Self::State, now: u64);
    /// Gives a state as plain numbers to `push`, one after the other.
    fn export(&self, state: &Self::State, push: Push<'_>) -> Result<(), OutOfMemory>;
    /// Makes the state of a key never used that of plain numbers, which may be anything at all, made under another `scale`
    /// or `per`. Says whether they could be read; if not, the state is of no use.
    fn import(&self, state: &mut Self::State, scale: u64, numbers: &[i64]) -> Result<bool, OutOfMemory>;

    /// Returns what an operation on a state results in. Reads only.
    #[inline(always)]
    fn try_on(&self, state: &Self::State, act: Act, now: u64) -> Tried<Self::View> {
        let mut view = self.view(state, now);
        let amount = act.amount();
        let allowed = !act.asks() || self.used(&view) + amount <= self.limit();
        let charges = act.charges(allowed);
        if charges {
            self.apply(&mut view, act, now);
        }
        let fits_at = match allowed {
            true => 0,
            false if amount > self.limit() => NEVER,
            false => self.fits_at(state, &view, amount),
        };
        let used = self.used(&view).min(self.most());
        let charged = Charged { allowed, used, fits_at, unused_at: self.unused_at(&view) };
        // A state that followed the clock is kept even on a denial: else it would follow it for ever.
        let changes = charges || self.followed(&view);
        Tried { view, charged, changes }
    }

    /// Changes a view by an operation that is charged.
    #[inline(always)]
    fn apply(&self, view: &mut Self::View, act: Act, now: u64) {
        match act {
            Act::Refund(cost) => self.refund(view, cost, now),
            Act::Set(count) => {
                let cost = self.wipe(view, count);
                self.charge(view, cost, now);
            }
            _ => self.charge(view, act.amount(), now),
        }
    }

    /// Does the same. In wasm it is compiled once, for its size; elsewhere wherever it is used, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn try_once(&self, state: &Self::State, act: Act, now: u64) -> Tried<Self::View> {
        self.try_on(state, act, now)
    }

    /// Keeps the result of an operation, and says in `outcome` what became of the state.
    #[inline(always)]
    fn keep(&self, state: &mut Self::State, tried: Tried<Self::View>, outcome: &mut Outcome) -> Charged {
        let Tried { view, charged, changes } = tried;
        if changes {
            match self.reserve(state, &view) {
                Ok(()) => {
                    self.commit(state, view);
                    outcome.changed = true;
                }
                Err(OutOfMemory) => outcome.out_of_memory = true,
            }
        }
        charged
    }

    /// Makes room for an operation, so that doing it next cannot run out of memory.
    fn prepare(&self, state: &mut Self::State, act: Act, now: u64) -> Result<(), OutOfMemory> {
        let Tried { view, changes, .. } = self.try_once(state, act, now);
        if changes { self.reserve(state, &view) } else { Ok(()) }
    }
}

/// What became of the state in an operation. Beside the decision and not instead of it: a `Result` around a decision
/// costs a copy on every hit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) changed: bool,
    /// Nothing was changed, and the decision is invalid.
    pub(crate) out_of_memory: bool,
}

impl Outcome {
    /// Returns whether the state changed.
    #[inline(always)]
    pub(crate) fn changed(self) -> Result<bool, OutOfMemory> {
        if self.out_of_memory { Err(OutOfMemory) } else { Ok(self.changed) }
    }
}

/// What an operation results in, before it is committed.
pub(crate) struct Tried<V> {
    view: V,
    pub(crate) charged: Charged,
    changes: bool,
}

/// A function that takes the numbers of a state. It may not have the memory to keep them.
pub(crate) type Push<'a> = &'a mut dyn FnMut(i64) -> Result<(), OutOfMemory>;

/// An operation on one policy's state of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Asks whether a cost fits, and takes it if so. A cost of 0 asks only.
    Hit(u64),
    /// The same, but a denied cost is counted too.
    Count(u64),
    /// Adds a cost without asking.
    Inc(u64),
    /// Makes it as if that much had just been used, or leaves that many tokens.
    Set(u64),
    /// Gives a cost back.
    Refund(u64),
}

impl Act {
    /// Reads, and changes nothing: a hit of no cost.
    pub(crate) const LOOK: Self = Self::Hit(0);

    /// Returns the operation that adds a cost without asking, or gives it back if it is below 0.
    pub(crate) fn inc(cost: i64) -> Result<Self, Error> {
        let amount = cost.unsigned_abs();
        match (amount <= MAX, cost < 0) {
            (true, false) => Ok(Self::Inc(amount)),
            (true, true) => Ok(Self::Refund(amount)),
            (false, _) => {
                Err(Error::InvalidInc { found: if cost < 0 { Found::Described(NEGATIVE) } else { amount.into() } })
            }
        }
    }

    /// The cost or the count.
    #[inline(always)]
    pub(crate) fn amount(self) -> u64 {
        match self {
            Self::Hit(amount) | Self::Count(amount) | Self::Inc(amount) | Self::Set(amount) | Self::Refund(amount) => {
                amount
            }
        }
    }

    /// Whether it is denied what does not fit.
    #[inline(always)]
    fn asks(self) -> bool {
        matches!(self, Self::Hit(_) | Self::Count(_))
    }

    /// Whether it is charged, if it is allowed or not.
    #[inline(always)]
    pub(crate) fn charges(self, allowed: bool) -> bool {
        matches!(self, Self::Set(_)) || (self.amount() > 0 && (allowed || matches!(self, Self::Count(_))))
    }
}

/// What an operation came to. Times are the clock's.
pub(crate) struct Charged {
    allowed: bool,
    used: u64,
    /// When a hit that was denied will fit, or [`NEVER`]; 0 if it was not.
    fits_at: u64,
    unused_at: u64,
}

impl Charged {
    /// The same as the answer to a hit. What counts down is shown as what remains.
    #[inline(always)]
    pub(crate) fn decision(self, limit: u64, counts_down: bool, now: u64) -> Decision {
        let remaining = limit.saturating_sub(self.used);
        Decision {
            allowed: self.allowed,
            count: if counts_down { remaining } else { self.used },
            limit,
            remaining,
            retry_after: if self.fits_at == NEVER { None } else { Some(self.fits_at.saturating_sub(now)) },
            reset_after: self.unused_at.saturating_sub(now),
            policy: 0,
            violated: Violated(u32::from(!self.allowed)),
            reason: None,
        }
    }
}
