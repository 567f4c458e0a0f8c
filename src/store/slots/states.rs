//! A slab's states as plain numbers, and back.

use super::{Full, Slots};
use crate::policy_states::{Entry, PolicyStates};
use alloc::vec::Vec;

impl Slots {
    /// The states of a slot as plain numbers, one after the other: for each, how many there are, then they.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    pub(crate) fn export_flat(&self, slot: u32, numbers: &mut Vec<i64>) {
        for position in 0..self.policy_states.rules().len() {
            let start = numbers.len();
            numbers.push(0);
            self.policy_states.export_one(position, &mut self.entry(slot), numbers);
            numbers[start] = (numbers.len() - start - 1) as i64;
        }
    }

    /// The states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Vec<Vec<i64>> {
        self.policy_states.export(&mut self.entry(slot))
    }

    /// Reads states of one key: whatever `load` puts into the entry of a key never used. They are staged until they are
    /// put into a slot. Answers whether they have ended, so that there is nothing to put, and what `load` answered.
    pub(crate) fn read<T, E>(
        &mut self,
        now: u64,
        load: impl FnOnce(&PolicyStates, &mut Entry<'_>) -> Result<T, E>,
    ) -> Result<(bool, T), E> {
        self.policy_states.start_within_capacity();
        let mut entry = Entry::Write(&mut self.staged.0, &mut self.staged.1);
        self.policy_states.clear(&mut entry, now);
        let answer = load(&self.policy_states, &mut entry)?;
        Ok((self.policy_states.all_end_at(&mut entry, now) <= now, answer))
    }

    /// Puts the states that were read last into a key's slot. A key without a slot is given one.
    pub(crate) fn import(&mut self, slot: Option<u32>, now: u64) -> Result<(), Full> {
        let slot = self.open(slot, now)?;
        let (words, logs) = self.entries.get_mut(slot);
        for (word, read) in words.iter_mut().zip(&self.staged.0) {
            *word = *read;
        }
        for (log, read) in logs.iter_mut().zip(&mut self.staged.1) {
            core::mem::swap(log, read);
        }
        Ok(())
    }
}
