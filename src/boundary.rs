//! A limiter by slot numbers, for bindings whose host language maps keys to slots and names to policies itself.
//!
//! It serves the bindings of this workspace; it is not part of the public API and may change in any version.

pub mod numbers;
mod one_key;
pub mod status;

use alloc::vec::Vec;

use crate::algorithm::Act;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::Ban;
use crate::growth::push;
use crate::key::exceptions::Exceptions;
use crate::key::open_reservations::Reserved;
use crate::key::policy_states::Uncountable;
use crate::key::rows::{LoadError, RowRef};
use crate::memory::slots::{FREED_AT_MOST, SlotError, Slots};
use crate::policy::scale::Scale;
use crate::policy::schema::MAX_TTL;
use crate::policy::{build_algorithm, denied};
use crate::{Decision, Denied, HitId, MAX, Options, Settlement};

pub use one_key::OneKey;

pub use crate::error::quoting::acts_on_terminals;
pub use crate::error::wording::TEXTS;
pub use crate::growth::OutOfMemory;
pub use crate::headers::{Quota, write_headers, write_problem};
pub use crate::key::open_reservations::OPEN_ROW as OPEN_NUMBERS;
pub use crate::policy::costs::{AS_RESERVED, PositionCosts};
pub use crate::policy::schema;
pub use crate::store::record::VERSION as STORED_VERSION;

/// The numbers of one policy, for boundaries that only numbers cross. All are in range.
#[derive(Clone, Copy, Debug)]
pub struct PolicyNumbers {
    /// The algorithm's position in the schema.
    pub algorithm: usize,
    /// The limit or capacity.
    pub limit: u64,
    /// The rate; 1 where the algorithm has none.
    pub rate: u64,
    /// The stored `scale` or `per`: below 0 a unit of the calendar.
    pub scale: i64,
    /// The length of a ban; its `after` is the limit, and its factor the rate. Ignored for the other algorithms.
    pub length: u64,
    /// The longest ban.
    pub most: u64,
}

impl PolicyNumbers {
    /// Returns whether the policy is valid: false for a bucket that would take too long to fill or empty.
    pub fn is_fillable(&self) -> bool {
        self.algorithm().is_some()
    }

    /// Returns the algorithm; `None` if a bucket would take too long to fill, or if the scale is invalid for the algorithm.
    pub(crate) fn algorithm(&self) -> Option<AnyAlgorithm> {
        let scale = Scale::from_number(self.scale, self.algorithm)?;
        if self.algorithm == schema::BAN {
            return Ban::new(self.limit, self.rate, scale.length(), self.length, self.most).map(AnyAlgorithm::Ban);
        }
        build_algorithm(self.algorithm, self.limit, self.rate, scale)
    }
}

/// The algorithms of some policies.
#[derive(Debug, Default)]
pub struct Algorithms(Vec<AnyAlgorithm>);

impl Algorithms {
    /// Appends the algorithm of a policy.
    ///
    /// # Errors
    ///
    /// If a bucket would take too long to fill, or the scale is invalid.
    pub fn add(&mut self, numbers: &PolicyNumbers) -> Result<(), Failure> {
        let algorithm = numbers.algorithm().ok_or(Failure::At(self.0.len()))?;
        Ok(push(&mut self.0, algorithm)?)
    }

    /// Returns the number of algorithms.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The error of an operation, which changed no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no memory.
    OutOfMemory,
    /// The limiter is full and denies new keys.
    Full,
    /// Half of the keys that the limiter holds have exceptions.
    ManyExceptions,
    /// The key has as many rows as a key outside the process may have.
    ManyRows,
    /// The cost or count is invalid.
    Amount,
    /// The policies of a call do not match.
    Mismatch,
    /// The policy at this position counts reservations alone, or denials.
    Uncountable(usize),
    /// The policy or state at this position cannot be used.
    At(usize),
}

