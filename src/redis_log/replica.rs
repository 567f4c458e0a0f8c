//! The states of one key, computed by replaying its log.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use super::ReplayError;
use super::base::{self, Token};
use super::entry::{self, Amounts, Entry, Mark, Op};
use super::policy_set::PolicySet;
use super::policy_sets::{CallRules, PolicySets};
use super::result::Results;
use super::text::Cursor;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, push};
use crate::policy::costs::PositionCosts;
use crate::{Error, Ledger, Operation, Reason};

/// The highest number of hits in one operation.
const MAX_TIMES: u64 = 10_000;

/// The number of tokens from which on expired ones are dropped.
const MANY_TOKENS: usize = 64;

/// The states of one key, under the policies of its last entry.
#[derive(Debug)]
pub(super) struct Replica {
    ledger: Ledger,
    set: Arc<PolicySet>,
    /// Whether an entry or a base was read. The first one determines the policies.
    started: bool,
    /// The time of the last entry.
    stamp: u64,
    tokens: Vec<Token>,
}

/// The kinds of operations that only read.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadingKind {
    Peek,
    Get,
    ExpiresAt,
}

/// An operation that only reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) kind: ReadingKind,
    pub(super) costs: Amounts<'a>,
    pub(super) position: usize,
    pub(super) call_policies: Option<&'a str>,
}

/// The entries that a replay found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The caller's own entry was among them. Its results are in [`Replicas::results`](super::Replicas::results).
    pub own: bool,
    /// Entries under other policies were among them.
    pub foreign: bool,
}

impl Replica {
    /// Returns the replica of a key without entries.
    pub(super) fn new(set: &Arc<PolicySet>) -> Result<Self, ReplayError> {
        let ledger = Ledger::new(set.policies.clone())?;
        Ok(Self { ledger, set: Arc::clone(set), started: false, stamp: 0, tokens: Vec::new() })
    }

    /// Reads the base of a value, which follows its format version; without one the replica has no states.
    pub(super) fn load(cursor: &mut Cursor<'_>, sets: &mut PolicySets) -> Result<Self, ReplayError> {
        if !cursor.take(b'b') {
            return Self::new(sets.own());
        }
        let stamp = entry::read_time(cursor)?;
        let set = sets.get(cursor.until(b"|!")?)?;
        cursor.expect(b'|')?;
        let states = base::read_lists(cursor)?;
        let mut optional = |byte| if cursor.take(byte) { base::read_lists(cursor) } else { Ok(Vec::new()) };
        let (open, former) = (optional(b'=')?, optional(b':')?);
        cursor.expect(b'|')?;
        let tokens = base::read_tokens(cursor, stamp)?;
        if Mark::read(cursor)?.fingerprint != set.fingerprint {
            return Err(ReplayError::UnsupportedVersion);
        }
        let mut replica = Self { started: true, stamp, tokens, ..Self::new(&set)? };
        replica.ledger.load_all(&base::to_record(&set.policies, states, open, &former)?, stamp)?;
        Ok(replica)
    }

    /// Returns the states after the last entry as the base of a value, without the mark of that entry.
    pub(super) fn base(&self) -> String {
        let mut text = String::new();
        let _ = write!(text, "b{:013}{}|", self.stamp, self.set.text);
        base::push_record(&mut text, self.set.policies.len(), self.ledger.record_all());
        text.push('|');
        base::push_tokens(&mut text, &self.tokens, self.stamp);
        text
    }

    /// Replays the entries of a text. Adds the results of the caller's own entry to `results`; `own` is its process and
    /// number.
    pub(super) fn replay(
        &mut self,
        cursor: &mut Cursor<'_>,
        sets: &mut PolicySets,
        own: (&[u8], u64),
        results: &mut Results,
    ) -> Result<Replayed, ReplayError> {
        let mut replayed = Replayed::default();
        while !cursor.is_empty() {
            let entry = Entry::read(cursor)?;
            let is_own = entry.mark.process == *own.0 && entry.mark.number == own.1;
            self.switch_policies(&entry, sets)?;
            replayed.foreign |= !Arc::ptr_eq(&self.set, sets.own());
            replayed.own |= is_own;
            let results = if is_own { Some(&mut *results) } else { None };
            self.apply(entry, sets, results)?;
            self.record_token(&entry)?;
        }
        Ok(replayed)
    }

