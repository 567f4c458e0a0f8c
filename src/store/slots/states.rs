//! A slab's states as plain numbers, and back.

use super::{SlotError, Slots};
use crate::earlier::export_earlier;
use crate::key_states::{Batch, KeyStates};
use crate::memory::OutOfMemory;
use crate::policy_states::PolicyStates;
use crate::record::{Afresh, Origin, load_states};
use crate::{Error, Policies};
use alloc::vec::Vec;

impl Slots {
    /// Adds the states of a slot as plain numbers, one after the other: for each how many there are, then they.
    pub fn export_flat(&self, slot: u32, numbers: &mut Vec<i64>) -> Result<(), OutOfMemory> {
        for position in 0..self.policy_states.rules().len() {
            let start = numbers.len();
            crate::memory::push(numbers, 0)?;
            self.policy_states.export_one(position, self.entries.get(slot), numbers)?;
            numbers[start] = (numbers.len() - start - 1) as i64;
        }
        Ok(())
    }

    /// Returns the states of a slot as plain numbers.
    pub fn export(&self, slot: u32) -> Result<Vec<Vec<i64>>, OutOfMemory> {
        self.policy_states.export(self.entries.get(slot))
    }

    /// Returns the earlier states of a slot as plain numbers: of each its policy's position, its scale, when it is no
    /// longer kept, and its state. `before` comes before each.
    pub fn export_earlier(&self, slot: u32, before: &[i64], now: u64) -> Result<Vec<Vec<i64>>, OutOfMemory> {
        export_earlier(self.earlier(slot), before, now)
    }

    /// Stages the states of one key, which were made by `origins`, with the rows of [`Slots::export_earlier`] for it.
    /// Returns whether they have ended, so that they need no slot, and which policies start afresh.
    pub fn stage<'a>(
        &mut self,
        policies: &Policies,
        origins: &[Origin<'_>],
        states: &[Vec<i64>],
        earlier: impl Iterator<Item = &'a [i64]> + Clone,
        now: u64,
    ) -> Result<(bool, Afresh), Error> {
        self.stage_by(now, |policy_states, key| {
            load_states(policies, policy_states, key, origins, states, earlier, now)
        })
    }

    /// Stages what `load` reads into the states of a key never used.
    pub(crate) fn stage_by<T, E>(
        &mut self,
        now: u64,
        load: impl FnOnce(&PolicyStates, &mut KeyStates) -> Result<T, E>,
    ) -> Result<(bool, T), E> {
        self.policy_states.start_within_capacity();
        self.staged.clear(&self.policy_states, now);
        let loaded = load(&self.policy_states, &mut self.staged)?;
        Ok((self.staged.end_at(&self.policy_states, now) <= now, loaded))
    }

    /// Moves the staged states to a batch.
    pub(crate) fn unstage(&mut self, batch: &mut Batch) -> Result<(), OutOfMemory> {
        batch.push(&mut self.staged)
    }

    /// Stages the states that were added to a batch as number `index`.
    pub(crate) fn restage(&mut self, batch: &mut Batch, index: usize) {
        batch.take(index, &mut self.staged);
    }

    /// Puts the staged states into a key's slot. A key without a slot is given one.
    pub fn import(&mut self, slot: Option<u32>, now: u64) -> Result<(), SlotError> {
        if !self.staged.earlier.is_empty() {
            self.earlier.try_reserve(1).map_err(OutOfMemory::from)?;
        }
        let slot = match slot {
            Some(slot) => slot,
            None => self.take(now)?,
        };
        self.put(slot, now);
        Ok(())
    }
}
