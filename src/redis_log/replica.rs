//! The states of one key, computed by replaying its log.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ReplayError;
use super::base::{self, Token};
use super::entry::{self, Amounts, Entry, Fields, Named, Op, Tag};
use super::lines::{Charged, Lines};
use super::policy_set::PolicySet;
use super::policy_sets::{CallRules, PolicySets};
use super::result::{Rejected, Results};
use super::text::Cursor;
use super::value_sets::ValueSets;
use crate::growth::{OutOfMemory, push};
use crate::key::exceptions::Exceptions;
use crate::key::perform::KeyOp;
use crate::policy::costs::PositionCosts;
use crate::store::apply::Applied;
use crate::{Answer, Error, Ledger};

/// The highest number of hits in one operation.
const MAX_TIMES: u64 = 10_000;

/// The states of one key, under the policies of its last entry.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) ledger: Ledger,
    pub(super) set: Arc<PolicySet>,
    /// The policies of the last call, if it had its own.
    pub(super) call_set: Option<Arc<PolicySet>>,
    /// The policies that the value names.
    value_sets: ValueSets,
    /// Whether an entry or a base was read. The first one determines the policies.
    started: bool,
    /// The time of the last entry.
    pub(super) stamp: u64,
    /// The tag of the last entry, if the mark of a base would be that.
    mark: Option<Tag>,
    tokens: Vec<Token>,
    pub(super) lines: Lines,
}

