//! A slab's states as plain numbers, and back.

use super::Slots;
use crate::Error;
use crate::algorithm::sliding_window::Log;
use crate::lanes::Entry;
use crate::record::{MadeBy, load_states};
use alloc::string::String;
use alloc::vec::Vec;

/// States that were read from plain numbers and found right.
pub(crate) struct Imported {
    words: Vec<u64>,
    logs: Vec<Log>,
    /// Whether all of them have ended, so that there is nothing to keep.
    pub(crate) ended: bool,
    /// The names of the policies that start afresh.
    pub(crate) afresh: Vec<String>,
}

impl Slots {
    /// The states of a slot as plain numbers, one after the other, each behind how many there are.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    pub(crate) fn export_flat(&self, slot: u32) -> Vec<i64> {
        let mut numbers = Vec::new();
        for position in 0..self.lanes.rules().len() {
            let start = numbers.len();
            numbers.push(0);
            self.lanes.export_one(position, &mut self.entry(slot), &mut numbers);
            numbers[start] = (numbers.len() - start - 1) as i64;
        }
        numbers
    }

    /// The states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Vec<Vec<i64>> {
        self.lanes.export(&mut self.entry(slot))
    }

    /// Passes states from plain numbers if they can be read. Also answers the policies that start afresh.
    pub(crate) fn read<S: AsRef<str>>(
        &mut self,
        made_by: &[MadeBy<S>],
        states: &[impl AsRef<[i64]>],
        now: u64,
    ) -> Result<Imported, Error> {
        self.lanes.start_within_capacity();
        let (mut words, mut logs) = self.unused(now);
        let mut entry = Entry::Write(&mut words, &mut logs);
        let afresh = load_states(&self.lanes, &mut entry, made_by, states, now)?;
        let ended = self.lanes.all_end_at(&mut Entry::Read(&words, &logs), now) <= now;
        Ok(Imported { words, logs, ended, afresh })
    }

    /// Puts states that were read into a key's slot. A key without a slot is given one.
    pub(crate) fn import(&mut self, slot: Option<u32>, states: Imported, now: u64) -> Result<(), Error> {
        let slot = self.open(slot, now)?;
        self.parts(slot).1.replace(states.words, states.logs);
        Ok(())
    }
}