    /// Switches to the policies of an entry.
    fn switch_policies(&mut self, entry: &Entry<'_>, sets: &mut PolicySets) -> Result<(), ReplayError> {
        if let Some(text) = entry.policies
            && text != self.set.text
        {
            let set = sets.get(text)?;
            self.ledger = if self.started { self.under(&set, entry.at)? } else { Ledger::new(set.policies.clone())? };
            // Only here, by the entry's time, so that all processes drop the same.
            self.ledger.drop_former(entry.at);
            self.set = set;
        } else if entry.policies.is_none() && !self.started {
            return Err(ReplayError::Malformed);
        }
        self.started = true;
        if entry.mark.fingerprint == self.set.fingerprint { Ok(()) } else { Err(ReplayError::UnsupportedVersion) }
    }

    /// Returns the states under other policies. All of them are carried over, also those that have ended: all processes must
    /// get the same result.
    fn under(&self, set: &PolicySet, now: u64) -> Result<Ledger, ReplayError> {
        let mut ledger = Ledger::new(set.policies.clone())?;
        ledger.load_all(&self.ledger.record_all(), now)?;
        Ok(ledger)
    }

    fn apply(
        &mut self,
        entry: Entry<'_>,
        sets: &mut PolicySets,
        results: Option<&mut Results>,
    ) -> Result<(), ReplayError> {
        let now = entry.at;
        let mut results = results;
        entry.for_each_op(|op| match op {
            Op::Hit { times, .. } if times > MAX_TIMES => Err(ReplayError::Malformed),
            Op::Hit { costs, times, call_policies } => {
                let costs = costs.at_positions(self.set.policies.len())?;
                let algorithms = sets.call_algorithms(call_policies, &self.ledger)?;
                for _ in 0..times {
                    let result =
                        self.apply_under(&algorithms, |ledger, algorithms| ledger.hit_at(&costs, algorithms, now))?;
                    add_result(&mut results, result, |results, decision| results.push_decision(&decision))?;
                }
                Ok(())
            }
            Op::Inc { cost, position } => {
                let operation = Operation::Inc { policy: None, cost };
                self.apply_at(operation, position, now, &mut results)
            }
            Op::Set { count, position } => {
                self.apply_at(Operation::Set { policy: None, count }, position, now, &mut results)
            }
            Op::Reset { reservations } => {
                let was_used = self.ledger.expires_at(now)? > 0;
                let operation = if reservations { Operation::ResetAll } else { Operation::Reset };
                let result = none_if_rejected(self.ledger.apply(operation, now))?;
                add_result(&mut results, result, |results, _| results.push_number(was_used.into()))
            }
            Op::Reserve { costs, ttl, random, call_policies } => {
                let costs = costs.at_positions(self.set.policies.len())?;
                let algorithms = sets.call_algorithms(call_policies, &self.ledger)?;
                let result = self.apply_under(&algorithms, |ledger, algorithms| {
                    ledger.reserve_at(&costs, algorithms, random, ttl, now)
                })?;
                add_result(&mut results, result, |results, (decision, end)| results.push_reservation(&decision, end))
            }
            Op::Settle { id, used } => {
                let used = used.at_positions(self.set.policies.len())?;
                let result = none_if_rejected(self.ledger.settle_at(id, &used, now))?;
                add_result(&mut results, result, |results, settlement| results.push_settlement(settlement, 0))
            }
            Op::Extend { id, ttl } => {
                let result = none_if_rejected(self.ledger.extend_at(id, ttl, now))?;
                add_result(&mut results, result, |results, settlement| {
                    results.push_settlement(settlement, id.end().max(now + ttl))
                })
            }
            Op::Ban { length: Some(length), position } => {
                self.apply_at(Operation::Ban { policy: None, length }, position, now, &mut results)
            }
            Op::Ban { length: None, position } => {
                self.apply_at(Operation::Unban { policy: None }, position, now, &mut results)
            }
            Op::Lease { cost, renewal } => self.apply_at(Operation::Lease { cost, renewal }, 0, now, &mut results),
        })
    }

    /// Applies an operation under the algorithms of a call. Returns `None` if it was rejected.
    fn apply_under<T>(
        &mut self,
        algorithms: &CallRules,
        apply: impl FnOnce(&mut Ledger, Option<&[AnyAlgorithm]>) -> Result<T, Error>,
    ) -> Result<Option<T>, ReplayError> {
        match algorithms {
            CallRules::Default => none_if_rejected(apply(&mut self.ledger, None)),
            CallRules::Own(algorithms) => none_if_rejected(apply(&mut self.ledger, Some(algorithms))),
            CallRules::Mismatch => Ok(None),
        }
    }

    /// Applies an operation to the policy at a position.
    fn apply_at(
        &mut self,
        operation: Operation<'_>,
        position: usize,
        now: u64,
        results: &mut Option<&mut Results>,
    ) -> Result<(), ReplayError> {
        if position >= self.set.policies.len() {
            return Err(ReplayError::Malformed);
        }
        let result = none_if_rejected(self.ledger.apply_at(operation, position, now))?;
        add_result(results, result, |results, (answer, _)| results.push_answer(answer))
    }

