//! One key under one rule, for the algorithms' own tests.

use super::entry::{Entry, EntryState};
use super::log::Log;
use super::rule::{Rule, dispatch};
use super::{Act, Algorithm};
use crate::Decision;

pub(super) struct Key {
    pub(super) rule: Rule,
    pub(super) words: Vec<u64>,
    pub(super) logs: Vec<Log>,
}

impl Key {
    /// A key never used.
    pub(super) fn new(rule: Rule, now: u64) -> Self {
        let words = vec![0; dispatch!(&rule, algorithm => algorithm.width())];
        let mut key = Self { rule, words, logs: Log::many(1) };
        let mut entry = Entry::Write(&mut key.words, &mut key.logs);
        dispatch!(&rule, algorithm => algorithm.clear(EntryState::write(&mut entry).unwrap(), now));
        key
    }

    pub(super) fn act(&mut self, act: Act, now: u64) -> Decision {
        self.rule.act(&mut Entry::Write(&mut self.words, &mut self.logs), act, now, &mut false)
    }

    /// What an operation would come to.
    pub(super) fn peek(&self, act: Act, now: u64) -> Decision {
        self.rule.act(&mut Entry::Read(&self.words, &self.logs), act, now, &mut false)
    }

    pub(super) fn ends_at(&self, now: u64) -> u64 {
        self.rule.ends_at(&Entry::Read(&self.words, &self.logs), now)
    }

    pub(super) fn export(&self) -> Vec<i64> {
        let (entry, mut numbers) = (Entry::Read(&self.words, &self.logs), Vec::new());
        dispatch!(&self.rule, algorithm => algorithm.export(EntryState::read(&entry), &mut numbers));
        numbers
    }

    /// Whether the numbers could be read.
    pub(super) fn import(&mut self, scale: u64, numbers: &[i64]) -> bool {
        let mut entry = Entry::Write(&mut self.words, &mut self.logs);
        dispatch!(&self.rule, algorithm => algorithm.import(EntryState::write(&mut entry).unwrap(), scale, numbers))
    }
}
