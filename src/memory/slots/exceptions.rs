//! Exceptions by slot. A key that has one is never evicted.

use super::{SlotError, Slots};
use crate::key::exceptions::{Exceptions, Unfit};

impl Slots {
    /// Returns the first number of an exception that a policy cannot take.
    pub(crate) fn unfit(&self, exceptions: &Exceptions) -> Option<Unfit> {
        exceptions.unfit(&self.policy_states)
    }

    /// Returns the largest count that a policy of a key may be set to.
    pub(crate) fn most_to_set(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        match slot.and_then(|slot| self.exceptions(slot)) {
            None => self.policy_states.most_to_set(position),
            Some(exceptions) => self.policy_states.own_at(position, exceptions, now).most_to_set(),
        }
    }

    /// Replaces a key's exception; an empty one only lifts it. Returns when the exception ends, or would have ended. A key
    /// without a slot is given one for an exception.
    pub(crate) fn except(&mut self, slot: Option<u32>, exceptions: Exceptions, now: u64) -> Result<u64, SlotError> {
        let former = slot.and_then(|slot| self.exceptions(slot)).map_or(0, Exceptions::ends_at);
        let former_ends_at = if former > now { former } else { 0 };
        if exceptions.is_empty() {
            if let Some(extra) = slot.and_then(|slot| self.extras.get_mut(slot)) {
                extra.exceptions = exceptions;
            }
            slot.into_iter().for_each(|slot| self.drop_empty_extra(slot));
            return Ok(former_ends_at);
        }
        if former_ends_at == 0 && self.half_are_excepted(now) {
            return Err(SlotError::ManyExceptions);
        }
        let ends_at = exceptions.ends_at();
        // Extras are only allocated for slots that exist, whatever number the caller passes.
        match slot.filter(|&slot| self.is_occupied(slot)) {
            Some(slot) => {
                self.clear_if_stale(slot, now);
                self.extras.get_or_insert(slot)?.exceptions = exceptions;
            }
            None => {
                let Self { policy_states, staged, .. } = self;
                staged.clear(policy_states, now);
                staged.extra.exceptions = exceptions;
                self.import(None, now)?;
            }
        }
        Ok(ends_at)
    }

    /// Returns the exception of a slot.
    pub(crate) fn exceptions(&self, slot: u32) -> Option<&Exceptions> {
        self.extras.get(slot).map(|extra| &extra.exceptions)
    }

    /// Returns whether a slot has an exception in force.
    pub(crate) fn is_excepted(&self, slot: u32, now: u64) -> bool {
        self.exceptions(slot).is_some_and(|exceptions| exceptions.are_in_force(now))
    }

    /// Returns whether as many keys have exceptions as may have one. Few limiters have enough for it to be counted.
    fn half_are_excepted(&self, now: u64) -> bool {
        let most = self.options.max_keys / 2;
        let with_extras = self.extras.len();
        with_extras >= most && self.slots().filter(|&slot| self.is_excepted(slot, now)).count() as u32 >= most
    }
}
