//! The trait of an algorithm, and every operation on it: written once, here, for all of them.
//!
//! An algorithm knows no store, no clock and no platform. It reads a state as of a time (a view),
//! charges the view, and commits the view back into the state. `peek` and a denied hit change
//! nothing because they commit nothing.

pub(crate) mod any;
pub(crate) mod ban;
pub(crate) mod bucket;
pub(crate) mod calendar;
pub(crate) mod concurrency;
pub(crate) mod entry;
pub(crate) mod forecast;
mod level;
pub(crate) mod log;
pub(crate) mod sliding_window;
#[cfg(test)]
mod testing;
pub(crate) mod window;

use crate::error::wording::NEGATIVE;
use crate::growth::OutOfMemory;
use crate::number::{MAX, NEVER};
use crate::{Decision, Error, Found, Violated};
use entry::EntryState;

/// One algorithm with its numbers. Times are milliseconds; costs and counts are in range already.
///
/// Methods that take a view and do more than one step are `inline(always)`: in wasm, which is compiled for size, they
/// would else be calls, and the view would be passed in memory.
pub(crate) trait Algorithm {
    /// The state of one key as a store keeps it: words, of which the first ones are the state, or a log.
    type State: EntryState + ?Sized;
    /// A state as of one time, with the charges made to it since.
    type View;

    /// Returns the most that fits at once: the limit or the capacity.
    fn limit(&self) -> u64;
    /// Returns the time after which all of the limit remains again.
    fn period(&self) -> u64;
    /// Returns how far the clock may be behind a state of these numbers before the state follows it.
    fn lead(&self) -> u64 {
        self.period()
    }

    /// Returns the state as of `now`. Reads only.
    fn view(&self, state: &Self::State, now: u64) -> Self::View;
    /// Returns whether the clock fell further than the lead behind the state, so that the view followed it.
    fn followed(&self, view: &Self::View) -> bool;
    /// Returns how much of the limit is used, in whole hits, rounded up.
    fn used(&self, view: &Self::View) -> u64;
    /// Adds `cost`, whether it fits or not. From then on the state has the rate of this algorithm.
    fn charge(&self, view: &mut Self::View, cost: u64, now: u64);
    /// Bounds a view that is charged next for a hit that counts even if it is denied: a flood of them must not make a
    /// state grow.
    fn bound(&self, _view: &mut Self::View) {}
    /// Gives back `cost`, but no more than is used. A window does not restart.
    fn refund(&self, view: &mut Self::View, cost: u64, now: u64);
    /// Gives back `cost` of a hit, as far as it still counts at `now`, and never what others used. Returns what was given
    /// back. The state is then at least that of a key which never had the hit.
    fn undo(&self, state: &mut Self::State, cost: u64, charge: Charge, now: u64) -> u64;
    /// Makes the view that of an unused key. Returns the cost to charge so that `count` is used, or so that `count`
    /// tokens are left.
    fn wipe(&self, view: &mut Self::View, count: u64) -> u64;
    /// Makes room for the view, so that it can be committed.
    fn make_room(&self, _state: &mut Self::State, _view: &Self::View) -> Result<(), OutOfMemory> {
        Ok(())
    }
    /// Writes the view into the state. There must be room for it.
    fn commit(&self, state: &mut Self::State, view: Self::View);

    /// Returns the time from which on a hit of `cost` fits. The cost does not fit now, but is within the limit.
    fn fits_at(&self, state: &Self::State, view: &Self::View, cost: u64) -> u64;
    /// Returns the time from which on more than what remains fits. `used` is at least 1.
    #[inline(always)]
    fn more_at(&self, state: &Self::State, view: &Self::View, used: u64) -> u64 {
        self.fits_at(state, view, self.limit().saturating_sub(used) + 1)
    }
    /// Returns the time from which on the key is as if never used; `now` or earlier if it is so already.
    fn unused_at(&self, view: &Self::View) -> u64;

    /// Returns how many words a state takes; 0 if it is a log.
    fn width(&self) -> usize;
    /// Returns the latest time in a state; 0 if the state is as if unused and has no time.
    fn latest(&self, state: &Self::State) -> u64;
    /// Makes a state that of a key never used.
    fn clear(&self, state: &mut Self::State, now: u64);
    /// Passes a state to `push` as plain numbers, one after the other.
    fn export(&self, state: &Self::State, push: Push<'_>) -> Result<(), OutOfMemory>;
    /// Reads the state of a key never used from plain numbers that were exported under the same shape. Any numbers are
    /// accepted; returns whether they are valid. If not, the state is unspecified.
    fn import(&self, state: &mut Self::State, numbers: &[i64]) -> Result<bool, OutOfMemory>;

    /// Returns the result of an operation on a state. Reads only.
    #[inline(always)]
    fn try_on(&self, state: &Self::State, act: Act, now: u64) -> Tried<Self::View> {
        let mut view = self.view(state, now);
        let amount = act.amount();
        let allowed = !act.can_be_denied() || self.used(&view) + amount <= self.limit();
        let charges = act.charges(allowed);
        if charges {
            self.apply(&mut view, act, now);
        }
        let fits_at = match allowed {
            true => 0,
            false if amount > self.limit() => NEVER,
            false => self.fits_at(state, &view, amount),
        };
        // Counts saturate, so that a key stays denied instead of wrapping.
        let used = self.used(&view).min(MAX);
        let more_at = if used == 0 { 0 } else { self.more_at(state, &view, used) };
        let charged = Charged { allowed, used, fits_at, unused_at: self.unused_at(&view), more_at };
        // A state that was moved to the clock is stored even on a denial; otherwise every hit would move it again.
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
            Act::Hit(_) | Act::Count(_) | Act::Charge(_) => {
                if matches!(act, Act::Count(_)) {
                    self.bound(view);
                }
                self.charge(view, act.amount(), now);
            }
        }
    }

