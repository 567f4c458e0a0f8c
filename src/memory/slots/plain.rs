//! Plain hits, in as few steps as possible.

use super::Slots;
use crate::Decision;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::window::{Kind, Window};
use crate::algorithm::{Algorithm, Outcome};
use crate::growth::OutOfMemory;

impl Slots {
    /// Returns whether a hit is plain: the key has a slot, which does not become stale, no sweep is due, and no slot
    /// has an extra.
    #[inline(always)]
    pub(crate) fn is_plain(&self, slot: i32, now: u64) -> bool {
        slot >= 0
            && self.cleaning.is_idle(now, self.options.clean_period)
            && self.hits_are_plain
            && self.extras.is_empty()
    }

    /// Performs the most common kind of plain hit, under a single fixed window; `None` for any other.
    #[inline(always)]
    pub(crate) fn hit_window(&mut self, slot: u32, cost: u64, now: u64) -> Option<Decision> {
        let [AnyAlgorithm::Window(window @ Window { kind: Kind::Clock | Kind::Key, .. })] =
            *self.policy_states.algorithms()
        else {
            return None;
        };
        let act = self.policy_states.hit_of(cost);
        // A window's state has a fixed size, so this never runs out of memory.
        let words = self.entries.words_mut(slot);
        let charged = window.keep(words, window.try_on(words, act, now), &mut Outcome::default());
        Some(charged.decision(window.limit, false, now))
    }

    /// Performs a plain hit.
    #[inline(always)]
    pub(crate) fn hit_plain(&mut self, slot: u32, cost: u64, now: u64) -> Result<Decision, OutOfMemory> {
        let entry = self.entries.both_mut(slot);
        let mut outcome = Outcome::default();
        let decision = self.policy_states.hit_inlined(self.policy_states.algorithms(), entry, cost, now, &mut outcome);
        outcome.changed().map(|_| decision)
    }
}
