//! The replicas of a limiter's keys, by slot.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::entry::{Amounts, Fields, Tag};
use super::policy_set::PolicySet;
use super::policy_sets::PolicySets;
use super::replica::{Reading, ReadingKind, Replayed, Replica};
use super::result::{NUMBERS_PER_OUTCOME, Results, reading, status};
use super::text::Cursor;
use super::{FORMAT, ReplayError};
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, push};
use crate::key::exceptions::Exceptions;
use crate::key::policy_states::default_ttl;
use crate::{Error, Ledger, Policies};

/// A slot that no key has.
pub const NO_SLOT: u32 = u32::MAX;

/// The replicas of a limiter's keys. The caller knows which slot is that of a key.
#[derive(Debug)]
pub struct Replicas {
    sets: PolicySets,
    slots: Vec<Option<Box<Replica>>>,
    free_slots: Vec<u32>,
    results: Results,
    outcomes: Vec<f64>,
}

impl Replicas {
    /// Returns the replicas of a limiter.
    pub fn new(policies: Policies) -> Result<Self, Error> {
        let sets = PolicySets::new(policies)?;
        Ok(Self { sets, slots: Vec::new(), free_slots: Vec::new(), results: Results::default(), outcomes: Vec::new() })
    }

    /// Returns the text of the limiter's policies in entries.
    pub fn policies_text(&self) -> &str {
        &self.sets.own().text
    }

    /// Returns how long a state lasts at most after a hit, in milliseconds, if there is no debt.
    pub fn max_lifetime(&self) -> u64 {
        self.sets.own().max_lifetime()
    }

    /// Returns how long a reservation without a `ttl` lasts, in milliseconds.
    pub fn default_ttl(&self) -> u64 {
        default_ttl(self.sets.own().policies.iter().map(|policy| &policy.algorithm))
    }

    /// Returns whether hits may be leased: not if denied hits count, or if a policy limits concurrency.
    pub fn may_lease(&self) -> bool {
        let own = self.sets.own();
        let algorithms = own.policies.algorithms();
        let are_hits =
            !algorithms.iter().any(AnyAlgorithm::is_concurrency) && !algorithms.iter().all(AnyAlgorithm::is_ban);
        own.denied_free && are_hits
    }

    /// Returns the text of a call's own policies in entries; `None` if they do not match the limiter's.
    pub fn call_text(&self, policies: Policies) -> Result<Option<String>, Error> {
        let mut algorithms = policies.algorithms();
        let matches = Ledger::new(self.sets.own().policies.clone())?.adjust(&mut algorithms);
        if !matches {
            return Ok(None);
        }
        Ok(Some(PolicySet::new(policies)?.text))
    }

    /// Checks that the policies can take the fields of an exception, a text as in entries.
    ///
    /// # Errors
    ///
    /// If one of them cannot.
    pub fn check_exception(&self, fields: &str) -> Result<(), Error> {
        let set = self.sets.own();
        let mut ledger = Ledger::new(set.policies.clone())?;
        let numbers = Fields::new(fields).numbers(set.policies.len(), ledger.decision_name()?, (1, 0));
        let exceptions = numbers.ok().and_then(|numbers| Exceptions::from_flat(&numbers).ok().flatten());
        ledger.replace_exceptions(exceptions.unwrap_or_default()).map(drop)
    }

    /// Returns the highest count that the policy at a position may be set to.
    pub fn max_count(&self, position: usize) -> Result<u64, Error> {
        Ok(Ledger::new(self.sets.own().policies.clone())?.max_count(position))
    }

    /// Takes a slot, for a key without a replica.
    pub fn take(&mut self) -> Result<u32, ReplayError> {
        if let Some(slot) = self.free_slots.pop() {
            return Ok(slot);
        }
        push(&mut self.slots, None)?;
        // Reserves room for every slot, so that `release` never allocates.
        let room = self.slots.len() - self.free_slots.len();
        self.free_slots.try_reserve(room).map_err(OutOfMemory::from)?;
        Ok((self.slots.len() - 1) as u32)
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        self.forget(slot);
        self.free_slots.push(slot);
    }

