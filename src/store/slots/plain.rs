//! Hits that have nothing else to do, in as few steps as can be.

use super::Slots;
use crate::Decision;
use crate::algorithm::Algorithm;
use crate::algorithm::rule::Rule;
use crate::algorithm::window::{Kind, Window};
use crate::policy_states::Entry;

impl Slots {
    /// Whether a hit has nothing else to do: the key has its slot, which stays, and nothing is to be swept.
    #[inline(always)]
    pub(crate) fn is_plain(&self, slot: i32, now: u64) -> bool {
        slot >= 0 && self.cleaning.rests(now, self.options.clean_period) && self.options.key_older_than.is_none()
    }

    /// The commonest of such hits, in the fewest steps: under a single fixed window. Any other is not answered.
    #[inline(always)]
    pub(crate) fn hit_window(&mut self, slot: u32, cost: u64, now: u64) -> Option<Decision> {
        let [Rule::Window(window @ Window { kind: Kind::Clock | Kind::Key, .. })] = *self.policy_states.rules() else {
            return None;
        };
        let mut entry = Entry::Write(self.entries.words_mut(slot), &mut []);
        let charged = window.act(&mut entry, self.policy_states.hit_of(cost), now, &mut false);
        Some(charged.decision(window.limit, false, now))
    }

    /// Any such hit.
    #[inline(always)]
    pub(crate) fn hit_plain(&mut self, slot: u32, cost: u64, now: u64) -> Decision {
        let (words, logs) = self.entries.both_mut(slot);
        self.policy_states.hit(self.policy_states.rules(), &mut Entry::Write(words, logs), cost, now, &mut false)
    }
}