/// The kinds of operations that only read.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadingKind {
    Peek,
    Get,
    ExpiresAt,
    Exception,
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
        Ok(Self {
            ledger,
            set: Arc::clone(set),
            call_set: None,
            value_sets: ValueSets::new(set, 0),
            started: false,
            stamp: 0,
            mark: None,
            tokens: Vec::new(),
            lines: Lines::default(),
        })
    }

    /// Reads the beginning of a value, which follows its format version: the start of its line, its policies, and its base
    /// if it has one.
    pub(super) fn load(cursor: &mut Cursor<'_>, sets: &mut PolicySets) -> Result<Self, ReplayError> {
        let start = entry::read_stamp(cursor)?;
        let default = sets.get(cursor.until(b"|!")?)?;
        cursor.expect(b'|')?;
        if !cursor.take(b'#') {
            return Ok(Self { lines: Lines::new(start), ..Self::new(&default)? });
        }
        let stamp = entry::read_stamp(cursor)?;
        let mut value_sets = ValueSets::new(&default, stamp);
        let (set, call_set) = value_sets.read(cursor, sets, stamp)?;
        let lines = Lines::read(cursor, start)?;
        cursor.expect(b'|')?;
        let states = base::read_lists(cursor)?;
        let mut optional = |byte| if cursor.take(byte) { base::read_lists(cursor) } else { Ok(Vec::new()) };
        let (open, former) = (optional(b'=')?, optional(b':')?);
        cursor.expect(b'|')?;
        let mut tokens = base::read_tokens(cursor, stamp)?;
        let mark = Tag::read(cursor)?;
        base::record_token(&mut tokens, Token { tag: mark, at: stamp }, stamp)?;
        let mark = Some(mark);
        let mut replica = Self { call_set, value_sets, started: true, stamp, mark, tokens, lines, ..Self::new(&set)? };
        replica.ledger.load_all(&base::to_record(&set.policies, states, open, &former)?, stamp)?;
        Ok(replica)
    }

    /// Returns the states after the last entry as the base of a value, without the tag of that entry.
    pub(super) fn base(&self) -> String {
        self.base_with(&self.lines, &self.value_sets, self.mark)
    }

    /// Returns the base of a value that begins anew under a mark of its own, if that drops policies which nobody uses any
    /// more; `None` otherwise. Where entries have followed these states, they may refer to those.
    pub(super) fn new_beginning(&self, own: &Arc<PolicySet>) -> Result<Option<String>, OutOfMemory> {
        let value_sets = self.value_sets.renewed(own, self.stamp)?;
        Ok(value_sets.map(|value_sets| self.base_with(&self.lines, &value_sets, None)))
    }

    /// Returns the base of a value that begins a new line.
    pub(super) fn restoring_base(&self) -> Result<String, OutOfMemory> {
        Ok(self.base_with(&self.lines.restored()?, &ValueSets::new(&self.set, self.stamp), None))
    }

    /// `mark` is the tag that will follow.
    fn base_with(&self, lines: &Lines, value_sets: &ValueSets, mark: Option<Tag>) -> String {
        let mut text = String::with_capacity(96);
        text.push_str(&value_sets.default().text);
        text.push_str("|#");
        entry::push_stamp(&mut text, self.stamp);
        value_sets.push_to(&mut text, &self.set, self.call_set.as_deref());
        lines.push_to(&mut text);
        text.push('|');
        base::push_rows(&mut text, &self.ledger);
        text.push('|');
        base::push_tokens(&mut text, &self.tokens, self.stamp, mark);
        text
    }

    /// Returns whether these states know of entries that those of a value do not, and have not ended by `now`.
    pub(super) fn knows_more_than(&self, value: &Self, now: u64) -> bool {
        self.started && self.lines.know_more_than(&value.lines, self.stamp) && self.ends_at(now) > 0
    }

    /// Adds what only the states of a value know: what was charged on it, though no more than each limit.
    pub(super) fn join(&mut self, value: &Self, now: u64) -> Result<(), ReplayError> {
        let mut theirs = value.lines.clone();
        if self.set.text != value.set.text {
            self.lines.level();
            theirs.level();
        }
        let charged = self.lines.join(&theirs)?;
        self.stamp = self.stamp.max(value.stamp).max(now);
        self.mark = None;
        // It is not known which of the policies that the value names were charged.
        let mut sets: Vec<Arc<PolicySet>> = Vec::new();
        for set in [&self.set, &value.set].into_iter().chain(value.value_sets.all()) {
            if sets.iter().all(|known| known.text != set.text) {
                push(&mut sets, Arc::clone(set))?;
            }
        }
        for set in &sets {
            self.charge_joined(&charged, set, &sets)?;
        }
        self.ledger.take_later_exception(&value.ledger)?;
        for token in &value.tokens {
            base::record_token(&mut self.tokens, *token, self.stamp)?;
        }
        self.value_sets = value.value_sets.clone();
        Ok(())
    }

    /// Charges the states under one of several sets of policies. A state that others have as well is charged once, under the
    /// highest limit.
    fn charge_joined(
        &mut self,
        charged: &Charged,
        set: &Arc<PolicySet>,
        sets: &[Arc<PolicySet>],
    ) -> Result<(), ReplayError> {
        if set.text != self.set.text {
            self.ledger.under(&set.policies, self.stamp)?;
            self.set = Arc::clone(set);
        }
        for position in 0..set.policies.len() {
            let Some((limit, shape)) = set.limit_and_shape(position) else { continue };
            let highest = sets.iter().filter_map(|other| Some((other.limit_of(shape)?, other))).max_by_key(|one| one.0);
            let is_highest = highest.is_none_or(|(_, other)| Arc::ptr_eq(other, set));
            let cost = charged.at(position).min(limit) as i64;
            if is_highest && cost > 0 {
                // A limit of concurrency counts only what is open.
                unless_rejected(self.ledger.perform(&KeyOp::Inc { position, cost }, None, self.stamp))?.ok();
            }
        }
        Ok(())
    }

    /// Replays the entries of a text. Adds the results of the caller's own entry to `results`; `own` is its tag.
    pub(super) fn replay(
        &mut self,
        cursor: &mut Cursor<'_>,
        sets: &mut PolicySets,
        own: Option<Tag>,
        results: &mut Results,
    ) -> Result<Replayed, ReplayError> {
        let mut replayed = Replayed::default();
        while !cursor.is_empty() {
            let entry = Entry::read(cursor)?;
            let is_own = own == Some(entry.tag);
            let results = if is_own { Some(&mut *results) } else { None };
            self.replay_entry(entry, sets, results)?;
            replayed.foreign |= !Arc::ptr_eq(&self.set, sets.own());
            replayed.own |= is_own;
        }
        Ok(replayed)
    }

    /// Replays one entry, and adds its results if they are wanted.
    pub(super) fn replay_entry(
        &mut self,
        entry: Entry<'_>,
        sets: &mut PolicySets,
        results: Option<&mut Results>,
    ) -> Result<(), ReplayError> {
        self.switch_policies(&entry, sets)?;
        self.apply(entry, sets, results)?;
        self.stamp = entry.at;
        self.mark = Some(entry.tag);
        self.lines.count();
        Ok(base::record_token(&mut self.tokens, Token { tag: entry.tag, at: entry.at }, entry.at)?)
    }

    /// Switches to the policies of an entry.
    fn switch_policies(&mut self, entry: &Entry<'_>, sets: &mut PolicySets) -> Result<(), ReplayError> {
        let set = self.value_sets.of_entry(entry.policies, sets, entry.at)?;
        if !Arc::ptr_eq(&set, &self.set) && set.text != self.set.text {
            // Rows that have ended by the entry's time are dropped here alone, so that all processes drop the same.
            match self.started {
                true => self.ledger.under(&set.policies, entry.at)?,
                false => self.ledger = Ledger::new(set.policies.clone())?,
            }
            self.lines.level();
        }
        self.set = set;
        self.started = true;
        Ok(())
    }

    fn apply(
        &mut self,
        entry: Entry<'_>,
        sets: &mut PolicySets,
        results: Option<&mut Results>,
    ) -> Result<(), ReplayError> {
        let now = entry.at;
        // By the entry's time, so that all processes drop it at the same entry.
        self.ledger.drop_ended_exception(now);
        let mut results = results;
        entry.for_each_op(|op| {
            let (times, rules) = (op.times(), self.call_rules(op.call_policies(), sets, now)?);
            if times > MAX_TIMES {
                return Err(ReplayError::Malformed);
            }
            let costs = &op.amounts().at_positions(self.set.policies.len())?;
            let op = match op {
                Op::Hit { .. } => KeyOp::Hit { costs },
                // The writer adds the random bits of the id.
                Op::HitUndoable { .. } => KeyOp::HitUndoable { costs, random: 0 },
                Op::Undo { id, .. } => KeyOp::Undo { id, costs },
                Op::Inc { cost, position } => KeyOp::Inc { position: self.known(position)?, cost },
                Op::Set { count, position } => KeyOp::Set { position: self.known(position)?, count },
                Op::Ban { length, position } => KeyOp::Ban { position: self.known(position)?, length },
                Op::Reset { reservations } => KeyOp::Reset { reservations },
                Op::Reserve { ttl, random, .. } => KeyOp::Reserve { costs, ttl: Some(ttl), random },
                Op::Settle { id, .. } => KeyOp::Settle { id, used: costs },
                Op::Extend { id, ttl } => KeyOp::Extend { id, ttl },
                Op::Lease { cost, ref renewal } => KeyOp::Lease { cost, renewal },
                Op::Except { end, fields } => {
                    let result = self.except(fields, end.at(now), now)?;
                    return add_result(&mut results, result, |results, end| results.push_number(end));
                }
            };
            (0..times).try_for_each(|_| self.perform(&op, &rules, now, &mut results))
        })
    }

    /// Returns the position of a policy that an operation names.
    fn known(&self, position: usize) -> Result<usize, ReplayError> {
        if position < self.set.policies.len() { Ok(position) } else { Err(ReplayError::Malformed) }
    }

    /// Performs an operation, and adds its result.
    fn perform(
        &mut self,
        op: &KeyOp<'_>,
        rules: &CallRules,
        now: u64,
        results: &mut Option<&mut Results>,
    ) -> Result<(), ReplayError> {
        let was_used = matches!(op, KeyOp::Reset { .. }) && self.ledger.expires_at(now)? > 0;
        let result = match rules {
            CallRules::Default => unless_rejected(self.ledger.perform(op, None, now))?,
            CallRules::Own(algorithms) => unless_rejected(self.ledger.perform(op, Some(algorithms), now))?,
            CallRules::Mismatch => Err(Rejected::Unfit),
        };
        if let Ok(Applied { answer, .. }) = &result {
            self.charge(op, answer, now)?;
        }
        let has_open = self.ledger.has_open();
        add_result(results, result, |results, Applied { answer, changed, .. }| match (op, answer) {
            // Rows of other policies and an exception stay.
            (KeyOp::Reset { .. }, _) => results.push_number((was_used && (changed || has_open)).into()),
            (KeyOp::Extend { id, ttl }, Answer::Settled(settlement)) => {
                results.push_settlement(settlement, id.end().max(now + ttl))
            }
            (_, answer) => results.push_answer(answer),
        })
    }

    /// Counts what an operation charged. What it gave back stays counted.
    fn charge(&mut self, op: &KeyOp<'_>, answer: &Answer, now: u64) -> Result<(), ReplayError> {
        let policies = self.set.policies.len();
        match (*op, answer) {
            (
                KeyOp::Hit { costs } | KeyOp::HitUndoable { costs, .. } | KeyOp::Reserve { costs, .. },
                Answer::Decision(decision) | Answer::Undoable { decision, .. } | Answer::Reserved { decision, .. },
                // Denied hits may be charged as well.
            ) if decision.allowed || !self.set.denied_free => self.lines.charged().add(costs, policies)?,
            (KeyOp::Inc { position, cost }, _) => self.lines.charged().add_at(position, cost.max(0) as u64)?,
            (KeyOp::Set { position, count }, _) => self.lines.charged().add_at(position, count)?,
            (KeyOp::Lease { cost, .. }, Answer::Leased { decision, lease }) => {
                let cost = if decision.allowed { cost } else { 0 };
                let costs = PositionCosts::All(cost + lease.map_or(0, |lease| lease.amount));
                self.lines.charged().add(&costs, policies)?;
            }
            (KeyOp::Reset { .. }, _) => self.lines.wipe(now),
            _ => {}
        }
        Ok(())
    }

    /// Returns the rules of a call with or without policies of its own.
    fn call_rules(
        &mut self,
        named: Option<Named<'_>>,
        sets: &mut PolicySets,
        now: u64,
    ) -> Result<CallRules, ReplayError> {
        let Some(named) = named else {
            self.call_set = None;
            return Ok(CallRules::Default);
        };
        let set = self.value_sets.named(named, sets, now)?;
        let rules = CallRules::new(&set, &self.ledger);
        self.call_set = Some(set);
        Ok(rules)
    }

    /// Sets the exception of the key, or lifts it. Returns when it ends or would have ended, or why it was rejected.
    pub(super) fn except(
        &mut self,
        fields: Fields<'_>,
        until: u64,
        now: u64,
    ) -> Result<Result<u64, Rejected>, ReplayError> {
        let numbers = fields.numbers(self.set.policies.len(), self.ledger.decision_name()?, (until, now))?;
        if numbers.is_empty() {
            return unless_rejected(self.ledger.lift_exception(now));
        }
        let exceptions = Exceptions::from_flat(&numbers)?.ok_or(ReplayError::Malformed)?;
        unless_rejected(self.ledger.replace_exceptions(exceptions))
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
        // On a copy: only an entry may drop rows that have ended, in all processes alike.
        let mut copy = None;
        let ledger = match Arc::ptr_eq(&self.set, &own) {
            true => &mut self.ledger,
            false => copy.insert(self.ledger.clone()),
        };
        ledger.under(&own.policies, now)?;
        let Reading { kind, costs, position, call_policies } = reading;
        match kind {
            ReadingKind::Peek => {
                let costs = costs.at_positions(own.policies.len())?;
                let call_policies = call_policies.map(|text| sets.get(text)).transpose()?;
                let algorithms = match call_policies.map_or(CallRules::Default, |set| CallRules::new(&set, ledger)) {
                    CallRules::Default => None,
                    CallRules::Own(algorithms) => Some(algorithms),
                    CallRules::Mismatch => return Ok(results.push_rejected(Rejected::Unfit)?),
                };
                results.push_decision(&ledger.peek(&costs, algorithms.as_deref(), now)?)?;
            }
            ReadingKind::Exception => results.push_text(ledger.exception_text(now))?,
            ReadingKind::Get => results.push_number(ledger.count(position, now)?)?,
            ReadingKind::ExpiresAt => results.push_number(ledger.row_expires_at(position, now)?)?,
        }
        Ok(())
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
        if !is_own || !self.set.denied_free || is_open && !(beside_leases && self.ledger.has_only_leases()) {
            return Ok(false);
        }
        // Between the two times, another decision would hold.
        if self.ledger.exception_changes_between(earliest, latest) {
            return Ok(false);
        }
        let peek = |cost, now| match self.ledger.has_more_than_states() {
            true => self.ledger.peek(&PositionCosts::All(cost), None, now),
            false => Ok(self.ledger.peek_without_open(cost, now)),
        };
        // The decision is that of the earliest time, so that `retry_after` is never too short.
        let (decision, later) = (peek(cost, earliest)?, peek(cost, latest)?);
        if decision.allowed || later.allowed {
            return Ok(false);
        }
        // A denial that counts toward a ban must be an entry.
        // The one that begins a ban says so as well; only a ban that holds denies a cost of 0.
        let holds = |now| Ok::<_, ReplayError>(peek(0, now)?.ends_lease());
        if self.ledger.has_bans() && !(holds(earliest)? && holds(latest)?) {
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

/// Adds the result of an operation, or why it was rejected. Results are `None` for the entries of others.
fn add_result<T>(
    results: &mut Option<&mut Results>,
    result: Result<T, Rejected>,
    push: impl FnOnce(&mut Results, T) -> Result<(), OutOfMemory>,
) -> Result<(), ReplayError> {
    let Some(results) = results else { return Ok(()) };
    match result {
        Ok(result) => Ok(push(results, result)?),
        Err(rejected) => Ok(results.push_rejected(rejected)?),
    }
}

/// Returns why an operation was rejected, which changes no state and happens in every process alike. Only a lack of memory
/// is an error, since other processes may have enough.
fn unless_rejected<T>(result: Result<T, Error>) -> Result<Result<T, Rejected>, ReplayError> {
    match result {
        Ok(result) => Ok(Ok(result)),
        Err(error) if error == OutOfMemory.into() => Err(ReplayError::OutOfMemory),
        Err(Error::ManyRows { .. }) => Ok(Err(Rejected::ManyRows)),
        Err(_) => Ok(Err(Rejected::Unfit)),
    }
}
