//! One key's states outside a slab.

use crate::Decision;
use crate::algorithm::log::Log;
use crate::algorithm::rule::Rule;
use crate::algorithm::{Act, Outcome};
use crate::earlier::{self, Earlier, last_until};
use crate::memory::{OutOfMemory, defaults};
use crate::policy_states::{Entry, EntryMut, PolicyStates};
use alloc::vec::Vec;

/// The states of one key under all policies.
#[derive(Clone, Debug)]
pub(crate) struct KeyStates {
    pub(crate) words: Vec<u64>,
    pub(crate) logs: Vec<Log>,
    /// The states of policies whose scale changed.
    pub(crate) earlier: Vec<Earlier>,
}

impl KeyStates {
    /// Makes room for the states of a key. They must be cleared before use.
    pub(crate) fn new(policy_states: &PolicyStates) -> Result<Self, OutOfMemory> {
        let size = policy_states.size();
        Ok(Self { words: defaults(size.word)?, logs: defaults(size.log)?, earlier: Vec::new() })
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
        self.earlier.clear();
    }

    /// Returns when the last of the states ends; `now` or earlier if it has.
    pub(crate) fn end_at(&self, policy_states: &PolicyStates, now: u64) -> u64 {
        policy_states.all_end_at(self.entry(), now).max(last_until(&self.earlier))
    }

    /// Asks all policies, and charges all of them if all allow it.
    pub(crate) fn hit(
        &mut self,
        policy_states: &PolicyStates,
        rules: &[Rule],
        cost: u64,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        let entry = EntryMut { words: &mut self.words, logs: &mut self.logs };
        earlier::hit(policy_states, rules, entry, &mut self.earlier, cost, now, outcome)
    }

    /// Changes one policy's state without asking, and returns the count.
    pub(crate) fn change(
        &mut self,
        policy_states: &PolicyStates,
        position: usize,
        act: Act,
        now: u64,
    ) -> Result<u64, OutOfMemory> {
        let entry = EntryMut { words: &mut self.words, logs: &mut self.logs };
        earlier::change(policy_states, position, entry, &mut self.earlier, act, now)
    }

    /// Moves the states into the entry of a slot, except the earlier ones.
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
    earlier: Vec<Vec<Earlier>>,
    /// Whether a key has earlier states.
    pub(crate) with_earlier: bool,
}

impl Batch {
    /// Adds the states of a key, which are moved.
    pub(crate) fn push(&mut self, key: &mut KeyStates) -> Result<(), OutOfMemory> {
        self.words.try_reserve(key.words.len())?;
        self.logs.try_reserve(key.logs.len())?;
        self.earlier.try_reserve(1)?;
        self.with_earlier |= !key.earlier.is_empty();
        self.earlier.push(core::mem::take(&mut key.earlier));
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
        key.earlier = self.earlier.get_mut(index).map(core::mem::take).unwrap_or_default();
    }
}