impl From<OutOfMemory> for Failure {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<Uncountable> for Failure {
    fn from(Uncountable(position): Uncountable) -> Self {
        Self::Uncountable(position)
    }
}

impl From<SlotError> for Failure {
    fn from(error: SlotError) -> Self {
        match error {
            SlotError::Full => Self::Full,
            SlotError::ManyExceptions => Self::ManyExceptions,
            SlotError::OutOfMemory => Self::OutOfMemory,
        }
    }
}

/// The most slots that [`SlotLimiter::clean`] frees at once, so that the list of moves stays short.
const CLEANED_AT_ONCE: u32 = 64;

/// States by slot. After each operation, whether it failed or not, the caller asks [`SlotLimiter::has_moved`]. If so, it reads
/// [`SlotLimiter::moves_part`]: it removes the keys of the freed slots, only then assigns the taken slot to the key of the
/// operation, and calls [`SlotLimiter::acknowledge`].
#[derive(Debug)]
pub struct SlotLimiter {
    slots: Slots,
    /// Whether the states may be stored outside the process.
    stored: bool,
}

impl SlotLimiter {
    /// Returns an empty limiter. With `reports`, expired states are listed in the moves. With `stored`, the states may be
    /// stored outside the process, where logs are short.
    pub fn new(
        Algorithms(algorithms): Algorithms,
        choice: Option<Denied>,
        options: Options,
        reports: bool,
        stored: bool,
    ) -> Result<Self, Failure> {
        check_reachable(&algorithms, stored)?;
        let denied = denied(&algorithms, choice);
        let mut slots = Slots::new(algorithms, denied, options)?;
        slots.reports = reports;
        if stored {
            slots.store();
        }
        // So that cleaning works without memory too, a few slots at a time.
        slots.reserve_reports(FREED_AT_MOST)?;
        Ok(Self { slots, stored })
    }

    /// Returns the number of policies.
    pub fn policies(&self) -> usize {
        self.slots.policy_states().algorithms().len()
    }

    /// Returns whether a hit is plain: its key has a slot and keeps it, and no slot is to be swept.
    #[inline(always)]
    pub fn is_plain(&self, slot: i32, now: u64) -> bool {
        self.slots.is_plain(slot, now)
    }

    /// Decides a plain hit under a single fixed window, in the fewest steps; `None` under any other policies.
    #[inline(always)]
    pub fn hit_window(&mut self, slot: u32, cost: u64, now: u64) -> Option<Decision> {
        self.slots.hit_window(slot, cost, now)
    }

    /// Decides any plain hit.
    #[inline(always)]
    pub fn hit_plain(&mut self, slot: u32, cost: u64, now: u64) -> Result<Decision, Failure> {
        Ok(self.slots.hit_plain(slot, cost, now)?)
    }

    /// Decides any hit, under the numbers of a call if there is one. `slot` is `None` for a new key.
    pub fn hit(
        &mut self,
        slot: Option<u32>,
        costs: &PositionCosts,
        now: u64,
        call: Option<Algorithms>,
    ) -> Result<Decision, Failure> {
        self.slots.policy_states().check_hit()?;
        self.check_rows(slot, now)?;
        let algorithms = self.adjusted(call)?;
        self.slots.operate(slot, now, |slots| slots.hit(slot, algorithms.as_deref(), costs, now))
    }

    /// Returns the decision of a hit, under the numbers of a call if there is one. Changes no state.
    pub fn peek(
        &mut self,
        slot: Option<u32>,
        costs: &PositionCosts,
        now: u64,
        call: Option<Algorithms>,
    ) -> Result<Decision, Failure> {
        let algorithms = self.adjusted(call)?;
        Ok(self.slots.peek(slot, algorithms.as_deref(), costs, now)?)
    }

    /// The same if denied hits are free, whatever the policy's choice: for a hit that is charged only with others.
    pub fn peek_free(
        &mut self,
        slot: Option<u32>,
        costs: &PositionCosts,
        now: u64,
        call: Option<Algorithms>,
    ) -> Result<Decision, Failure> {
        let algorithms = self.adjusted(call)?;
        Ok(self.slots.peek_free(slot, algorithms.as_deref(), costs, now)?)
    }

