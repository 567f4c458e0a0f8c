//! The replicas of many keys, by slot.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::{Amounts, PROCESS};
use super::policy_set::{Hash, PolicySet, shape};
use super::replica::{Question, Reading, Replica, Seen};
use super::result::{Results, reading};
use super::text::Cursor;
use super::{FORMAT, Unreadable};
use crate::algorithm::rule::Rule;
use crate::memory::push;
use crate::reservation::default_ttl;
use crate::{Error, Ledger, Policies};

/// How many sets of other policies are kept: those of a fleet in the middle of a deploy.
const OTHERS: usize = 8;

/// The policies of a limiter, and others that were read from logs.
#[derive(Debug)]
pub(super) struct Sets {
    own: Arc<PolicySet>,
    others: Vec<Arc<PolicySet>>,
    /// The rules of calls, by the text of their policies.
    calls: Vec<(String, Vec<Rule>)>,
    hash: Hash,
}

impl Sets {
    /// Returns the limiter's own policies.
    pub(super) fn own(&self) -> &Arc<PolicySet> {
        &self.own
    }

    /// Returns the policies of a text.
    pub(super) fn find(&mut self, text: &str) -> Result<Arc<PolicySet>, Unreadable> {
        let known = [&self.own].into_iter().chain(&self.others).find(|set| set.text == text);
        if let Some(set) = known {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(PolicySet::read(text, self.hash)?);
        keep(&mut self.others, Arc::clone(&set))?;
        Ok(set)
    }

    /// Returns the rules of a call, adjusted to those of a ledger; `None` if they do not fit.
    pub(super) fn call(&mut self, text: &str, ledger: &mut Ledger) -> Result<Option<Vec<Rule>>, Unreadable> {
        let mut rules = match self.calls.iter().find(|(known, _)| known == text) {
            Some((_, rules)) => rules.clone(),
            None => {
                let rules = PolicySet::read(text, self.hash)?.policies.rules();
                keep(&mut self.calls, (text.into(), rules.clone()))?;
                rules
            }
        };
        Ok(ledger.adjust(&mut rules).then_some(rules))
    }
}

/// Adds to a short list, from which the oldest drops out.
fn keep<T>(list: &mut Vec<T>, item: T) -> Result<(), Unreadable> {
    if list.len() >= OTHERS {
        list.remove(0);
    }
    Ok(push(list, item)?)
}

/// What a replay has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The own entry was there; its results are in [`Replicas::results`].
    pub own: bool,
    /// There were entries under other policies.
    pub foreign: bool,
}

impl From<Seen> for Replayed {
    fn from(Seen { own, foreign }: Seen) -> Self {
        Self { own, foreign }
    }
}

/// The replicas of a limiter's keys. Each is in a slot that its owner names by number.
#[derive(Debug)]
pub struct Replicas {
    sets: Sets,
    process: [u8; PROCESS],
    slots: Vec<Option<Box<Replica>>>,
    free: Vec<u32>,
    results: Results,
}

impl Replicas {
    /// Makes a limiter's replicas. `process` names the process in marks: 8 letters or digits.
    pub fn new(policies: Policies, process: [u8; 8], hash: Hash) -> Result<Self, Error> {
        let own = Arc::new(PolicySet::new(policies, hash)?);
        let sets = Sets { own, others: Vec::new(), calls: Vec::new(), hash };
        Ok(Self { sets, process, slots: Vec::new(), free: Vec::new(), results: Results::default() })
    }

    /// Returns the limiter's policies as entries name them.
    pub fn policies_text(&self) -> &str {
        &self.sets.own.text
    }

    /// Returns the fingerprint of the limiter's policies.
    pub fn fingerprint(&self) -> &[u8] {
        &self.sets.own.fingerprint
    }

    /// Returns a name for the shape of the policies, which does not change with their numbers.
    pub fn shape(&self) -> String {
        shape(&self.sets.own.policies, self.sets.hash)
    }

    /// Returns the longest that a state lasts after a hit, in milliseconds, if there is no debt.
    pub fn longest(&self) -> u64 {
        self.sets.own.longest()
    }

    /// Returns how long a reservation lasts that does not say, in milliseconds.
    pub fn default_ttl(&self) -> u64 {
        default_ttl(&self.sets.own.policies)
    }

    /// Whether hits may be leased: not if denied ones count, or where only reservations do.
    pub fn may_lease(&self) -> bool {
        let own = &self.sets.own;
        own.denied_free && !own.policies.rules().iter().any(Rule::is_concurrency)
    }

    /// Returns the policies of a call as entries name them; `None` if they do not fit the limiter's own.
    pub fn call_text(&self, policies: Policies) -> Result<Option<String>, Error> {
        let mut rules = policies.rules();
        let own = Ledger::new(self.sets.own.policies.clone())?.adjust(&mut rules);
        if !own {
            return Ok(None);
        }
        Ok(Some(PolicySet::new(policies, self.sets.hash)?.text.clone()))
    }

