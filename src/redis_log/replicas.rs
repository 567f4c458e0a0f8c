//! The replicas of a limiter's keys, by slot.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::entry::{Amounts, PROCESS_LENGTH};
use super::policy_set::{Hash, PolicySet};
use super::policy_sets::PolicySets;
use super::replica::{Reading, ReadingKind, Replayed, Replica};
use super::result::{Results, reading};
use super::text::Cursor;
use super::{FORMAT, ReplayError};
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::push;
use crate::key::policy_states::default_ttl;
use crate::{Error, Ledger, Policies};

/// The replicas of a limiter's keys. The caller knows which slot is that of a key.
#[derive(Debug)]
pub struct Replicas {
    sets: PolicySets,
    process: [u8; PROCESS_LENGTH],
    slots: Vec<Option<Box<Replica>>>,
    free_slots: Vec<u32>,
    results: Results,
}

impl Replicas {
    /// Returns the replicas of a limiter. `process` is the id of the process in marks: 8 letters or digits.
    pub fn new(policies: Policies, process: [u8; 8], hash: Hash) -> Result<Self, Error> {
        let sets = PolicySets::new(policies, hash)?;
        Ok(Self { sets, process, slots: Vec::new(), free_slots: Vec::new(), results: Results::default() })
    }

    /// Returns the text of the limiter's policies in entries.
    pub fn policies_text(&self) -> &str {
        &self.sets.own().text
    }

    /// Returns the fingerprint of the limiter's policies.
    pub fn fingerprint(&self) -> &[u8] {
        &self.sets.own().fingerprint
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
        Ok(Some(PolicySet::new(policies, self.sets.hash())?.text))
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
        self.free_slots.try_reserve(room).map_err(crate::growth::OutOfMemory::from)?;
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

    /// Replaces the replica of a slot by that of a value. `number` is that of the caller's own entry; 0 if there is none.
    pub fn load(&mut self, slot: u32, value: &str, number: u64) -> Result<Replayed, ReplayError> {
        self.forget(slot);
        self.results.clear();
        if value.is_empty() {
            return Ok(Replayed::default());
        }
        let mut cursor = Cursor::new(value);
        if !cursor.take(FORMAT as u8) {
            // A later format has another letter before the base or the first entry's time.
            let is_later = matches!(value.as_bytes(), [b'b'..=b'z', b'b' | b'0'..=b'9', ..]);
            return Err(if is_later { ReplayError::UnsupportedVersion } else { ReplayError::Malformed });
        }
        let mut replica = Box::new(Replica::load(&mut cursor, &mut self.sets)?);
        let replayed = self.replay_entries(&mut replica, cursor, number)?;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(replica);
        }
        Ok(replayed)
    }

    /// Replays further entries on the replica of a slot. An error drops the replica.
    pub fn replay(&mut self, slot: u32, entries: &str, number: u64) -> Result<Replayed, ReplayError> {
        let mut replica = self.take_replica(slot)?;
        let replayed = self.replay_entries(&mut replica, Cursor::new(entries), number)?;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(replica);
        }
        Ok(replayed)
    }

    fn replay_entries(
        &mut self,
        replica: &mut Replica,
        mut cursor: Cursor<'_>,
        number: u64,
    ) -> Result<Replayed, ReplayError> {
        let Self { sets, process, results, .. } = self;
        results.clear();
        replica.replay(&mut cursor, sets, (process, number), results)
    }

    /// Takes the replica out of a slot; a new one if the slot has none.
    fn take_replica(&mut self, slot: u32) -> Result<Box<Replica>, ReplayError> {
        match self.slots.get_mut(slot as usize).and_then(Option::take) {
            Some(replica) => Ok(replica),
            None => Ok(Box::new(Replica::new(self.sets.own())?)),
        }
    }

    /// Returns the states of a slot as the base of a value, without a mark; empty if the slot has no replica.
    pub fn base(&self, slot: u32) -> String {
        self.replica(slot).map(Replica::base).unwrap_or_default()
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

    /// Returns the decision and the lease of a result as text; `None` if it is not the result of a renewal.
    pub fn lease(&self, index: usize) -> Option<&str> {
        self.results.lease(index)
    }

    fn replica(&self, slot: u32) -> Option<&Replica> {
        self.slots.get(slot as usize)?.as_deref()
    }
}
