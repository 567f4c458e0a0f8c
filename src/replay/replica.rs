//! One key's states, kept by replaying its log.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use super::Unreadable;
use super::base::{self, Token};
use super::entry::{self, Amounts, Entry, Mark, Op};
use super::policy_set::PolicySet;
use super::replicas::Sets;
use super::result::Results;
use super::text::Cursor;
use crate::algorithm::rule::Rule;
use crate::costs::PositionCosts;
use crate::memory::{OutOfMemory, push};
use crate::{Error, Ledger, Operation, Record};

/// The most hits that one run of an entry stands for.
const MOST_TIMES: u64 = 10_000;

/// How many tokens are kept before old ones are dropped.
const TOKENS: usize = 64;

/// One key's states under the policies of its last entry.
#[derive(Debug)]
pub(super) struct Replica {
    ledger: Ledger,
    set: Arc<PolicySet>,
    /// Whether an entry or a base was read. Before that, any policies may start.
    started: bool,
    /// The time of the last entry.
    stamp: u64,
    tokens: Vec<Token>,
}

/// What is asked of the states.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Peek,
    Get,
    ExpiresAt,
}

/// An operation that only reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) question: Question,
    pub(super) costs: Amounts<'a>,
    pub(super) position: usize,
    pub(super) call: Option<&'a str>,
}

/// What a replay has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The own entry.
    pub(super) own: bool,
    /// An entry under other policies.
    pub(super) foreign: bool,
}

impl Replica {
    /// A key never used.
    pub(super) fn new(set: &Arc<PolicySet>) -> Result<Self, Unreadable> {
        let ledger = Ledger::new(set.policies.clone())?;
        Ok(Self { ledger, set: Arc::clone(set), started: false, stamp: 0, tokens: Vec::new() })
    }

    /// Returns a replica of a whole value after its version.
    pub(super) fn load(cursor: &mut Cursor<'_>, sets: &mut Sets) -> Result<Self, Unreadable> {
        if !cursor.take(b'b') {
            return Self::new(sets.own());
        }
        let stamp = entry::time(cursor)?;
        let set = sets.find(cursor.until(b"|!")?)?;
        cursor.expect(b'|')?;
        let states = base::lists(cursor)?;
        let mut more = |byte| if cursor.take(byte) { base::lists(cursor) } else { Ok(Vec::new()) };
        let (earlier, reservations) = (more(b':')?, more(b'=')?);
        cursor.expect(b'|')?;
        let tokens = base::tokens(cursor, stamp)?;
        if Mark::read(cursor)?.fingerprint != set.fingerprint {
            return Err(Unreadable::Version);
        }
        let mut replica = Self { started: true, stamp, tokens, ..Self::new(&set)? };
        replica.ledger.load(&Record::new(&set.policies, states, earlier, reservations), stamp)?;
        Ok(replica)
    }

    /// Returns the states after the last entry as the base of a value, without its mark.
    pub(super) fn base(&self) -> String {
        let mut text = String::new();
        let _ = write!(text, "b{:013}{}|", self.stamp, self.set.text);
        base::push_lists(&mut text, &self.ledger.states());
        for (mark, lists) in [(':', self.ledger.earlier(self.stamp)), ('=', self.ledger.reservations())] {
            if !lists.is_empty() {
                text.push(mark);
                base::push_lists(&mut text, &lists);
            }
        }
        text.push('|');
        base::push_tokens(&mut text, &self.tokens, self.stamp);
        text
    }

    /// Replays the entries of a text. The results of the entry of `own` are added to `results`.
    pub(super) fn replay(
        &mut self,
        cursor: &mut Cursor<'_>,
        sets: &mut Sets,
        own: (&[u8], u64),
        results: &mut Results,
    ) -> Result<Seen, Unreadable> {
        let mut seen = Seen::default();
        while !cursor.is_empty() {
            let entry = Entry::read(cursor)?;
            let is_own = entry.mark.process == *own.0 && entry.mark.number == own.1;
            self.start(&entry, sets)?;
            seen.foreign |= !Arc::ptr_eq(&self.set, sets.own());
            seen.own |= is_own;
            let results = if is_own { Some(&mut *results) } else { None };
            self.apply(entry, sets, results)?;
            self.remember(&entry)?;
        }
        Ok(seen)
    }

