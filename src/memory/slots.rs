//! A bounded number of slots, swept as they are used. A slot is a number; the owner maps keys to slots.

mod entries;
mod exceptions;
mod extras;
mod numbers;
mod plain;
mod reservations;
mod room;
mod sweep;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::forecast::WORDS;
use crate::algorithm::log::Log;
use crate::algorithm::{Act, Outcome};
use crate::growth::OutOfMemory;
use crate::key::open_reservations::{Bits, Open};
use crate::key::operate::{Extra, KeyMut};
use crate::key::policy_states::{Entry, EntryMut, PolicyStates};
use crate::key::states::KeyStates;
use crate::number::NEVER;
use crate::policy::costs::PositionCosts;
use crate::{Decision, Denied, Error, MAX_POLICIES, Options};
use alloc::vec::Vec;
#[cfg(test)]
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use entries::Entries;
use extras::Extras;
use room::{NoSlot, deny_full};

use sweep::Cleaning;
pub(crate) use sweep::Expired;
pub(crate) use sweep::FREED_AT_MOST;

/// The end of the list of free slots.
const NO_SLOT: u32 = u32::MAX;

/// The highest number of words in the states of one key.
const MAX_WORDS: usize = WORDS * MAX_POLICIES;

/// Why a key got no slot. No state was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// There are `max_keys` keys.
    Full,
    /// Half of `max_keys` keys have exceptions.
    ManyExceptions,
    /// Memory ran out.
    OutOfMemory,
}

impl From<OutOfMemory> for SlotError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// The slots. Whatever may change a key runs within [`Slots::operate`]. After each operation, whether it failed or not, the
/// owner must remove the keys of the slots in `freed`, and only then assign the slot in `taken`, if there is one, to the
/// key of the operation.
///
/// An operation that runs out of memory changes no state. It may have freed slots whose states had ended.
#[derive(Debug)]
pub(crate) struct Slots {
    policy_states: PolicyStates,
    options: Options,
    entries: Entries,
    /// The states of a key that has no slot yet.
    staged: KeyStates,
    /// The extra of the staged states, in a list of at most one, while it is moved to a slot.
    ready: Vec<Extra>,
    /// The extras that a few slots have beside their states.
    extras: Extras,
    /// Whether no key grows stale, and no policy counts reservations alone.
    hits_are_plain: bool,
    /// One bit for each slot: whether it is occupied.
    occupied: Vec<u64>,
    /// The number of slots ever made, occupied or free.
    made: u32,
    len: u32,
    /// The first free slot. Each free slot has the number of the next in its first word.
    free: u32,
    /// The slot that the last operation took for a key that had none. The owner clears it.
    pub taken: Option<u32>,
    /// Slots freed by sweeping or eviction. The owner clears the list.
    pub freed: Vec<u32>,
    /// The values of the expired ones among them, recorded only when `reports` is set. The owner clears the list.
    pub expired: Vec<Expired>,
    /// Whether the values of expired states are recorded.
    pub reports: bool,
    evicted: u64,
    /// The open reservations of evicted keys, and their ends.
    evicted_open: Vec<(Bits, u64)>,
    cleaning: Cleaning,
    probe: u32,
    /// The number of slots examined so far, for a test that each operation examines few.
    #[cfg(test)]
    looked_at: AtomicU64,
}

impl Slots {
    /// Returns no slots.
    pub(crate) fn new(algorithms: Vec<AnyAlgorithm>, denied: Denied, options: Options) -> Result<Self, OutOfMemory> {
        let policy_states = PolicyStates::new(algorithms, denied)?;
        // The last word is the time of the last change, where `key_older_than` is set. A free slot needs a word as
        // well.
        let width = (policy_states.size().word + usize::from(options.key_older_than.is_some())).max(1);
        Ok(Self {
            entries: Entries::new(width, policy_states.size().log),
            staged: KeyStates::new(&policy_states)?,
            ready: Vec::new(),
            extras: Extras::new(),
            hits_are_plain: options.key_older_than.is_none() && policy_states.check_hit().is_ok(),
            policy_states,
            options,
            occupied: Vec::new(),
            made: 0,
            len: 0,
            free: NO_SLOT,
            taken: None,
            freed: Vec::new(),
            expired: Vec::new(),
            reports: false,
            evicted: 0,
            evicted_open: Vec::new(),
            cleaning: Cleaning::default(),
            probe: 0,
            #[cfg(test)]
            looked_at: AtomicU64::new(0),
        })
    }

