//! One key's states outside a slab.

use crate::algorithm::log::Log;
use crate::memory::{OutOfMemory, defaults};
use crate::policy_states::{Entry, EntryMut, PolicyStates};
use alloc::vec::Vec;

/// The states of one key under all policies.
#[derive(Clone, Debug)]
pub(crate) struct KeyStates {
    pub(crate) words: Vec<u64>,
    pub(crate) logs: Vec<Log>,
}

impl KeyStates {
    /// Makes room for the states of a key. They must be cleared before use.
    pub(crate) fn new(policy_states: &PolicyStates) -> Result<Self, OutOfMemory> {
        let size = policy_states.size();
        Ok(Self { words: defaults(size.word)?, logs: defaults(size.log)? })
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { words: &self.words, logs: &self.logs }
    }

    pub(crate) fn entry_mut(&mut self) -> EntryMut<'_> {
        EntryMut { words: &mut self.words, logs: &mut self.logs }
    }

    /// Makes the states those of a key never used.
    pub(crate) fn clear(&mut self, policy_states: &PolicyStates, now: u64) {
        policy_states.clear(self.entry_mut(), now);
    }

    /// Moves the states into the entry of a slot.
    pub(crate) fn move_to(&mut self, entry: EntryMut<'_>) {
        for (word, own) in entry.words.iter_mut().zip(&self.words) {
            *word = *own;
        }
        for (log, own) in entry.logs.iter_mut().zip(&mut self.logs) {
            *log = core::mem::take(own);
        }
    }
}

/// The states of many keys, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    words: Vec<u64>,
    logs: Vec<Log>,
}

impl Batch {
    /// Adds the states of a key, whose logs are empty afterwards.
    pub(crate) fn push(&mut self, key: &mut KeyStates) -> Result<(), OutOfMemory> {
        self.words.try_reserve(key.words.len())?;
        self.logs.try_reserve(key.logs.len())?;
        self.words.extend_from_slice(&key.words);
        self.logs.extend(key.logs.iter_mut().map(core::mem::take));
        Ok(())
    }

    /// Moves the states of the key that was added as number `index` into `key`.
    pub(crate) fn take(&mut self, index: usize, key: &mut KeyStates) {
        let (words, logs) = (key.words.len(), key.logs.len());
        if let Some(staged) = self.words.get(index * words..(index + 1) * words) {
            key.words.copy_from_slice(staged);
        }
        for (log, staged) in key.logs.iter_mut().zip(self.logs.iter_mut().skip(index * logs)) {
            *log = core::mem::take(staged);
        }
    }
}