    /// Drops the replica of a slot.
    pub fn forget(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            *slot = None;
        }
    }

    /// Drops the results of the calls before.
    pub fn clear(&mut self) {
        self.results.clear();
    }

    /// Replaces the replica of a slot by that of a value, and adds the results of the entry with the tag `own`.
    pub fn load(&mut self, slot: u32, value: &str, own: &[u8]) -> Result<Replayed, ReplayError> {
        self.forget(slot);
        if value.is_empty() {
            return Ok(Replayed::default());
        }
        let (replica, replayed) = self.loaded(value, own)?;
        self.put(slot, replica);
        Ok(replayed)
    }

    /// Loads a value that does not contain the last entry which the slot knows, and is of another line. If the slot's states
    /// know of entries that the value does not, they stay, with what was charged on the value; returns whether they do.
    pub fn meet(&mut self, slot: u32, value: &str, now: u64) -> Result<bool, ReplayError> {
        let (theirs, _) = self.loaded(value, &[])?;
        if let Some(Some(own)) = self.slots.get_mut(slot as usize)
            && own.knows_more_than(&theirs, now)
        {
            own.join(&theirs, now)?;
            return Ok(true);
        }
        self.put(slot, theirs);
        Ok(false)
    }

    /// Replays further entries on the replica of a slot. An error drops the replica.
    pub fn replay(&mut self, slot: u32, entries: &str, own: &[u8]) -> Result<Replayed, ReplayError> {
        let mut replica = match self.slots.get_mut(slot as usize).and_then(Option::take) {
            Some(replica) => replica,
            None => Box::new(Replica::new(self.sets.own())?),
        };
        let Self { sets, results, .. } = self;
        let replayed = replica.replay(&mut Cursor::new(entries), sets, Tag::new(own), results)?;
        self.put(slot, replica);
        Ok(replayed)
    }

    /// Replays the replies to one call: the tag of the caller's entries, then for each key a line with its slot and the reply,
    /// which begins with its kind. Returns the numbers of the outcomes. Lines of the slot [`NO_SLOT`], or of other kinds, are
    /// skipped.
    pub fn replay_all(&mut self, replies: &str, now: u64) -> Result<&[f64], ReplayError> {
        self.results.clear();
        self.outcomes.clear();
        let mut lines = replies.split('\n');
        let own = lines.next().unwrap_or_default().as_bytes();
        for line in lines {
            let first = self.results.count();
            let (slot, line) = slot_of(line);
            let line = line.strip_prefix(['*', '!']).unwrap_or(line);
            let mut chars = line.chars();
            let replayed = match chars.next() {
                _ if slot == NO_SLOT => Ok(Replayed::default()),
                Some('+' | '#') => self.replay(slot, chars.as_str(), own),
                Some('=' | '^' | 'l') => self.load(slot, chars.as_str(), own),
                Some('?') => Err(ReplayError::Malformed),
                _ => Ok(Replayed::default()),
            };
            let status = status::of(replayed);
            let ends_at = if status > 0 { self.ends_at(slot, now) } else { 0 };
            self.outcomes.try_reserve(NUMBERS_PER_OUTCOME).map_err(OutOfMemory::from)?;
            self.outcomes.extend([f64::from(status), first as f64, ends_at as f64]);
        }
        Ok(&self.outcomes)
    }

    /// Reads a value.
    fn loaded(&mut self, value: &str, own: &[u8]) -> Result<(Box<Replica>, Replayed), ReplayError> {
        let mut cursor = Cursor::new(value);
        if !cursor.take(FORMAT as u8) {
            // Another format has another letter before the first time, which begins so until the year 2036.
            let is_other = matches!(value.as_bytes(), [b'a'..=b'z', b'I'..=b'M', ..]);
            return Err(if is_other { ReplayError::UnsupportedVersion } else { ReplayError::Malformed });
        }
        let Self { sets, results, .. } = self;
        let mut replica = Box::new(Replica::load(&mut cursor, sets)?);
        let replayed = replica.replay(&mut cursor, sets, Tag::new(own), results)?;
        Ok((replica, replayed))
    }

    fn put(&mut self, slot: u32, replica: Box<Replica>) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(replica);
        }
    }

    /// Returns the states of a slot as the base of a value, without a tag; empty if the slot has no replica.
    pub fn base(&self, slot: u32) -> String {
        self.replica(slot).map(Replica::base).unwrap_or_default()
    }

    /// Returns the same of a value that begins anew, to drop policies which nobody uses any more; empty if there are too few.
    pub fn new_beginning(&self, slot: u32) -> Result<String, ReplayError> {
        let Some(replica) = self.replica(slot) else { return Ok(String::new()) };
        Ok(replica.new_beginning(self.sets.own())?.unwrap_or_default())
    }

    /// Returns the same of a value that is restored.
    pub fn restoring_base(&self, slot: u32) -> Result<String, ReplayError> {
        Ok(self.replica(slot).map(Replica::restoring_base).transpose()?.unwrap_or_default())
    }

    /// Adds the result of an operation that only reads. `kind` is its number in [`reading`]; `costs` and `call_policies` are
    /// texts as in entries.
    pub fn read(
        &mut self,
        slot: u32,
        kind: u32,
        costs: &str,
        position: usize,
        call_policies: Option<&str>,
        now: u64,
    ) -> Result<(), ReplayError> {
        let kind = match kind {
            reading::PEEK => ReadingKind::Peek,
            reading::GET => ReadingKind::Get,
            reading::EXCEPTION => ReadingKind::Exception,
            _ => ReadingKind::ExpiresAt,
        };
        let reading = Reading { kind, costs: Amounts::new(costs), position, call_policies };
        let mut unused = None;
        let replica = match self.slots.get_mut(slot as usize) {
            Some(Some(replica)) => replica.as_mut(),
            _ => unused.insert(Replica::new(self.sets.own())?),
        };
        replica.read(reading, &mut self.sets, now, &mut self.results)
    }

    /// Returns true if a hit is denied at every time from `earliest` to `latest`; its decision is then the only result. Open
    /// reservations can be given back at any time, so it returns false while any is open, unless `beside_leases` is set and
    /// only leases are open.
    pub fn deny(&mut self, slot: u32, cost: u64, earliest: u64, latest: u64, beside_leases: bool) -> bool {
        self.results.clear();
        let Some(Some(replica)) = self.slots.get_mut(slot as usize) else { return false };
        replica.deny(cost, (earliest, latest), beside_leases, &self.sets, &mut self.results).unwrap_or(false)
    }

    /// Returns the time at which the last state of a slot ends; 0 if all have ended by `now`.
    pub fn ends_at(&self, slot: u32, now: u64) -> u64 {
        self.replica(slot).map_or(0, |replica| replica.ends_at(now))
    }

    /// Returns the numbers of the results since the last replay.
    pub fn results(&self) -> &[f64] {
        &self.results.numbers
    }

    /// Returns a result as text: the decision and the lease of a renewal, or an exception; `None` for any other.
    pub fn text(&self, index: usize) -> Option<&str> {
        self.results.text(index)
    }

    fn replica(&self, slot: u32) -> Option<&Replica> {
        self.slots.get(slot as usize)?.as_deref()
    }
}

/// Splits a line into the slot, with which it begins, and the reply.
fn slot_of(line: &str) -> (u32, &str) {
    let end = line.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
    let (slot, reply) = line.split_at(end);
    (slot.parse().unwrap_or(NO_SLOT), reply)
}