    /// Records that the states may be stored outside the process, where logs are short and fewer reservations are open.
    pub(crate) fn store(&mut self) {
        self.policy_states.store();
    }

    /// Returns the algorithms and the layout of the states.
    pub(crate) fn policy_states(&self) -> &PolicyStates {
        &self.policy_states
    }

    /// Adjusts the algorithms of one call to the states in the slots. Returns whether they fit.
    pub(crate) fn adjust(&self, call: &mut [AnyAlgorithm]) -> bool {
        self.policy_states.adjust(call)
    }

    /// Returns the error for a key that got no slot.
    pub(crate) fn error(&self, error: SlotError) -> Error {
        match error {
            SlotError::Full => Error::Full { max_keys: self.options.max_keys },
            SlotError::ManyExceptions => Error::ManyExceptions { max_keys: self.options.max_keys },
            SlotError::OutOfMemory => OutOfMemory.into(),
        }
    }

    /// Returns the number of occupied slots.
    #[allow(clippy::len_without_is_empty)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns how many live keys were evicted.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Runs an operation that may change a key, and sweeps: before it, or for a key without a slot after it, so that what is
    /// freed decides nothing.
    #[inline]
    pub(crate) fn operate<T>(&mut self, slot: Option<u32>, now: u64, work: impl FnOnce(&mut Self) -> T) -> T {
        self.sweep_before(slot, now);
        let result = work(self);
        self.sweep_after(slot, now);
        result
    }

