//! A slab's states as plain numbers, and back.

use super::{Full, Slots};
use crate::algorithm::sliding_window::Log;
use crate::lanes::{Entry, Lanes};
use alloc::vec::Vec;

/// States of one key that were read, before they take the place of others.
pub(crate) struct Imported {
    words: Vec<u64>,
    logs: Vec<Log>,
    /// Whether they have ended, so that there is nothing to keep.
    pub(crate) ended: bool,
}

impl Slots {
    /// The states of a slot as plain numbers, one after the other: for each, how many there are, then they.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    pub(crate) fn export_flat(&self, slot: u32, numbers: &mut Vec<i64>) {
        for position in 0..self.lanes.rules().len() {
            let start = numbers.len();
            numbers.push(0);
            self.lanes.export_one(position, &mut self.entry(slot), numbers);
            numbers[start] = (numbers.len() - start - 1) as i64;
        }
    }

    /// The states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Vec<Vec<i64>> {
        self.lanes.export(&mut self.entry(slot))
    }

    /// States of a key, from whatever `load` puts into the entry of a key never used, and what it answered.
    pub(crate) fn read<T, E>(
        &mut self,
        now: u64,
        load: impl FnOnce(&Lanes, &mut Entry<'_>) -> Result<T, E>,
    ) -> Result<(Imported, T), E> {
        self.lanes.start_within_capacity();
        let (mut words, mut logs) = self.unused(now);
        let answer = load(&self.lanes, &mut Entry::Write(&mut words, &mut logs))?;
        let ended = self.lanes.all_end_at(&mut Entry::Read(&words, &logs), now) <= now;
        Ok((Imported { words, logs, ended }, answer))
    }

    /// Puts states that were read into a key's slot. A key without a slot is given one.
    pub(crate) fn import(&mut self, slot: Option<u32>, states: Imported, now: u64) -> Result<(), Full> {
        let slot = self.open(slot, now)?;
        self.parts(slot).1.replace(states.words, states.logs);
        Ok(())
    }
}
