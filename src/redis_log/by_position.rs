//! What replays read of a ledger.

use alloc::format;
use alloc::string::{String, ToString};

use crate::algorithm::any::AnyAlgorithm;
use crate::policy::costs::PositionCosts;
use crate::{Decision, Ledger};

impl Ledger {
    /// Adjusts the algorithms of one call to these states. Returns false if they do not match the policies.
    pub(super) fn adjust(&self, algorithms: &mut [AnyAlgorithm]) -> bool {
        self.policy_states.adjust(algorithms)
    }

    /// Returns the highest count that the policy at a position may be set to.
    pub(super) fn max_count(&self, position: usize) -> u64 {
        self.policy_states.most_to_set(position)
    }

    /// Returns whether an exception ends after one time and by the other.
    pub(super) fn exception_changes_between(&self, earliest: u64, latest: u64) -> bool {
        let ends_at = self.states.extra.exceptions.ends_at();
        earliest < ends_at && ends_at <= latest
    }

    /// Returns the key's exception as text: its end, and after `:` its fields as in entries; empty if none is in force. Numbers
    /// for policies that these states do not have are left out.
    pub(super) fn exception_text(&self, now: u64) -> String {
        let Some((exception, until)) = self.exception(now) else { return String::new() };
        let decision = match (exception.is_allow(), exception.is_deny()) {
            (true, _) => "+",
            (_, true) => "-",
            _ => "",
        };
        let mut text = format!("{until}:{decision}");
        let positions = (0..self.policies.len()).map(|position| (position, self.policies.name(position)));
        for (position, name) in positions {
            let mut own = exception.fields().filter(|(policy, ..)| *policy == name).peekable();
            if own.peek().is_some() {
                text.push_str(if text.ends_with(':') { "" } else { "," });
                text.push_str(&position.to_string());
                own.for_each(|(_, field, number)| text.push_str(&format!(".{field}.{number}")));
            }
        }
        text
    }

    /// Returns whether decisions depend on more than the states.
    pub(super) fn has_more_than_states(&self) -> bool {
        self.states.extra.decides()
    }

    /// Returns the decision that a hit would get, for a key without open reservations and exceptions.
    pub(super) fn peek_without_open(&self, cost: u64, now: u64) -> Decision {
        let Self { policy_states, states, .. } = self;
        policy_states.peek(policy_states.algorithms(), states.entry(), &PositionCosts::All(cost), now)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Exception, Ledger, Operation, Policy};

    #[test]
    fn an_exception_that_was_lifted_is_not_brought_back_by_an_older_memory() {
        for lifted_at in [1_000, 2_000] {
            let policy = Policy::fix_window(5, "1m").unwrap();
            let mut older = Ledger::new(policy.clone()).unwrap();
            older.apply(Operation::Except { exception: Some(&Exception::deny()), until: 9_000 }, 1_000).unwrap();
            let mut newer = older.clone();
            assert_eq!(newer.lift_exception(lifted_at).unwrap(), 9_000);
            // Also after it was stored.
            let mut read = Ledger::new(policy).unwrap();
            read.load(&newer.record(3_000).unwrap().unwrap(), 3_000).unwrap();
            for mut ledger in [newer.clone(), read.clone()] {
                ledger.take_later_exception(&older).unwrap();
                assert_eq!(ledger.exception(3_000), None, "lifted at {lifted_at}");
            }
            older.take_later_exception(&read).unwrap();
            assert_eq!(older.exception(3_000), None, "lifted at {lifted_at}");
            assert!(newer.record(9_000).unwrap().is_none());
        }
    }
}
