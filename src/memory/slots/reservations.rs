//! Reservations by slot.

use super::Slots;
use crate::Decision;
use crate::algorithm::Outcome;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, push};
use crate::key::open_reservations::{Bits, Reserved};
use crate::key::operate::{Extra, KeyMut};
use crate::key::reservation::Settlement;
use crate::key::undo::HitId;
use crate::policy::costs::PositionCosts;

/// The most reservations of evicted keys that are remembered.
const MAX_EVICTED_OPEN: usize = 1_024;

impl Slots {
    /// Opens a reservation if the costs fit. A key without a slot may be given one.
    pub(crate) fn reserve_costs<E: From<OutOfMemory>>(
        &mut self,
        slot: Option<u32>,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        reserved: Reserved,
        now: u64,
    ) -> Result<Decision, E> {
        // Extras are only allocated for slots that exist, whatever number the caller passes.
        let Some(slot) = slot.filter(|&slot| self.is_occupied(slot)) else {
            return self.reserve_new(algorithms, costs, reserved, now);
        };
        self.clear_if_stale(slot, now);
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let algorithms = algorithms.unwrap_or(policy_states.algorithms());
        let mut outcome = Outcome::default();
        let extra = self.extras.get_or_insert(slot)?;
        let mut key = KeyMut { policy_states, algorithms, entry, extra };
        let decision = key.reserve(costs, reserved, now, &mut outcome);
        let changed = outcome.changed();
        self.drop_empty_extra(slot);
        if changed? {
            self.touch(slot, now);
        }
        Ok(decision)
    }

    fn reserve_new<E: From<OutOfMemory>>(
        &mut self,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        reserved: Reserved,
        now: u64,
    ) -> Result<Decision, E> {
        let Self { policy_states, staged, .. } = self;
        staged.clear(policy_states, now);
        let algorithms = algorithms.unwrap_or(policy_states.algorithms());
        let mut outcome = Outcome::default();
        let mut key = staged.key_mut(policy_states, algorithms);
        let decision = key.reserve(costs, reserved, now, &mut outcome);
        if !outcome.changed()? {
            return Ok(decision);
        }
        self.ready_extra()?;
        self.put_new(decision, now)
    }

    /// Closes a reservation of a slot and charges the used amounts; `None` if it is not open.
    pub(crate) fn settle_reservation(
        &mut self,
        slot: u32,
        bits: Bits,
        used: &PositionCosts,
        now: u64,
    ) -> Result<Option<Settlement>, OutOfMemory> {
        self.on_open(slot, now, |key| key.settle(bits, used, now))
    }

    /// Moves the end of a reservation of a slot; `None` if it is not open.
    pub(crate) fn extend_reservation(
        &mut self,
        slot: u32,
        bits: Bits,
        ttl: u64,
        now: u64,
    ) -> Result<Option<Settlement>, OutOfMemory> {
        self.on_open(slot, now, |key| key.extend(bits, ttl, now))
    }

    fn on_open(
        &mut self,
        slot: u32,
        now: u64,
        work: impl FnOnce(&mut KeyMut<'_>) -> Result<Option<Settlement>, OutOfMemory>,
    ) -> Result<Option<Settlement>, OutOfMemory> {
        let Some(extra) = self.extras.get_mut(slot) else { return Ok(None) };
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let settlement = work(&mut KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra });
        self.drop_empty_extra(slot);
        let settlement = settlement?;
        if settlement.is_some() {
            self.touch(slot, now);
        }
        Ok(settlement)
    }

    /// Returns the id of a hit that was just allowed in a slot; `None` if it charged nothing.
    pub(crate) fn hit_id(&mut self, slot: u32, costs: &PositionCosts, now: u64) -> Option<HitId> {
        if !self.is_occupied(slot) {
            return None;
        }
        let (policy_states, entry, mut none) = (&self.policy_states, self.entries.get_mut(slot), Extra::default());
        let extra = self.extras.get_mut(slot).unwrap_or(&mut none);
        KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra }.hit_id(costs, 0, now)
    }

    /// Undoes a hit in a slot. Returns the most that was given back under a policy.
    pub(crate) fn undo(&mut self, slot: u32, id: &HitId, costs: &PositionCosts, now: u64) -> Result<u64, OutOfMemory> {
        if !self.is_occupied(slot) {
            return Ok(0);
        }
        let extra = self.extras.get_or_insert(slot)?;
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let mut key = KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra };
        let given = key.undo(id, costs, now, &mut Outcome::default());
        self.drop_empty_extra(slot);
        self.touch(slot, now);
        given
    }

    /// Resets a slot's states and keeps its open reservations, or with `all` closes them too. An exception stays. Returns
    /// false if nothing is left, so that the slot can be freed.
    pub(crate) fn reset(&mut self, slot: u32, all: bool, now: u64) -> Result<bool, OutOfMemory> {
        let Some(extra) = self.extras.get_mut(slot) else { return Ok(false) };
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        let mut key = KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra };
        match all {
            true => key.reset_all(now),
            false => key.reset_used(now)?,
        }
        let is_left = !extra.is_empty();
        self.drop_empty_extra(slot);
        Ok(is_left)
    }

    /// Charges the expired reservations of a slot. Returns whether others are still open.
    pub(super) fn expire_open(&mut self, slot: u32, now: u64) -> Result<bool, OutOfMemory> {
        let Some(extra) = self.extras.get_mut(slot) else { return Ok(false) };
        let (policy_states, entry) = (&self.policy_states, self.entries.get_mut(slot));
        KeyMut { policy_states, algorithms: policy_states.algorithms(), entry, extra }.expire(now)?;
        extra.exceptions.drop_ended(now);
        let is_open = !extra.open.is_empty();
        self.drop_empty_extra(slot);
        Ok(is_open)
    }

    /// Remembers the open reservations of a key that is evicted, so that settling them says what happened.
    pub(super) fn note_evicted(&mut self, slot: u32, now: u64) {
        let Self { extras, evicted_open, .. } = self;
        let Some(extra) = extras.get(slot) else { return };
        evicted_open.retain(|&(_, end)| end > now);
        // Without room, such a reservation counts as closed.
        let mut note = |bits, end| {
            if evicted_open.len() < MAX_EVICTED_OPEN {
                let _ = push(evicted_open, (bits, end));
            }
        };
        for (bits, end) in extra.open.all() {
            note(bits, end);
        }
        extra.for_each_elsewhere(&mut note);
    }

    /// Returns the result of settling a reservation that is not open. `end` is the end in its id.
    pub(crate) fn missing(&self, bits: Bits, end: u64, now: u64) -> Settlement {
        match self.evicted_open.iter().any(|(evicted, _)| *evicted == bits) {
            true => Settlement::Evicted,
            false => Settlement::missing(end, now),
        }
    }

    pub(super) fn drop_empty_extra(&mut self, slot: u32) {
        if self.extras.get(slot).is_some_and(|extra| extra.is_empty()) {
            self.extras.remove(slot);
        }
    }
}