    /// Goes over to the policies of an entry.
    fn start(&mut self, entry: &Entry<'_>, sets: &mut Sets) -> Result<(), Unreadable> {
        if let Some(text) = entry.policies
            && text != self.set.text
        {
            let set = sets.find(text)?;
            self.ledger = if self.started { self.under(&set, entry.at)? } else { Ledger::new(set.policies.clone())? };
            self.set = set;
        } else if entry.policies.is_none() && !self.started {
            return Err(Unreadable::Malformed);
        }
        self.started = true;
        if entry.mark.fingerprint == self.set.fingerprint { Ok(()) } else { Err(Unreadable::Version) }
    }

    /// Returns the states as they are under other policies from `now` on.
    fn under(&self, set: &PolicySet, now: u64) -> Result<Ledger, Unreadable> {
        let mut ledger = Ledger::new(set.policies.clone())?;
        // It is made also of states that have ended: whether they have depends on who asks, and every process must come to
        // the same.
        let (states, earlier) = (self.ledger.states(), self.ledger.earlier(now));
        let record = Record::new(&self.set.policies, states, earlier, self.ledger.reservations());
        ledger.load(&record, now)?;
        Ok(ledger)
    }

    fn apply(&mut self, entry: Entry<'_>, sets: &mut Sets, results: Option<&mut Results>) -> Result<(), Unreadable> {
        let now = entry.at;
        let mut results = results;
        entry.each(|op| match op {
            Op::Hit { times, .. } if times > MOST_TIMES => Err(Unreadable::Malformed),
            Op::Hit { costs, times, call } => {
                let costs = costs.at_positions(self.set.policies.len())?;
                let rules = call.map(|text| sets.call(text, &mut self.ledger)).transpose()?;
                for _ in 0..times {
                    let result = self.under_call(&rules, |ledger, rules| ledger.hit_at(&costs, rules, now))?;
                    add(&mut results, result, |results, decision| results.decision(&decision))?;
                }
                Ok(())
            }
            Op::Inc { cost, position } => {
                let operation = Operation::Inc { policy: None, cost };
                self.operate(operation, position, now, &mut results)
            }
            Op::Set { count, position } => {
                self.operate(Operation::Set { policy: None, count }, position, now, &mut results)
            }
            Op::Reset { reservations } => {
                let was_used = self.ledger.expires_at(now) > 0;
                let operation = if reservations { Operation::ResetAll } else { Operation::Reset };
                let result = rejected(self.ledger.apply(operation, now))?;
                add(&mut results, result, |results, _| results.number(was_used.into()))
            }
            Op::Reserve { costs, ttl, random, call } => {
                let costs = costs.at_positions(self.set.policies.len())?;
                let rules = call.map(|text| sets.call(text, &mut self.ledger)).transpose()?;
                let result =
                    self.under_call(&rules, |ledger, rules| ledger.reserve_at(&costs, rules, random, ttl, now))?;
                add(&mut results, result, |results, (decision, end)| results.reservation(&decision, end))
            }
            Op::Settle { id, used } => {
                let used = used.at_positions(self.set.policies.len())?;
                let result = rejected(self.ledger.settle_at(id, &used, now))?;
                add(&mut results, result, |results, settlement| results.settlement(settlement, 0))
            }
            Op::Extend { id, ttl } => {
                let result = rejected(self.ledger.extend_at(id, ttl, now))?;
                add(&mut results, result, |results, settlement| results.settlement(settlement, now + ttl))
            }
            Op::Lease { cost, renewal } => self.operate(Operation::Lease { cost, renewal }, 0, now, &mut results),
        })
    }

    /// Does an operation under the rules of a call, if it has any. `None` inside are rules that do not fit.
    fn under_call<T>(
        &mut self,
        rules: &Option<Option<Vec<Rule>>>,
        work: impl FnOnce(&mut Ledger, Option<&[Rule]>) -> Result<T, Error>,
    ) -> Result<Option<T>, Unreadable> {
        match rules {
            None => rejected(work(&mut self.ledger, None)),
            Some(Some(rules)) => rejected(work(&mut self.ledger, Some(rules))),
            Some(None) => Ok(None),
        }
    }

    /// Does an operation on the policy at a position.
    fn operate(
        &mut self,
        operation: Operation<'_>,
        position: usize,
        now: u64,
        results: &mut Option<&mut Results>,
    ) -> Result<(), Unreadable> {
        if position >= self.set.policies.len() {
            return Err(Unreadable::Malformed);
        }
        let result = rejected(self.ledger.apply_at(operation, position, now))?;
        add(results, result, |results, (answer, _)| results.answer(answer))
    }