    /// Decides a reservation with the bits of its id, under the numbers of a call if there is one.
    pub fn reserve(
        &mut self,
        slot: Option<u32>,
        costs: &PositionCosts,
        (bits, ttl): ([u32; 4], u64),
        now: u64,
        call: Option<Algorithms>,
    ) -> Result<Decision, Failure> {
        if !(1..=MAX_TTL).contains(&ttl) {
            return Err(Failure::Amount);
        }
        self.check_rows(slot, now)?;
        let algorithms = self.adjusted(call)?;
        let reserved = Reserved::new(bits, now, ttl);
        self.slots.operate(slot, now, |slots| slots.reserve_costs(slot, algorithms.as_deref(), costs, reserved, now))
    }

    /// Returns what the undo of a hit needs that was just allowed: how much a bucket held beside it. `None` if the hit charged
    /// nothing.
    pub fn beside_hit(&mut self, slot: Option<u32>, costs: &PositionCosts, now: u64) -> Option<u64> {
        self.slots.hit_id(slot?, costs, now).map(|id| id.beside())
    }

    /// Undoes a hit, by its random bits, its time and what was beside it. Returns the most that was given back.
    pub fn undo(
        &mut self,
        slot: Option<u32>,
        (random, at, beside): (u64, u64, u64),
        costs: &PositionCosts,
        now: u64,
    ) -> Result<u64, Failure> {
        let id = HitId::new(random, at, beside).ok_or(Failure::Amount)?;
        slot.map_or(Ok(0), |own| self.change(slot, now, |slots| slots.undo(own, &id, costs, now)))
    }

    /// Returns the default duration of a reservation.
    pub fn default_ttl(&self) -> u64 {
        self.slots.policy_states().default_ttl()
    }

    /// Closes a reservation and charges the used amounts, or with a `ttl` moves its end. `end` is the end in its id.
    pub fn settle_reservation(
        &mut self,
        slot: Option<u32>,
        (bits, end): ([u32; 4], u64),
        used: &PositionCosts,
        ttl: Option<u64>,
        now: u64,
    ) -> Result<Settlement, Failure> {
        if ttl.is_some_and(|ttl| !(1..=MAX_TTL).contains(&ttl)) {
            return Err(Failure::Amount);
        }
        let Some(slot) = slot else { return Ok(self.slots.missing(bits, end, now)) };
        let found = self.change(Some(slot), now, |slots| match ttl {
            None => slots.settle_reservation(slot, bits, used, now),
            Some(ttl) => slots.extend_reservation(slot, bits, ttl, now),
        })?;
        Ok(found.unwrap_or_else(|| self.slots.missing(bits, end, now)))
    }

    /// Clears the states of a slot, and with `all` its reservations. Returns false if nothing is left, so that the caller can
    /// remove the key.
    pub fn reset(&mut self, slot: u32, all: bool, now: u64) -> Result<bool, Failure> {
        self.change(Some(slot), now, |slots| slots.reset(slot, all, now))
    }

    /// Checks that the policy at a position counts more than reservations, and is no ban.
    pub fn check_countable(&self, position: usize) -> Result<(), Failure> {
        Ok(self.slots.policy_states().check_countable(position)?)
    }

    /// Charges a cost to one policy, which must be countable, whether it fits or not; a negative cost gives back. Returns the
    /// count.
    pub fn inc(&mut self, slot: Option<u32>, position: usize, cost: i64, now: u64) -> Result<u64, Failure> {
        match cost {
            0 => Ok(self.slots.get(slot, position, now)?),
            cost => self.change_count(slot, position, Act::inc(cost).map_err(|_| Failure::Amount)?, now),
        }
    }

    /// Sets the count of one policy, which must be countable, to at most [`SlotLimiter::max_count`].
    pub fn set(&mut self, slot: Option<u32>, position: usize, count: u64, now: u64) -> Result<u64, Failure> {
        self.change_count(slot, position, Act::Set(count), now)
    }