    /// Returns the highest count that the policy at a position may be set to.
    pub fn max_count(&self, position: usize) -> Result<u64, Error> {
        Ok(Ledger::new(self.sets.own.policies.clone())?.max_count(position))
    }

    /// Takes a slot for a key of which nothing is known.
    pub fn take(&mut self) -> Result<u32, Unreadable> {
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        push(&mut self.slots, None)?;
        // Room for every slot, so that releasing one never needs memory.
        let room = self.slots.len() - self.free.len();
        self.free.try_reserve(room).map_err(crate::memory::OutOfMemory::from)?;
        Ok((self.slots.len() - 1) as u32)
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        self.forget(slot);
        self.free.push(slot);
    }

    /// Forgets what a slot holds.
    pub fn forget(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            *slot = None;
        }
    }

    /// Reads a whole value into a slot. `number` is that of the own entry; 0 if there is none.
    pub fn load(&mut self, slot: u32, value: &str, number: u64) -> Result<Replayed, Unreadable> {
        self.forget(slot);
        self.results.clear();
        if value.is_empty() {
            return Ok(Seen::default().into());
        }
        let mut cursor = Cursor::new(value);
        if !cursor.take(FORMAT as u8) {
            // A later format has another letter before the base or the first time.
            let is_later = matches!(value.as_bytes(), [b'b'..=b'z', b'b' | b'0'..=b'9', ..]);
            return Err(if is_later { Unreadable::Version } else { Unreadable::Malformed });
        }
        let mut replica = Box::new(Replica::load(&mut cursor, &mut self.sets)?);
        let seen = self.replay_on(&mut replica, cursor, number)?;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(replica);
        }
        Ok(seen)
    }

    /// Replays the entries that follow what a slot holds. On an error the slot holds nothing.
    pub fn replay(&mut self, slot: u32, entries: &str, number: u64) -> Result<Replayed, Unreadable> {
        let mut replica = self.taken(slot)?;
        let seen = self.replay_on(&mut replica, Cursor::new(entries), number)?;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(replica);
        }
        Ok(seen)
    }

    fn replay_on(
        &mut self,
        replica: &mut Replica,
        mut cursor: Cursor<'_>,
        number: u64,
    ) -> Result<Replayed, Unreadable> {
        let Self { sets, process, results, .. } = self;
        results.clear();
        Ok(replica.replay(&mut cursor, sets, (process, number), results)?.into())
    }

    /// Takes out the replica of a slot, or makes one.
    fn taken(&mut self, slot: u32) -> Result<Box<Replica>, Unreadable> {
        match self.slots.get_mut(slot as usize).and_then(Option::take) {
            Some(replica) => Ok(replica),
            None => Ok(Box::new(Replica::new(self.sets.own())?)),
        }
    }

    /// Returns the base of a slot's value, without its mark; empty if nothing is known.
    pub fn base(&self, slot: u32) -> String {
        self.replica(slot).map(Replica::base).unwrap_or_default()
    }

    /// Adds the result of an operation that only reads to the results, by its number in [`reading`]. `costs` are as entries
    /// name them.
    pub fn read(
        &mut self,
        slot: u32,
        question: u32,
        costs: &str,
        position: usize,
        call: Option<&str>,
        now: u64,
    ) -> Result<(), Unreadable> {
        let question = match question {
            reading::PEEK => Question::Peek,
            reading::GET => Question::Get,
            _ => Question::ExpiresAt,
        };
        let reading = Reading { question, costs: Amounts::of(costs), position, call };
        let mut fresh = None;
        let replica = match self.slots.get_mut(slot as usize) {
            Some(Some(replica)) => replica.as_mut(),
            _ => fresh.insert(Replica::new(&self.sets.own)?),
        };
        replica.read(reading, &mut self.sets, now, &mut self.results)
    }

    /// Returns true if a hit is denied at every moment from `earliest` to `latest`; its decision is then the only result.
    /// Where leases are open, it is told only `beside_leases`: they may be given back at any time.
    pub fn deny(&mut self, slot: u32, cost: u64, earliest: u64, latest: u64, beside_leases: bool) -> bool {
        self.results.clear();
        let Some(Some(replica)) = self.slots.get_mut(slot as usize) else { return false };
        replica.deny(cost, (earliest, latest), beside_leases, &self.sets, &mut self.results).unwrap_or(false)
    }

    /// Returns when the last of a slot's states ends; 0 if they have ended at `now`.
    pub fn ends_at(&self, slot: u32, now: u64) -> u64 {
        self.replica(slot).map_or(0, |replica| replica.ends_at(now))
    }

    /// Returns the numbers of the results since the last replay.
    pub fn results(&self) -> &[f64] {
        &self.results.numbers
    }

    /// Returns the decision and the lease that the result at a place is, as text; `None` if it is not of a renewal.
    pub fn lease(&self, place: usize) -> Option<&str> {
        self.results.lease_at(place)
    }

    fn replica(&self, slot: u32) -> Option<&Replica> {
        self.slots.get(slot as usize)?.as_deref()
    }
}