    /// Charges the costs if they fit. A key without a slot may be given one.
    #[inline(never)]
    pub(crate) fn hit<E: From<OutOfMemory>>(
        &mut self,
        slot: Option<u32>,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, E> {
        match slot {
            Some(slot) => self.hit_slot(slot, algorithms, costs, now),
            None => self.hit_new(algorithms, costs, now),
        }
    }

    /// Charges the costs of a hit on a key that has a slot, if they fit.
    ///
    /// Never inlined: one copy for all kinds of keys. The caller chooses the error type, so that the decision is
    /// written into the caller's result and not copied.
    #[inline(never)]
    pub(crate) fn hit_slot<E: From<OutOfMemory>>(
        &mut self,
        slot: u32,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, E> {
        self.clear_if_stale(slot, now);
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let algorithms = algorithms.unwrap_or(policy_states.algorithms());
        let mut outcome = Outcome::default();
        let decision = match self.extras.get_mut(slot) {
            None => policy_states.hit_costs(algorithms, entry, costs, now, &mut outcome),
            Some(extra) => KeyMut { policy_states, algorithms, entry, extra }.hit(costs, now, &mut outcome),
        };
        if outcome.changed()? {
            self.touch(slot, now);
        }
        Ok(decision)
    }

    /// Charges the costs of a hit on a key that has no slot, if they fit. Its states are made outside the slots, so that
    /// a hit that is not charged evicts no other key, and one that runs out of memory changes no state.
    fn hit_new<E: From<OutOfMemory>>(
        &mut self,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, E> {
        let Self { policy_states, staged, .. } = self;
        staged.clear(policy_states, now);
        let algorithms = algorithms.unwrap_or(policy_states.algorithms());
        let mut outcome = Outcome::default();
        let decision = policy_states.hit_costs(algorithms, staged.entry_mut(), costs, now, &mut outcome);
        if outcome.changed()? { self.put_new(decision, now) } else { Ok(decision) }
    }

    /// Gives the staged states a slot, or makes the decision a denial if there is no room.
    fn put_new<E: From<OutOfMemory>>(&mut self, mut decision: Decision, now: u64) -> Result<Decision, E> {
        match self.take(now) {
            Ok(slot) => self.put(slot, now),
            Err(NoSlot::FullUntil(room_at)) => deny_full(&mut decision, room_at - now),
            Err(NoSlot::OutOfMemory) => return Err(OutOfMemory.into()),
        }
        Ok(decision)
    }

    /// Returns what a hit would return.
    pub(crate) fn peek(
        &self,
        slot: Option<u32>,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, OutOfMemory> {
        let algorithms = algorithms.unwrap_or(self.policy_states.algorithms());
        if let Some(extra) = self.extra_of(slot) {
            return self.beside(slot, extra, now, |entry, open| {
                self.policy_states.peek_excepted(algorithms, &extra.exceptions, (entry, open), costs, now)
            })?;
        }
        let mut decision = self.policy_states.peek(algorithms, self.entry_of(slot, now, &mut None), costs, now);
        if slot.is_none()
            && self.policy_states.changes_unused(&decision, costs)
            && let Some(room_at) = self.no_room_until(now)
        {
            deny_full(&mut decision, room_at - now);
        }
        Ok(decision)
    }

    /// Returns what a hit would return if denied hits were free.
    pub(crate) fn peek_free(
        &mut self,
        slot: Option<u32>,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, OutOfMemory> {
        let denied = self.policy_states.replace_denied(Denied::Free);
        let decision = self.peek(slot, algorithms, costs, now);
        self.policy_states.replace_denied(denied);
        decision
    }

    /// Returns the count of one policy.
    pub(crate) fn get(&self, slot: Option<u32>, position: usize, now: u64) -> Result<u64, OutOfMemory> {
        match self.extra_of(slot) {
            None => Ok(self.policy_states.get(position, self.entry_of(slot, now, &mut None), now)),
            Some(extra) => {
                let algorithm = self.policy_states.own_at(position, &extra.exceptions, now);
                self.beside(slot, extra, now, |entry, open| {
                    self.policy_states.look(position, &algorithm, entry, open, now).count
                })
            }
        }
    }

    /// Returns when one policy's state ends; 0 if there is none.
    pub(crate) fn expires_at(&self, slot: Option<u32>, position: usize, now: u64) -> Result<u64, OutOfMemory> {
        if let Some(extra) = self.extra_of(slot).filter(|extra| !extra.open.is_empty()) {
            return self
                .beside(slot, extra, now, |entry, open| self.policy_states.expires_beside(position, entry, open, now));
        }
        let ends = self.policy_states.expires_at(position, self.entry_of(slot, now, &mut None), now);
        Ok(slot.map_or(ends, |slot| ends.min(self.stale_at(slot))))
    }

    /// Changes one policy's state unconditionally, as `inc` and `set` do, and returns the count. A key without a slot
    /// is given one.
    pub(crate) fn change(&mut self, slot: Option<u32>, position: usize, act: Act, now: u64) -> Result<u64, SlotError> {
        let Some(slot) = slot else {
            if let Act::Refund(_) = act {
                return Ok(self.get(None, position, now)?);
            }
            let Self { policy_states, staged, .. } = self;
            staged.clear(policy_states, now);
            let algorithm = &policy_states.algorithms()[position];
            let count = policy_states.change(position, algorithm, staged.entry_mut(), act, now)?;
            self.import(None, now)?;
            return Ok(count);
        };
        self.clear_if_stale(slot, now);
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let count = match self.extras.get_mut(slot) {
            None => policy_states.change(position, &policy_states.algorithms()[position], entry, act, now)?,
            Some(extra) => KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra }
                .change(position, act, now)?,
        };
        self.touch(slot, now);
        Ok(count)
    }

    /// Begins or lifts a ban, and returns when it ends or would have ended. A key without a slot is given one for a ban.
    pub(crate) fn hold(
        &mut self,
        slot: Option<u32>,
        position: usize,
        length: Option<u64>,
        now: u64,
    ) -> Result<u64, SlotError> {
        let Some(slot) = slot else {
            if length.is_none() {
                return Ok(0);
            }
            let Self { policy_states, staged, .. } = self;
            staged.clear(policy_states, now);
            let until = policy_states.hold(position, staged.entry_mut(), length, now);
            self.import(None, now)?;
            return Ok(until);
        };
        self.clear_if_stale(slot, now);
        let until = self.policy_states.hold(position, self.entries.get_mut(slot), length, now);
        self.touch(slot, now);
        Ok(until)
    }

    /// Moves the staged states and their extra into a slot. There must be room for the extra.
    fn put(&mut self, slot: u32, now: u64) {
        self.staged.move_to(self.entries.get_mut(slot));
        self.extras.replace(slot, core::mem::take(&mut self.ready));
        self.touch(slot, now);
    }

    /// Returns whether a slot's states have ended, or were unchanged for too long.
    pub(crate) fn has_ended(&self, slot: u32, now: u64) -> bool {
        self.ends_at(slot, now) <= now
    }

    /// Returns when a slot's states end or become stale; `now` or earlier if they have.
    pub(crate) fn ends_at(&self, slot: u32, now: u64) -> u64 {
        #[cfg(test)]
        self.looked_at.fetch_add(1, Relaxed);
        let entry = self.entries.get(slot);
        match self.extras.get(slot) {
            None => self.policy_states.all_end_at(entry, now).min(self.stale_at(slot)),
            Some(extra) if extra.open.is_empty() => {
                let ends_at = extra.end_at(&self.policy_states, entry, now).min(self.stale_at(slot));
                ends_at.max(extra.exceptions.ends_at())
            }
            Some(extra) => extra.end_at(&self.policy_states, entry, now),
        }
    }

    /// Frees a slot whose key the owner has removed.
    pub(crate) fn release(&mut self, slot: u32) {
        if !self.is_occupied(slot) {
            return;
        }
        self.entries.get_mut(slot).logs.fill_with(Log::default);
        self.extras.remove(slot);
        self.link(slot);
        self.len -= 1;
        self.flip(slot);
    }

    /// Puts a slot at the head of the list of free slots.
    fn link(&mut self, slot: u32) {
        if let Some(next) = self.entries.get_mut(slot).words.first_mut() {
            *next = u64::from(self.free);
        }
        self.free = slot;
    }

    /// Returns an iterator over the occupied slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.made).filter(|&slot| self.is_occupied(slot))
    }

    fn is_occupied(&self, slot: u32) -> bool {
        self.occupied.get(slot as usize / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    /// Makes a free slot an occupied one, or the other way round.
    fn flip(&mut self, slot: u32) {
        self.occupied[slot as usize / 64] ^= 1 << (slot % 64);
    }

    /// Returns a slot's entry, or that of a key never used, which is made in `unused`.
    fn entry_of<'a>(&'a self, slot: Option<u32>, now: u64, unused: &'a mut Option<[u64; MAX_WORDS]>) -> Entry<'a> {
        match slot {
            Some(slot) if !self.is_stale(slot, now) => self.entries.get(slot),
            _ => {
                let words = unused.insert([0; MAX_WORDS]);
                let words = &mut words[..self.policy_states.size().word];
                self.policy_states.clear(EntryMut { words, logs: &mut [] }, now);
                Entry { words, logs: &[] }
            }
        }
    }

    /// Records that a slot is changed now, where `key_older_than` is set.
    #[inline]
    fn touch(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() {
            self.record_change(slot, now);
        }
    }

    #[cold]
    fn record_change(&mut self, slot: u32, now: u64) {
        if let Some(touched) = self.entries.words_mut(slot).last_mut() {
            *touched = now;
        }
    }

    /// Clears a slot that was unchanged for too long.
    #[inline]
    fn clear_if_stale(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() && self.is_stale(slot, now) {
            self.clear(slot, now);
        }
    }

    /// Makes a slot's states those of a key never used. An exception stays.
    #[cold]
    fn clear(&mut self, slot: u32, now: u64) {
        self.policy_states.clear(self.entries.get_mut(slot), now);
        if let Some(extra) = self.extras.get_mut(slot) {
            *extra = Extra { exceptions: core::mem::take(&mut extra.exceptions), ..Extra::default() };
        }
        self.drop_empty_extra(slot);
    }

    fn is_stale(&self, slot: u32, now: u64) -> bool {
        self.stale_at(slot) <= now && self.extras.get(slot).is_none_or(|extra| extra.open.is_empty())
    }

    /// Returns the extra of a slot that has open reservations or an exception; `None` for any other.
    fn extra_of(&self, slot: Option<u32>) -> Option<&Extra> {
        self.extras.get(slot?).filter(|extra| extra.decides())
    }

    /// Reads a slot's states and its open amounts, after the expired ones are charged.
    fn beside<T>(
        &self,
        slot: Option<u32>,
        extra: &Extra,
        now: u64,
        read: impl FnOnce(Entry<'_>, &Open) -> T,
    ) -> Result<T, OutOfMemory> {
        let mut unused = None;
        KeyStates::read(&self.policy_states, self.entry_of(slot, now, &mut unused), extra, now, read)
    }

    /// Returns when a slot has been unchanged for too long.
    fn stale_at(&self, slot: u32) -> u64 {
        match (self.options.key_older_than, self.entries.get(slot).words.last()) {
            (Some(older_than), Some(touched)) => touched.saturating_add(older_than),
            _ => NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn as_many_of_the_widest_states_as_there_can_be_are_read_without_a_slot() {
        for (policy, words) in [(Policy::sliding_counter(9, 1), 3), (Policy::token_bucket(9, 1, 1 << 40), WORDS)] {
            let algorithms = vec![policy.unwrap().algorithm; MAX_POLICIES];
            let mut slots = Slots::new(algorithms, Denied::Free, Options::new()).unwrap();
            assert_eq!(slots.policy_states.size().word, words * MAX_POLICIES);
            let costs = PositionCosts::All(2);
            assert_eq!(slots.peek(None, None, &costs, 0), slots.hit::<OutOfMemory>(None, None, &costs, 0));
        }
    }
}