    /// Remembers an entry by its token.
    fn remember(&mut self, entry: &Entry<'_>) -> Result<(), Unreadable> {
        let Mark { process, number, .. } = entry.mark;
        self.stamp = entry.at;
        if let Some(token) = self.tokens.iter_mut().find(|token| token.process == process) {
            token.number = token.number.max(number);
            token.at = entry.at;
            return Ok(());
        }
        if self.tokens.len() >= TOKENS {
            let stamp = self.stamp;
            self.tokens.retain(|token| token.is_recent(stamp));
        }
        self.tokens.try_reserve_exact(1).map_err(OutOfMemory::from)?;
        Ok(push(&mut self.tokens, Token { process, number, at: entry.at })?)
    }

    /// Reads the states at a moment under a limiter's own policies.
    pub(super) fn read(
        &mut self,
        reading: Reading<'_>,
        sets: &mut Sets,
        now: u64,
        results: &mut Results,
    ) -> Result<(), Unreadable> {
        let own = Arc::clone(sets.own());
        let mut converted = if Arc::ptr_eq(&self.set, &own) { None } else { Some(self.under(&own, now)?) };
        let ledger = converted.as_mut().unwrap_or(&mut self.ledger);
        let Reading { question, costs, position, call } = reading;
        let operation = match question {
            Question::Peek => {
                let costs = costs.at_positions(own.policies.len())?;
                let rules = match call {
                    Some(call) => match sets.call(call, ledger)? {
                        Some(rules) => Some(rules),
                        None => return Ok(results.rejected()?),
                    },
                    None => None,
                };
                return Ok(results.decision(&ledger.peek_at(&costs, rules.as_deref(), now)?)?);
            }
            Question::Get => Operation::Get { policy: None },
            Question::ExpiresAt => Operation::ExpiresAt { policy: None },
        };
        Ok(results.answer(ledger.apply_at(operation, position, now)?.0)?)
    }

    /// Adds the decision of a hit that is denied at every moment from `earliest` to `latest`, as far as the states show.
    /// Returns false if it may be allowed. Where something is open, that may be given back at any time: such a denial is told
    /// only `beside_leases`, if all of it is leases.
    pub(super) fn deny(
        &self,
        cost: u64,
        (earliest, latest): (u64, u64),
        beside_leases: bool,
        sets: &Sets,
        results: &mut Results,
    ) -> Result<bool, Unreadable> {
        let is_own = self.started && Arc::ptr_eq(&self.set, sets.own());
        let is_open = self.ledger.has_open();
        if !is_own || !self.set.denied_free || is_open && !(beside_leases && self.ledger.has_only(entry::is_lease)) {
            return Ok(false);
        }
        let peek = |now| match is_open {
            true => self.ledger.peek_at(&PositionCosts::All(cost), None, now),
            false => Ok(self.ledger.peek_closed(cost, now)),
        };
        // The wait is that of the earliest moment, so that it is never too short.
        let (decision, later) = (peek(earliest)?, peek(latest)?);
        if decision.allowed || later.allowed {
            return Ok(false);
        }
        results.decision(&decision)?;
        Ok(true)
    }

    /// Returns when the last of the states ends; 0 if they have ended at `now`.
    pub(super) fn ends_at(&self, now: u64) -> u64 {
        self.ledger.expires_at(now)
    }
}

/// Adds the result of an operation, or that it was rejected, where results are wanted.
fn add<T>(
    results: &mut Option<&mut Results>,
    result: Option<T>,
    work: impl FnOnce(&mut Results, T) -> Result<(), OutOfMemory>,
) -> Result<(), Unreadable> {
    let Some(results) = results else { return Ok(()) };
    match result {
        Some(result) => Ok(work(results, result)?),
        None => Ok(results.rejected()?),
    }
}

/// Returns `None` for an operation that was rejected: that changes nothing, and is so in every process. One that ran out of
/// memory is not.
fn rejected<T>(result: Result<T, Error>) -> Result<Option<T>, Unreadable> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error == OutOfMemory.into() => Err(Unreadable::OutOfMemory),
        Err(_) => Ok(None),
    }
}
