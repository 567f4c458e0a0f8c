//! One key's states outside a slot.

use crate::Decision;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::log::Log;
use crate::growth::{OutOfMemory, copied, defaults, push};
use crate::key::open_reservations::Open;
use crate::key::operate::{Extra, KeyMut, listed};
use crate::key::policy_states::{Entry, EntryMut, PolicyStates};
use crate::policy::costs::PositionCosts;
use alloc::vec::Vec;

/// The states of one key under all policies.
#[derive(Clone, Debug)]
pub(crate) struct KeyStates {
    pub(crate) words: Vec<u64>,
    pub(crate) logs: Vec<Log>,
    /// The open reservations, the rows that a call does not name, and the exception.
    pub(crate) extra: Extra,
}

impl KeyStates {
    /// Allocates the states of a key. They must be cleared before use.
    pub(crate) fn new(policy_states: &PolicyStates) -> Result<Self, OutOfMemory> {
        let size = policy_states.size();
        Ok(Self { words: defaults(size.word)?, logs: defaults(size.log)?, extra: Extra::default() })
    }

    /// Returns a copy of an entry and its open reservations in which the expired ones are charged; `None` if none has
    /// expired.
    fn expired(
        policy_states: &PolicyStates,
        entry: Entry<'_>,
        extra: &Extra,
        now: u64,
    ) -> Result<Option<Self>, OutOfMemory> {
        if !extra.open.is_due(now) {
            return Ok(None);
        }
        let mut copy = Self::copied(entry, &extra.open)?;
        copy.key_mut(policy_states, policy_states.algorithms()).expire(now)?;
        Ok(Some(copy))
    }

    /// Returns a copy of an entry and its open reservations.
    pub(crate) fn copied(entry: Entry<'_>, open: &Open) -> Result<Self, OutOfMemory> {
        let mut logs = Vec::new();
        for log in entry.logs {
            push(&mut logs, log.try_clone()?)?;
        }
        let extra = Extra { open: open.try_clone()?, ..Extra::default() };
        Ok(Self { words: copied(entry.words)?, logs, extra })
    }

    /// Calls `read` with an entry and its open reservations, of which the expired ones are charged.
    pub(crate) fn read<T>(
        policy_states: &PolicyStates,
        entry: Entry<'_>,
        extra: &Extra,
        now: u64,
        read: impl FnOnce(Entry<'_>, &Open) -> T,
    ) -> Result<T, OutOfMemory> {
        Ok(match Self::expired(policy_states, entry, extra, now)? {
            None => read(entry, &extra.open),
            Some(expired) => read(expired.entry(), &expired.extra.open),
        })
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { words: &self.words, logs: &self.logs }
    }

    pub(crate) fn entry_mut(&mut self) -> EntryMut<'_> {
        EntryMut { words: &mut self.words, logs: &mut self.logs }
    }

    /// Returns mutable access to the states under these algorithms.
    pub(crate) fn key_mut<'a>(
        &'a mut self,
        policy_states: &'a PolicyStates,
        algorithms: &'a [AnyAlgorithm],
    ) -> KeyMut<'a> {
        let entry = EntryMut { words: &mut self.words, logs: &mut self.logs };
        KeyMut { policy_states, algorithms, entry, extra: &mut self.extra }
    }

    /// Makes the states those of a key never used.
    pub(crate) fn clear(&mut self, policy_states: &PolicyStates, now: u64) {
        policy_states.clear(self.entry_mut(), now);
        self.extra = Extra::default();
    }

    /// Returns the decision of a hit under the algorithms of a call. Changes no state.
    pub(crate) fn peek_under(
        &self,
        policy_states: &PolicyStates,
        algorithms: &[AnyAlgorithm],
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, OutOfMemory> {
        Self::read(policy_states, self.entry(), &self.extra, now, |entry, open| {
            policy_states.peek_excepted(algorithms, &self.extra.exceptions, (entry, open), costs, now)
        })?
    }

    /// Returns the decision of a hit of cost 0 under one policy.
    pub(crate) fn look(
        &self,
        policy_states: &PolicyStates,
        position: usize,
        now: u64,
    ) -> Result<Decision, OutOfMemory> {
        let algorithm = policy_states.own_at(position, &self.extra.exceptions, now);
        Self::read(policy_states, self.entry(), &self.extra, now, |entry, open| {
            policy_states.look(position, &algorithm, entry, open, now)
        })
    }

    /// Returns when one policy's state ends; 0 if it has ended.
    pub(crate) fn expires_at(
        &self,
        policy_states: &PolicyStates,
        position: usize,
        now: u64,
    ) -> Result<u64, OutOfMemory> {
        Self::read(policy_states, self.entry(), &self.extra, now, |entry, open| {
            policy_states.expires_beside(position, entry, open, now)
        })
    }

    /// Returns when the last of the states ends; `now` or earlier if it has.
    pub(crate) fn end_at(&self, policy_states: &PolicyStates, now: u64) -> u64 {
        match Self::expired(policy_states, self.entry(), &self.extra, now) {
            Ok(Some(expired)) => {
                expired.extra.end_at(policy_states, expired.entry(), now).max(self.extra.other_ends_at())
            }
            // Without memory for a copy, reservations that are due end a little later.
            _ => self.extra.end_at(policy_states, self.entry(), now),
        }
    }

    /// Moves the states into the entry of a slot. The extra stays.
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
    extras: Vec<Vec<Extra>>,
    /// Whether a key has an extra that is not empty.
    pub(crate) with_extras: bool,
}

impl Batch {
    /// Appends the states of a key, which are moved.
    pub(crate) fn push(&mut self, key: &mut KeyStates) -> Result<(), OutOfMemory> {
        self.words.try_reserve(key.words.len())?;
        self.logs.try_reserve(key.logs.len())?;
        self.extras.try_reserve(1)?;
        let extra = listed(&mut key.extra)?;
        self.with_extras |= !extra.is_empty();
        self.extras.push(extra);
        self.words.extend_from_slice(&key.words);
        self.logs.extend(key.logs.iter_mut().map(core::mem::take));
        Ok(())
    }

    /// Moves the states of the key at `index` into `key`, and returns its extra in a list, which may be empty.
    pub(crate) fn take(&mut self, index: usize, key: &mut KeyStates) -> Vec<Extra> {
        let (words, logs) = (key.words.len(), key.logs.len());
        if let Some(staged) = self.words.get(index * words..(index + 1) * words) {
            key.words.copy_from_slice(staged);
        }
        for (log, staged) in key.logs.iter_mut().zip(self.logs.iter_mut().skip(index * logs)) {
            *log = core::mem::take(staged);
        }
        self.extras.get_mut(index).map(core::mem::take).unwrap_or_default()
    }
}