    /// Records the token of an entry.
    fn record_token(&mut self, entry: &Entry<'_>) -> Result<(), ReplayError> {
        let Mark { process, number, .. } = entry.mark;
        self.stamp = entry.at;
        if let Some(token) = self.tokens.iter_mut().find(|token| token.process == process) {
            token.number = token.number.max(number);
            token.at = entry.at;
            return Ok(());
        }
        if self.tokens.len() >= MANY_TOKENS {
            let stamp = self.stamp;
            self.tokens.retain(|token| token.is_recent(stamp));
        }
        self.tokens.try_reserve_exact(1).map_err(OutOfMemory::from)?;
        Ok(push(&mut self.tokens, Token { process, number, at: entry.at })?)
    }

    /// Adds the result of an operation that only reads, under the limiter's own policies.
    pub(super) fn read(
        &mut self,
        reading: Reading<'_>,
        sets: &mut PolicySets,
        now: u64,
        results: &mut Results,
    ) -> Result<(), ReplayError> {
        let own = Arc::clone(sets.own());
        let mut other = if Arc::ptr_eq(&self.set, &own) { None } else { Some(self.under(&own, now)?) };
        let ledger = other.as_mut().unwrap_or(&mut self.ledger);
        let Reading { kind, costs, position, call_policies } = reading;
        let operation = match kind {
            ReadingKind::Peek => {
                let costs = costs.at_positions(own.policies.len())?;
                let algorithms = match sets.call_algorithms(call_policies, ledger)? {
                    CallRules::Default => None,
                    CallRules::Own(algorithms) => Some(algorithms),
                    CallRules::Mismatch => return Ok(results.push_rejected()?),
                };
                return Ok(results.push_decision(&ledger.peek_at(&costs, algorithms.as_deref(), now)?)?);
            }
            ReadingKind::Get => Operation::Get { policy: None },
            ReadingKind::ExpiresAt => Operation::ExpiresAt { policy: None },
        };
        Ok(results.push_answer(ledger.apply_at(operation, position, now)?.0)?)
    }

    /// Adds the decision of a hit that is denied at every time from `earliest` to `latest`, as far as the states show.
    /// Returns false if it may be allowed. An open reservation can be given back at any time, so it makes a denial uncertain,
    /// unless `beside_leases` is set and only leases are open.
    pub(super) fn deny(
        &self,
        cost: u64,
        (earliest, latest): (u64, u64),
        beside_leases: bool,
        sets: &PolicySets,
        results: &mut Results,
    ) -> Result<bool, ReplayError> {
        let is_own = self.started && Arc::ptr_eq(&self.set, sets.own());
        let is_open = self.ledger.has_open();
        if !is_own || !self.set.denied_free || is_open && !(beside_leases && self.ledger.all_open(entry::is_lease)) {
            return Ok(false);
        }
        let peek = |now| match is_open {
            true => self.ledger.peek_at(&PositionCosts::All(cost), None, now),
            false => Ok(self.ledger.peek_without_open(cost, now)),
        };
        // The decision is that of the earliest time, so that `retry_after` is never too short.
        let (decision, later) = (peek(earliest)?, peek(latest)?);
        if decision.allowed || later.allowed {
            return Ok(false);
        }
        // A denial that counts toward a ban must be an entry.
        let is_banned = [decision, later].iter().all(|decision| decision.reason == Some(Reason::Banned));
        if self.ledger.has_bans() && !is_banned {
            return Ok(false);
        }
        results.push_decision(&decision)?;
        Ok(true)
    }

    /// Returns the time at which the last state ends; 0 if all have ended by `now`.
    pub(super) fn ends_at(&self, now: u64) -> u64 {
        self.ledger.expires_at(now).unwrap_or(0)
    }
}

/// Adds the result of an operation, or that it was rejected. Results are `None` for the entries of others.
fn add_result<T>(
    results: &mut Option<&mut Results>,
    result: Option<T>,
    push: impl FnOnce(&mut Results, T) -> Result<(), OutOfMemory>,
) -> Result<(), ReplayError> {
    let Some(results) = results else { return Ok(()) };
    match result {
        Some(result) => Ok(push(results, result)?),
        None => Ok(results.push_rejected()?),
    }
}

/// Returns `None` for an operation that was rejected, which changes no state and happens in every process alike. Only a lack
/// of memory is an error, since other processes may have enough.
fn none_if_rejected<T>(result: Result<T, Error>) -> Result<Option<T>, ReplayError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error == OutOfMemory.into() => Err(ReplayError::OutOfMemory),
        Err(_) => Ok(None),
    }
}
