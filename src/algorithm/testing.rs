//! One key under one algorithm, for the algorithms' own tests.

use super::any::{AnyAlgorithm, dispatch};
use super::entry::{Entry, EntryMut, EntryState};
use super::log::Log;
use super::{Act, Algorithm, Outcome};
use crate::Decision;

pub(super) struct Key {
    pub(super) algorithm: AnyAlgorithm,
    pub(super) words: Vec<u64>,
    pub(super) logs: Vec<Log>,
}

impl Key {
    /// Returns a key never used.
    pub(super) fn new(algorithm: AnyAlgorithm, now: u64) -> Self {
        let words = vec![0; dispatch!(&algorithm, algorithm => algorithm.width())];
        let mut key = Self { algorithm, words, logs: vec![Log::EMPTY] };
        dispatch!(&algorithm, algorithm => algorithm.clear(EntryState::of_mut(key.entry_mut()).unwrap(), now));
        key
    }

    fn entry(&self) -> Entry<'_> {
        Entry { words: &self.words, logs: &self.logs }
    }

    fn entry_mut(&mut self) -> EntryMut<'_> {
        EntryMut { words: &mut self.words, logs: &mut self.logs }
    }

    pub(super) fn act(&mut self, act: Act, now: u64) -> Decision {
        let algorithm = self.algorithm;
        let mut outcome = Outcome::default();
        let decision = algorithm.act(self.entry_mut(), act, now, &mut outcome);
        outcome.changed().unwrap();
        decision
    }

    /// Returns what an operation would return.
    pub(super) fn peek(&self, act: Act, now: u64) -> Decision {
        self.algorithm.peek(self.entry(), act, now)
    }

    pub(super) fn ends_at(&self, now: u64) -> u64 {
        self.algorithm.ends_at(self.entry(), now)
    }

    pub(super) fn export(&self) -> Vec<i64> {
        let mut numbers = Vec::new();
        let push = &mut |number| crate::growth::push(&mut numbers, number);
        dispatch!(&self.algorithm, algorithm => algorithm.export(EntryState::of(self.entry()), push)).unwrap();
        numbers
    }

    /// Returns whether the numbers are valid.
    pub(super) fn import(&mut self, numbers: &[i64]) -> bool {
        let algorithm = self.algorithm;
        let state = self.entry_mut();
        dispatch!(&algorithm, algorithm => algorithm.import(EntryState::of_mut(state).unwrap(), numbers)).unwrap()
    }
}