    /// Begins a ban at a position, or changes its end; without a length, lifts it. Returns when it ends or would have ended.
    pub fn hold(&mut self, slot: Option<u32>, position: usize, length: Option<u64>, now: u64) -> Result<u64, Failure> {
        match length {
            Some(1..=MAX) => {
                self.check_rows(slot, now)?;
                self.change(slot, now, |slots| slots.hold(slot, position, length, now))
            }
            None => self.change(slot, now, |slots| slots.hold(slot, position, None, now)),
            Some(_) => Err(Failure::Amount),
        }
    }

    /// Sets the exception of a key; without numbers, lifts the one that it has. The numbers are, for each policy: the number of
    /// its name, how many numbers follow, when it ends, now, and each field's position in the schema and value. Returns when
    /// the exception ends, or would have ended; 0 if there was none.
    pub fn except(&mut self, slot: Option<u32>, numbers: &[i64], now: u64) -> Result<u64, Failure> {
        let exceptions = Exceptions::from_flat(numbers)?.ok_or(Failure::Amount)?;
        match self.slots.unfit(&exceptions) {
            Some(unfit) => Err(Failure::At(unfit.position)),
            None => self.change(slot, now, |slots| slots.except(slot, exceptions, now)),
        }
    }

    /// Returns the highest count that a policy may be set to.
    pub fn max_count(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.slots.most_to_set(slot, position, now)
    }

    /// Returns one policy's count.
    pub fn get(&self, slot: Option<u32>, position: usize, now: u64) -> Result<u64, Failure> {
        Ok(self.slots.get(slot, position, now)?)
    }

    /// Returns when one policy's state ends; 0 if there is none.
    pub fn expires_at(&self, slot: Option<u32>, position: usize, now: u64) -> Result<u64, Failure> {
        Ok(self.slots.expires_at(slot, position, now)?)
    }

    /// Frees the slot of a key that the caller has removed.
    pub fn release(&mut self, slot: u32) {
        self.slots.release(slot);
    }

    /// Frees slots whose states have ended, from a slot on. Returns the slot to go on from; `None` at the end.
    pub fn clean(&mut self, now: u64, from: u32) -> Result<Option<u32>, Failure> {
        Ok(self.slots.clean(from, CLEANED_AT_ONCE, now)?)
    }

    /// Returns whether slots were freed or taken since [`SlotLimiter::acknowledge`].
    #[inline]
    pub fn has_moved(&self) -> bool {
        self.slots.taken.is_some() || !self.slots.freed.is_empty()
    }

    /// Copies a part of the list of moves since [`SlotLimiter::acknowledge`], from the number at `from` on: the taken slot or -1, the
    /// number of freed slots, the freed slots, then slot, policy, value and time of each expired state. Returns how many
    /// numbers were copied.
    pub fn moves_part(&self, from: usize, part: &mut [i64]) -> usize {
        let Slots { taken, freed, expired, .. } = &self.slots;
        let head = 2 + freed.len();
        let number = |at: usize| match at {
            0 => Some(taken.map_or(-1, i64::from)),
            1 => Some(freed.len() as i64),
            at if at < head => freed.get(at - 2).map(|&slot| slot.into()),
            at => expired.get((at - head) / 4).map(|state| match (at - head) % 4 {
                0 => state.slot.into(),
                1 => state.policy as i64,
                2 => state.value as i64,
                _ => state.expired_at as i64,
            }),
        };
        let mut copied = 0;
        while let (Some(place), Some(number)) = (part.get_mut(copied), number(from + copied)) {
            *place = number;
            copied += 1;
        }
        copied
    }

    /// Clears the list of moves, which the caller has applied to its keys.
    pub fn acknowledge(&mut self) {
        self.slots.taken = None;
        self.slots.freed.clear();
        self.slots.expired.clear();
    }

    /// Returns how many live keys were evicted.
    pub fn evicted(&self) -> u64 {
        self.slots.evicted()
    }

    /// Returns when the states of a slot end; `now` or earlier if they have.
    pub fn ends_at(&self, slot: u32, now: u64) -> u64 {
        self.slots.ends_at(slot, now)
    }

