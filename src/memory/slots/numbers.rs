//! The states in slots as plain numbers, and back.

use super::{SlotError, Slots};
use crate::algorithm::Push;
use crate::growth::{self, OutOfMemory};
use crate::key::operate::{Extra, listed};
use crate::key::policy_states::PolicyStates;
use crate::key::rows::{Row, has_room, push_row, rows_of};
use crate::key::states::{Batch, KeyStates};
use alloc::vec::Vec;

impl Slots {
    /// Appends the states of a slot as plain numbers, each state after the count of its numbers.
    pub(crate) fn export_flat(&self, slot: u32, numbers: &mut Vec<i64>) -> Result<(), OutOfMemory> {
        let mut index = 0;
        loop {
            let start = numbers.len();
            growth::push(numbers, 0)?;
            let push: Push<'_> = &mut |number| growth::push(numbers, number);
            if !push_row(&self.policy_states, self.entries.get(slot), self.extras.get(slot), index, push)? {
                numbers.truncate(start);
                return Ok(());
            }
            let count = (numbers.len() - start - 1) as i64;
            if let Some(before) = numbers.get_mut(start) {
                *before = count;
            }
            index += 1;
        }
    }

    /// Copies a part of the plain numbers of the state at an index, from the number at `from` on, without allocating.
    /// Returns how many numbers were copied.
    pub(crate) fn export_part(&self, slot: u32, index: usize, from: usize, part: &mut [i64]) -> usize {
        let (mut at, mut copied) = (0, 0);
        let push: Push<'_> = &mut |number| {
            if at >= from {
                *part.get_mut(copied).ok_or(OutOfMemory)? = number;
                copied += 1;
            }
            at += 1;
            Ok(())
        };
        // The export stops with an error when the part is full.
        let _ = push_row(&self.policy_states, self.entries.get(slot), self.extras.get(slot), index, push);
        copied
    }

    /// Returns the rows of a slot.
    pub(crate) fn rows(&self, slot: u32) -> Result<Vec<Row>, OutOfMemory> {
        rows_of(&self.policy_states, self.entries.get(slot), self.extras.get(slot))
    }

    /// Returns whether a key outside the process has room for a row of each policy.
    pub(crate) fn has_room_for_rows(&self, slot: Option<u32>, now: u64) -> bool {
        let rows = slot.and_then(|slot| self.extras.get(slot)).map_or(&[][..], |extra| &extra.rows);
        has_room(rows.iter().filter(|row| row.is_live(now)).count(), self.policy_states.algorithms().len())
    }

    /// Stages the states that `load` reads into those of a key never used. Returns whether they have ended, so that they
    /// need no slot, and what `load` returned.
    pub(crate) fn stage<T, E>(
        &mut self,
        now: u64,
        load: impl FnOnce(&PolicyStates, &mut KeyStates) -> Result<T, E>,
    ) -> Result<(bool, T), E> {
        self.staged.clear(&self.policy_states, now);
        let loaded = load(&self.policy_states, &mut self.staged)?;
        self.staged.extra.drop_ended_rows(now);
        Ok((self.staged.end_at(&self.policy_states, now) <= now, loaded))
    }

    /// Moves the staged states to a batch.
    pub(crate) fn unstage(&mut self, batch: &mut Batch) -> Result<(), OutOfMemory> {
        batch.push(&mut self.staged)
    }

    /// Stages the states that were added to a batch as number `index`.
    pub(crate) fn restage(&mut self, batch: &mut Batch, index: usize) {
        // The extra of an ended key may still be there.
        self.staged.extra = Extra::default();
        self.ready = batch.take(index, &mut self.staged);
    }

    /// Makes room for the extra of the staged states, so that it can be moved to a slot.
    pub(super) fn ready_extra(&mut self) -> Result<(), OutOfMemory> {
        if !self.staged.extra.is_empty() {
            self.ready = listed(&mut self.staged.extra)?;
        }
        if !self.ready.is_empty() {
            self.extras.reserve(self.slots_with_one_more())?;
        }
        Ok(())
    }

    /// Moves the staged states into a key's slot. A key without a slot is given one.
    pub(crate) fn import(&mut self, slot: Option<u32>, now: u64) -> Result<(), SlotError> {
        self.ready_extra()?;
        let slot = match slot {
            Some(slot) => slot,
            None => self.take(now)?,
        };
        self.put(slot, now);
        Ok(())
    }
}
