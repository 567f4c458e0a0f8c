//! Operations on a ledger: names are resolved to positions, and one function performs whatever may change the rows.

use crate::algorithm::Outcome;
use crate::algorithm::any::AnyAlgorithm;
use crate::key::perform::{Counts, KeyOp};
use crate::key::reservation::check_ttl;
use crate::key::rows::has_room;
use crate::number::check_time;
use crate::policy::costs::PositionCosts;
use crate::policy::exception::check_until;
use crate::policy::schema::MAX_ROWS;
use crate::store::ledger::check_ban;
use crate::{Answer, Decision, Error, Exception, Ledger, Operation};

/// The result of an operation, and which rows it changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    pub(crate) answer: Answer,
    pub(crate) changed: bool,
    /// Whether rows were changed that the policies do not name, or the exception.
    #[cfg_attr(not(feature = "cloudflare"), expect(dead_code, reason = "only the object writes rows apart"))]
    pub(crate) others_changed: bool,
}

impl Applied {
    fn read(answer: Answer) -> Self {
        Self { answer, changed: false, others_changed: false }
    }
}

impl Ledger {
    /// Applies an operation. Returns its result, and whether it changed the states.
    ///
    /// ```
    /// # use tollgate::{Ledger, Operation, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut ledger = Ledger::new(Policy::fix_window(10, "1s")?)?;
    /// let (_, changed) = ledger.apply(Operation::Peek { cost: 1 }, 0)?;
    /// assert!(!changed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply(&mut self, operation: Operation<'_>, now: u64) -> Result<(Answer, bool), Error> {
        let applied = self.applied(operation, now)?;
        Ok((applied.answer, applied.changed))
    }

    /// The same, with which rows it changed.
    pub(crate) fn applied(&mut self, operation: Operation<'_>, now: u64) -> Result<Applied, Error> {
        check_time(now)?;
        let position = operation.position(&self.policies)?;
        self.check_countable(operation.counts(position))?;
        let costs = &operation.position_costs(&self.policies)?;
        let op = match operation {
            Operation::Peek { .. } | Operation::PeekCosts { .. } => {
                return Ok(Applied::read(Answer::Decision(self.peek(costs, None, now)?)));
            }
            Operation::Get { .. } => {
                return Ok(Applied::read(Answer::Number(self.count(position, now)?)));
            }
            Operation::ExpiresAt { .. } => {
                return Ok(Applied::read(Answer::Number(self.row_expires_at(position, now)?)));
            }
            Operation::Except { exception, until } => return self.set_exception(exception, until, now),
            Operation::Hit { .. } | Operation::HitCosts { .. } => KeyOp::Hit { costs },
            Operation::HitUndoable { random, .. } => KeyOp::HitUndoable { costs, random },
            Operation::Undo { id, .. } => KeyOp::Undo { id, costs },
            Operation::Inc { cost, .. } => KeyOp::Inc { position, cost },
            Operation::Set { count, .. } => KeyOp::Set { position, count },
            Operation::Ban { length, .. } => KeyOp::Ban { position, length: Some(check_ban(length.into())?) },
            Operation::Unban { .. } => KeyOp::Ban { position, length: None },
            Operation::Reset => KeyOp::Reset { reservations: false },
            Operation::ResetAll => KeyOp::Reset { reservations: true },
            Operation::Reserve { ttl, random, .. } => {
                let ttl = ttl.map(|ttl| check_ttl(ttl.into())).transpose()?;
                KeyOp::Reserve { costs, ttl, random }
            }
            Operation::Settle { id, .. } => KeyOp::Settle { id, used: costs },
            Operation::Extend { id, ttl } => KeyOp::Extend { id, ttl: check_ttl(ttl.into())? },
            Operation::Lease { cost, ref renewal } => KeyOp::Lease { cost, renewal },
        };
        self.perform(&op, None, now)
    }

    /// Performs an operation, under the algorithms of the policies or of one call.
    pub(crate) fn perform(
        &mut self,
        op: &KeyOp<'_>,
        algorithms: Option<&[AnyAlgorithm]>,
        now: u64,
    ) -> Result<Applied, Error> {
        check_time(now)?;
        self.check_countable(op.counts())?;
        // Charging 0 only reads, as in a limiter.
        if let KeyOp::Inc { position, cost: 0 } = *op {
            return Ok(Applied::read(Answer::Number(self.count(position, now)?)));
        }
        if op.can_make_rows() {
            self.check_rows(now)?;
        }
        let is_on_others = self.reach(op)?;
        // A reset does not tell whether it changed the rows.
        let before = matches!(op, KeyOp::Reset { .. }).then(|| self.rows());
        let Self { policy_states, states, .. } = self;
        let mut outcome = Outcome::default();
        let mut key = states.key_mut(policy_states, algorithms.unwrap_or(policy_states.algorithms()));
        let answer = key.perform(op, now, &mut outcome)?;
        let changed = match before {
            Some(before) => self.rows() != before,
            None => outcome.changed()?,
        };
        Ok(Applied { answer, changed, others_changed: changed && is_on_others })
    }

    /// Returns the decision of a hit, under the algorithms of the policies or of one call. Changes no state.
    pub(crate) fn peek(
        &self,
        costs: &PositionCosts,
        algorithms: Option<&[AnyAlgorithm]>,
        now: u64,
    ) -> Result<Decision, Error> {
        let Self { policy_states, states, .. } = self;
        let algorithms = algorithms.unwrap_or(policy_states.algorithms());
        Ok(states.peek_under(policy_states, algorithms, costs, now)?)
    }

    /// Returns the count of the policy at a position.
    pub(crate) fn count(&self, position: usize, now: u64) -> Result<u64, Error> {
        Ok(self.states.look(&self.policy_states, position, now)?.count)
    }

    /// Returns when the row of the policy at a position ends; 0 if it has ended.
    pub(crate) fn row_expires_at(&self, position: usize, now: u64) -> Result<u64, Error> {
        Ok(self.states.expires_at(&self.policy_states, position, now)?)
    }

    fn set_exception(&mut self, exception: Option<&Exception>, until: u64, now: u64) -> Result<Applied, Error> {
        let until = if exception.is_some() { check_until(until, now)? } else { 0 };
        let changed = exception.is_some() || !self.states.extra.exceptions.is_empty();
        let end = self.except(exception, (until, now))?;
        Ok(Applied { answer: Answer::Number(end), changed, others_changed: changed })
    }

    /// Checks that the key has room for rows of the policies.
    fn check_rows(&self, now: u64) -> Result<(), Error> {
        let is_alone = self.parked.is_empty() && self.states.extra.rows.is_empty();
        if is_alone || has_room(self.live_others(now), self.policies.len()) {
            return Ok(());
        }
        Err(Error::ManyRows { max_rows: MAX_ROWS })
    }

    /// Checks that an operation does not hit or change a policy that counts reservations or denials alone.
    fn check_countable(&self, counts: Counts) -> Result<(), Error> {
        let (checked, name) = match counts {
            Counts::Nothing => return Ok(()),
            Counts::Hit => (self.policy_states.check_hit(), "hit"),
            Counts::One(position, name) => (self.policy_states.check_countable(position), name),
        };
        checked.map_err(|rejected| rejected.error(&self.policies, name))
    }
}
