//! One key's states, for a boundary that keeps the states of the other keys itself.

use super::{Algorithms, Failure, list_in};
use crate::algorithm::{Outcome, Push};
use crate::key::policy_states::PolicyStates;
use crate::key::rows::{RowRef, head_of};
use crate::key::shapes::Shape;
use crate::key::states::KeyStates;
use crate::policy::costs::PositionCosts;
use crate::policy::denied;
use crate::{Decision, Denied};

/// The states of one key under all policies, without reservations and other rows.
#[derive(Debug)]
pub struct OneKey {
    policy_states: PolicyStates,
    states: KeyStates,
}

impl OneKey {
    /// Returns the states of a key never used.
    pub fn new(Algorithms(algorithms): Algorithms, choice: Option<Denied>, now: u64) -> Result<Self, Failure> {
        let denied = denied(&algorithms, choice);
        let policy_states = PolicyStates::new(algorithms, denied)?;
        policy_states.check_hit()?;
        let mut states = KeyStates::new(&policy_states)?;
        policy_states.clear(states.entry_mut(), now);
        Ok(Self { policy_states, states })
    }

    /// Loads rows that [`OneKey::save`] passed, but for those that have ended.
    ///
    /// # Errors
    ///
    /// If a row is invalid, or its shape is not that of the policy of its name: at the index of that row.
    pub fn load(&mut self, now: u64, numbers: &[i64]) -> Result<(), Failure> {
        let (mut rest, mut index) = (numbers, 0);
        while !rest.is_empty() {
            let invalid = || Failure::At(index);
            let row = RowRef::parse(list_in(&mut rest, index)?).ok_or_else(invalid)?;
            let position = row.shape.name;
            let own = self.policy_states.algorithms().get(position).ok_or_else(invalid)?;
            if !row.shape.is_of(own)
                || !row.open.is_empty()
                || !self.policy_states.import(position, self.states.entry_mut(), row.state)?
            {
                return Err(invalid());
            }
            if self.policy_states.expires_at(position, self.states.entry(), now) == 0 {
                self.policy_states.clear_one(position, self.states.entry_mut(), now);
            }
            index += 1;
        }
        Ok(())
    }

    /// Decides a hit, and with `charges` charges it if it fits.
    pub fn hit(&mut self, cost: u64, now: u64, charges: bool) -> Result<Decision, Failure> {
        let Self { policy_states, states } = self;
        let (algorithms, costs) = (policy_states.algorithms(), PositionCosts::All(cost));
        if !charges {
            return Ok(policy_states.peek(algorithms, states.entry(), &costs, now));
        }
        let mut outcome = Outcome::default();
        let decision = policy_states.hit_costs(algorithms, states.entry_mut(), &costs, now, &mut outcome);
        outcome.changed()?;
        Ok(decision)
    }

    /// Passes the rows that have not ended to `push`, each after the count of its numbers. Returns when they end at `now`; 0 if all
    /// have ended.
    pub fn save(&self, now: u64, push: Push<'_>) -> Result<u64, Failure> {
        let Self { policy_states, states } = self;
        let mut last = 0;
        for (position, algorithm) in policy_states.algorithms().iter().enumerate() {
            let ends_at = policy_states.state_ends_at(position, states.entry());
            if ends_at <= now {
                continue;
            }
            last = policy_states.expires_at(position, states.entry(), now).max(last);
            let mut count = 0;
            policy_states.export_one(position, states.entry(), &mut |_| {
                count += 1;
                Ok(())
            })?;
            let head = head_of(Shape::of(position, algorithm), ends_at, count);
            [head.len() as i64 + count].into_iter().chain(head).try_for_each(&mut *push)?;
            policy_states.export_one(position, states.entry(), push)?;
        }
        Ok(last)
    }
}
