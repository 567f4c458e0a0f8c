//! A slab's states as plain numbers, and back.

use super::{SlotError, Slots};
use crate::algorithm::Push;
use crate::earlier::export_earlier;
use crate::extra::{Extra, listed};
use crate::key_states::{Batch, KeyStates};
use crate::memory::{self, OutOfMemory};
use crate::open::{Open, export_open};
use crate::policy_states::PolicyStates;
use crate::record::{Afresh, Origin, load_key};
use crate::{Error, Policies};
use alloc::vec::Vec;

/// Marks the numbers of an open reservation. A state under another scale has its policy's position in that place.
const RESERVATION: i64 = -1;

impl Slots {
    /// Appends the states of a slot as plain numbers, each state after the count of its numbers. The earlier states and
    /// the open reservations follow in the same way, each reservation marked by [`RESERVATION`].
    pub(crate) fn export_flat(&self, slot: u32, now: u64, numbers: &mut Vec<i64>) -> Result<(), OutOfMemory> {
        for position in 0..self.policy_states.rules().len() {
            counted(numbers, &mut |push| self.policy_states.export_one(position, self.entries.get(slot), push))?;
        }
        let Some(Extra { earlier, open }) = self.extras.get(slot) else { return Ok(()) };
        for earlier in earlier.iter().filter(|earlier| earlier.is_live(now)) {
            counted(numbers, &mut |push| earlier.export(push))?;
        }
        for index in 0..open.len() {
            counted(numbers, &mut |push| export_reservation(open, index, push))?;
        }
        Ok(())
    }

    /// Copies a part of one policy's state as plain numbers, from the number at `from` on. Positions after those of the
    /// policies are the earlier states, and then the open reservations. Returns how many numbers were copied.
    pub(crate) fn export_part(&self, slot: u32, position: usize, from: usize, part: &mut [i64]) -> usize {
        let (mut at, mut copied) = (0, 0);
        let push: Push<'_> = &mut |number| {
            if at >= from {
                *part.get_mut(copied).ok_or(OutOfMemory)? = number;
                copied += 1;
            }
            at += 1;
            Ok(())
        };
        let policies = self.policy_states.rules().len();
        // The export stops with an error when the part is full.
        let _ = match position.checked_sub(policies) {
            None => self.policy_states.export_one(position, self.entries.get(slot), push),
            Some(number) => self.extras.get(slot).map_or(Ok(()), |extra| export_extra(extra, number, push)),
        };
        copied
    }

    /// Returns the states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Result<Vec<Vec<i64>>, OutOfMemory> {
        self.policy_states.export(self.entries.get(slot))
    }

    /// Returns the earlier states of a slot as rows of plain numbers: `before`, the policy's position, the scale, the
    /// time until which the state is kept, and the state.
    pub(crate) fn export_earlier(&self, slot: u32, before: &[i64], now: u64) -> Result<Vec<Vec<i64>>, OutOfMemory> {
        export_earlier(self.extras.get(slot).map_or(&[], |extra| &extra.earlier), before, now)
    }

    /// Returns the open reservations of a slot as rows of plain numbers, each after `before`.
    pub(crate) fn export_open(&self, slot: u32, before: &[i64]) -> Result<Vec<Vec<i64>>, OutOfMemory> {
        self.extras.get(slot).map_or(Ok(Vec::new()), |extra| export_open(&extra.open, before))
    }

    /// Stages the states of one key, which were made by `origins`, with its rows of [`Slots::export_earlier`] and
    /// [`Slots::export_open`]. Returns whether they have ended, so that they need no slot, and which policies start
    /// afresh.
    pub(crate) fn stage<'a>(
        &mut self,
        policies: &Policies,
        origins: &[Origin<'_>],
        states: &[Vec<i64>],
        earlier: impl Iterator<Item = &'a [i64]> + Clone,
        open: impl Iterator<Item = &'a [i64]>,
        now: u64,
    ) -> Result<(bool, Afresh), Error> {
        self.stage_by(now, |policy_states, key| {
            load_key(policies, policy_states, key, origins, states, earlier, open, now)
        })
    }

    /// Stages the states that `load` reads into those of a key never used.
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

/// A function that passes numbers to another.
type Export<'a> = &'a mut dyn FnMut(Push<'_>) -> Result<(), OutOfMemory>;

/// Appends the count of the numbers that `export` passes, and then the numbers.
fn counted(numbers: &mut Vec<i64>, export: Export<'_>) -> Result<(), OutOfMemory> {
    let start = numbers.len();
    memory::push(numbers, 0)?;
    export(&mut |number| memory::push(numbers, number))?;
    let count = (numbers.len() - start - 1) as i64;
    if let Some(before) = numbers.get_mut(start) {
        *before = count;
    }
    Ok(())
}

/// Passes the numbers of an earlier state to `push`; after the earlier states, those of an open reservation.
fn export_extra(Extra { earlier, open }: &Extra, number: usize, push: Push<'_>) -> Result<(), OutOfMemory> {
    match number.checked_sub(earlier.len()) {
        None => earlier.get(number).map_or(Ok(()), |earlier| earlier.export(push)),
        Some(index) if index < open.len() => export_reservation(open, index, push),
        Some(_) => Ok(()),
    }
}

/// Passes the numbers of an open reservation to `push`.
fn export_reservation(open: &Open, index: usize, push: Push<'_>) -> Result<(), OutOfMemory> {
    push(RESERVATION)?;
    open.export(index, push)
}