    /// Appends the rows of a slot to `numbers`, each after the count of its numbers: those of the policies in order, then the
    /// others, then the exception under each policy. A row's numbers are the number of its name (the position of a policy, or one
    /// that the caller gave to another name), its algorithm's position in the schema, its scale, when it ends, how many numbers the
    /// state has, and these; then the parts of open reservations, ten numbers each.
    pub fn export(&self, slot: u32, numbers: &mut Vec<i64>) -> Result<(), Failure> {
        Ok(self.slots.export_flat(slot, numbers)?)
    }

    /// Copies a part of the numbers of the state at an index, from the number at `from` on, without allocating. Returns how
    /// many numbers were copied.
    pub fn export_part(&self, slot: u32, index: usize, from: usize, part: &mut [i64]) -> usize {
        self.slots.export_part(slot, index, from, part)
    }

    /// Loads one key's rows, as [`SlotLimiter::export`] appends them, into its slot, unless they have ended; without `put` it only
    /// checks them. A row whose shape is not that of the policy of its name stays as it is. Returns which policies start unused
    /// beside a row of their name, as bits by their positions.
    ///
    /// # Errors
    ///
    /// If a row is invalid: at its index.
    pub fn load(&mut self, slot: Option<u32>, now: u64, numbers: &[i64], put: bool) -> Result<u32, Failure> {
        let staged = self.slots.stage::<u32, Failure>(now, |policy_states, key| {
            let (mut rest, mut index) = (numbers, 0);
            while !rest.is_empty() {
                let row = RowRef::parse(list_in(&mut rest, index)?).ok_or(Failure::At(index))?;
                key.load(policy_states, row).map_err(|error| match error {
                    LoadError::OutOfMemory => Failure::OutOfMemory,
                    LoadError::Invalid(_) => Failure::At(index),
                })?;
                index += 1;
            }
            key.loaded(policy_states, now);
            Ok(key.afresh(policy_states, now))
        });
        let (ended, afresh) = staged?;
        if !ended && put {
            self.change(slot, now, |slots| slots.import(slot, now))?;
        }
        Ok(afresh)
    }

    fn change_count(&mut self, slot: Option<u32>, position: usize, act: Act, now: u64) -> Result<u64, Failure> {
        self.check_rows(slot, now)?;
        self.change(slot, now, |slots| slots.change(slot, position, act, now))
    }

    /// Runs an operation that may change a key.
    #[inline]
    fn change<T, E: Into<Failure>>(
        &mut self,
        slot: Option<u32>,
        now: u64,
        work: impl FnOnce(&mut Slots) -> Result<T, E>,
    ) -> Result<T, Failure> {
        self.slots.operate(slot, now, work).map_err(Into::into)
    }

    /// Checks that a key which may be stored has room for the rows of the policies.
    fn check_rows(&self, slot: Option<u32>, now: u64) -> Result<(), Failure> {
        if self.stored && !self.slots.has_room_for_rows(slot, now) { Err(Failure::ManyRows) } else { Ok(()) }
    }

    /// Returns the algorithms of one call, adjusted to the limiter's own.
    fn adjusted(&self, call: Option<Algorithms>) -> Result<Option<Vec<AnyAlgorithm>>, Failure> {
        let Some(Algorithms(mut algorithms)) = call else { return Ok(None) };
        check_reachable(&algorithms, self.stored)?;
        if self.slots.adjust(&mut algorithms) { Ok(Some(algorithms)) } else { Err(Failure::Mismatch) }
    }
}

/// Checks that each limit can be reached.
fn check_reachable(algorithms: &[AnyAlgorithm], stored: bool) -> Result<(), Failure> {
    let is_unreachable = |own: &AnyAlgorithm| !own.is_reachable(own.limit(), stored);
    algorithms.iter().position(is_unreachable).map_or(Ok(()), |position| Err(Failure::At(position)))
}

/// Splits a list, which follows its length, off the front of `rest`. The error has `position`.
fn list_in<'a>(rest: &mut &'a [i64], position: usize) -> Result<&'a [i64], Failure> {
    let (&count, numbers) = rest.split_first().ok_or(Failure::At(position))?;
    let (list, after) = numbers.split_at_checked(count as usize).ok_or(Failure::At(position))?;
    *rest = after;
    Ok(list)
}
