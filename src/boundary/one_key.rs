//! One key's states, for a boundary that keeps the states of the other keys itself.

use alloc::vec::Vec;

use super::{Algorithms, Failure, list_in};
use crate::algorithm::Outcome;
use crate::growth::{OutOfMemory, push};
use crate::key::policy_states::PolicyStates;
use crate::key::shapes::{Shape, split};
use crate::key::states::KeyStates;
use crate::policy::costs::PositionCosts;
use crate::policy::denied;
use crate::{Decision, Denied};

/// The states of one key under all policies, without reservations and former shapes.
#[derive(Debug)]
pub struct OneKey {
    policy_states: PolicyStates,
    states: KeyStates,
    /// Whether a state was loaded or charged.
    is_used: bool,
    /// Whether states that have ended are kept.
    keeps_ended: bool,
}

impl OneKey {
    /// Returns the states of a key never used.
    pub fn new(Algorithms(algorithms): Algorithms, choice: Option<Denied>, now: u64) -> Result<Self, Failure> {
        let denied = denied(&algorithms, choice);
        let policy_states = PolicyStates::new(algorithms, denied)?;
        policy_states.check_hit()?;
        let mut states = KeyStates::new(&policy_states)?;
        policy_states.clear(states.entry_mut(), now);
        Ok(Self { policy_states, states, is_used: false, keeps_ended: false })
    }

    /// Returns a state of a key never used, of the shape of the first of these states: as much of a policy as is needed to
    /// know when a state ends.
    pub fn of_shape(numbers: &[i64], now: u64) -> Result<Self, Failure> {
        let shape = split(list_in(&mut &numbers[..], 0)?).map(|(shape, ..)| shape);
        let algorithm = shape.and_then(|shape| shape.algorithm()).ok_or(Failure::At(0))?;
        let mut algorithms = Vec::new();
        push(&mut algorithms, algorithm)?;
        Self::new(Algorithms(algorithms), None, now)
    }

    /// Loads states that [`OneKey::save`] passed, unless all of them have ended. With `keeps_ended` they are kept then too, as
    /// those of a key that has states of former shapes are.
    ///
    /// # Errors
    ///
    /// If a state is invalid, or its shape is not that of the policy of its name: at the index of that state.
    pub fn load(&mut self, now: u64, numbers: &[i64], keeps_ended: bool) -> Result<(), Failure> {
        let (mut rest, mut index) = (numbers, 0);
        while !rest.is_empty() {
            let invalid = || Failure::At(index);
            let (shape, numbers, open) = split(list_in(&mut rest, index)?).ok_or_else(invalid)?;
            let own = self.policy_states.algorithms().get(shape.name).ok_or_else(invalid)?;
            if Shape::of(shape.name, own) != shape
                || !open.is_empty()
                || !self.policy_states.import(shape.name, self.states.entry_mut(), numbers)?
            {
                return Err(invalid());
            }
            index += 1;
        }
        self.keeps_ended = keeps_ended;
        self.is_used = keeps_ended || self.ends_at(now) > now;
        if !self.is_used {
            self.policy_states.clear(self.states.entry_mut(), now);
        }
        Ok(())
    }

    /// Decides a hit, and with `charges` charges it if it fits.
    pub fn hit(&mut self, cost: u64, now: u64, charges: bool) -> Result<Decision, Failure> {
        let Self { policy_states, states, .. } = self;
        let (algorithms, costs) = (policy_states.algorithms(), PositionCosts::All(cost));
        if !charges {
            return Ok(policy_states.peek(algorithms, states.entry(), &costs, now));
        }
        let mut outcome = Outcome::default();
        let decision = policy_states.hit_costs(algorithms, states.entry_mut(), &costs, now, &mut outcome);
        outcome.changed()?;
        self.is_used |= policy_states.charges(&decision, &costs);
        Ok(decision)
    }

    /// Passes the states to `push` one number after the other, as [`super::SlotLimiter::export`] appends them. Returns when
    /// they end; 0, without numbers, if they have ended.
    pub fn save(&self, now: u64, push: &mut dyn FnMut(i64) -> Result<(), OutOfMemory>) -> Result<u64, Failure> {
        let ends_at = self.ends_at(now);
        if !self.is_used || (ends_at <= now && !self.keeps_ended) {
            return Ok(0);
        }
        for (position, algorithm) in self.policy_states.algorithms().iter().enumerate() {
            let mut count = 0;
            self.policy_states.export_one(position, self.states.entry(), &mut |_| {
                count += 1;
                Ok(())
            })?;
            let Shape { name, algorithm, scale } = Shape::of(position, algorithm);
            for number in [count + 4, name as i64, algorithm as i64, scale.number(), count] {
                push(number)?;
            }
            self.policy_states.export_one(position, self.states.entry(), push)?;
        }
        Ok(ends_at)
    }

    /// Returns when the last of the states ends; `now` or earlier if it has.
    fn ends_at(&self, now: u64) -> u64 {
        self.policy_states.all_end_at(self.states.entry(), now)
    }
}