    /// The same as [`Algorithm::try_on`]. In wasm it is compiled once, for its size; elsewhere it is inlined, for its
    /// speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn try_once(&self, state: &Self::State, act: Act, now: u64) -> Tried<Self::View> {
        self.try_on(state, act, now)
    }

    /// Commits the result of an operation, and notes in `outcome` whether the state changed.
    #[inline(always)]
    fn keep(&self, state: &mut Self::State, tried: Tried<Self::View>, outcome: &mut Outcome) -> Charged {
        let Tried { view, charged, changes } = tried;
        if changes {
            match self.make_room(state, &view) {
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
        if changes { self.make_room(state, &view) } else { Ok(()) }
    }
}

/// Whether an operation changed the state. It is returned beside the decision, since a `Result` around a decision costs
/// a copy on every hit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) changed: bool,
    /// If set, the state is unchanged and the decision is invalid.
    pub(crate) out_of_memory: bool,
}

impl Outcome {
    /// Returns whether the state changed.
    #[inline(always)]
    pub(crate) fn changed(self) -> Result<bool, OutOfMemory> {
        if self.out_of_memory { Err(OutOfMemory) } else { Ok(self.changed) }
    }
}

/// The result of an operation, before it is committed.
pub(crate) struct Tried<V> {
    view: V,
    pub(crate) charged: Charged,
    changes: bool,
}

/// When a hit was charged, and beside what: as much as an undo needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The time of the hit by the clock.
    pub(crate) at: u64,
    /// The least level of a bucket under the hit's policies before the hit, in whole hits rounded down.
    pub(crate) beside: u64,
}

/// A function that takes the numbers of a state one by one, and may run out of memory.
pub(crate) type Push<'a> = &'a mut dyn FnMut(i64) -> Result<(), OutOfMemory>;

/// An operation on one policy's state of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Charges a cost if it fits. A cost of 0 only reads.
    Hit(u64),
    /// The same, but a denied cost is counted too.
    Count(u64),
    /// Charges a cost whether it fits or not.
    Charge(u64),
    /// Sets the count, or the tokens that are left.
    Set(u64),
    /// Gives a cost back.
    Refund(u64),
}

impl Act {
    /// Only reads: a hit of cost 0.
    pub(crate) const LOOK: Self = Self::Hit(0);

    /// Returns the operation that charges a cost unconditionally, or gives it back if it is below 0.
    pub(crate) fn inc(cost: i64) -> Result<Self, Error> {
        let amount = cost.unsigned_abs();
        match (amount <= MAX, cost < 0) {
            (true, false) => Ok(Self::Charge(amount)),
            (true, true) => Ok(Self::Refund(amount)),
            (false, _) => {
                Err(Error::InvalidInc { found: if cost < 0 { Found::Described(NEGATIVE) } else { amount.into() } })
            }
        }
    }

    /// Returns the operation that charges a hit which was decided already.
    pub(crate) fn charged(cost: u64, allowed: bool) -> Self {
        if allowed { Self::Charge(cost) } else { Self::Count(cost) }
    }

    /// Returns the cost or the count.
    #[inline(always)]
    pub(crate) fn amount(self) -> u64 {
        match self {
            Self::Hit(amount)
            | Self::Count(amount)
            | Self::Charge(amount)
            | Self::Set(amount)
            | Self::Refund(amount) => amount,
        }
    }

    /// Returns whether the operation is denied if its amount does not fit.
    #[inline(always)]
    pub(crate) fn can_be_denied(self) -> bool {
        matches!(self, Self::Hit(_) | Self::Count(_))
    }

    /// Returns whether the operation is charged, given whether it is allowed.
    #[inline(always)]
    pub(crate) fn charges(self, allowed: bool) -> bool {
        matches!(self, Self::Set(_)) || (self.amount() > 0 && (allowed || matches!(self, Self::Count(_))))
    }
}

/// The numbers that a decision is made of. Times are the clock's.
pub(crate) struct Charged {
    allowed: bool,
    used: u64,
    /// The time from which on a denied hit fits, or [`NEVER`]; 0 if the hit was allowed.
    fits_at: u64,
    unused_at: u64,
    /// The time from which on more remains; 0 if all of the limit does.
    more_at: u64,
}

impl Charged {
    /// Returns the decision. Its count is the remaining amount if the algorithm counts down.
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
            more_after: self.more_at.saturating_sub(now),
            policy: 0,
            violated: Violated(u32::from(!self.allowed)),
            reason: None,
        }
    }
}
