//! Decisions under lists with bans: first the bans, then the other policies, then the count of a violation.

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::{self, Ban};
use crate::algorithm::{Act, Algorithm};
use crate::key::open_reservations::Open;
use crate::key::policy_states::{Entry, EntryMut, PolicyStates};
use crate::number::MAX;
use crate::policy::costs::PositionCosts;
use crate::{Decision, Reason, Violated};

/// The positions of the policies that are bans, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bans(u32);

impl Bans {
    pub(crate) fn of(algorithms: &[AnyAlgorithm]) -> Self {
        let bans = algorithms.iter().enumerate().filter(|(_, algorithm)| algorithm.is_ban());
        Self(bans.fold(0, |bits, (position, _)| bits | 1 << position))
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        // So that the compiler leaves out what is only for bans.
        cfg!(not(feature = "bans")) || self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn contains(self, position: usize) -> bool {
        !self.is_empty() && self.0 >> position & 1 == 1
    }
}

/// A decision, and whether the hit is a violation, which is to be counted.
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    pub(crate) is_violation: bool,
}

/// The bans of a key, taken together.
pub(super) struct Together {
    /// Which of them hold.
    held: Violated,
    /// The ban that ends last.
    last: usize,
    pub(super) until: u64,
    /// When the last of their states ends.
    pub(super) ends_at: u64,
}

impl PolicyStates {
    /// Returns the verdict on a hit under several policies beside open amounts, none of which is due. It is a violation only
    /// if `counts` is set.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn judge(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: Entry<'_>,
        open: &Open,
        costs: &PositionCosts,
        counts: bool,
        now: u64,
    ) -> Verdict {
        let others = self.combined(algorithms, entry, open, costs, now);
        let bans = self.together(algorithms, entry, now, false);
        let is_violation = counts && bans.held.is_empty() && !others.allowed && !self.are_zero(costs);
        let bans = if is_violation { self.together(algorithms, entry, now, true) } else { bans };
        let mut decision = others;
        // A denial charges no policy.
        if !(others.allowed && bans.held.is_empty()) {
            let unchanged = self.combined(algorithms, entry, open, &PositionCosts::All(0), now);
            decision.reset_after = unchanged.reset_after;
            if others.allowed {
                decision = unchanged;
            }
        }
        decision.reset_after = decision.reset_after.max(bans.ends_at.saturating_sub(now));
        if !bans.held.is_empty() {
            let wait = bans.until - now;
            decision.allowed = false;
            decision.remaining = 0;
            // A cost that never fits does not fit after the ban either.
            decision.retry_after =
                if others.allowed { Some(wait) } else { others.retry_after.map(|own| own.max(wait)) };
            decision.more_after = wait;
            decision.policy = bans.last;
            decision.violated = bans.held;
            decision.reason = Some(Reason::Banned);
        }
        Verdict { decision, is_violation }
    }

    /// Combines the decisions of the policies that are not bans: the one that binds the client most, and those that denied.
    /// Without any, everything is allowed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn combined(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: Entry<'_>,
        open: &Open,
        costs: &PositionCosts,
        now: u64,
    ) -> Decision {
        let mut binding = Decision::NOTHING;
        (binding.allowed, binding.retry_after) = (true, Some(0));
        (binding.limit, binding.remaining) = (MAX, MAX);
        let (mut violated, mut reset_after, mut is_first) = (Violated::default(), 0, true);
        for (position, algorithm) in algorithms.iter().enumerate().filter(|(_, algorithm)| !algorithm.is_ban()) {
            let act = Act::Hit(costs.at(position));
            let mut decision = self.beside(position, algorithm, entry, open, now).peek(act);
            decision.policy = position;
            reset_after = decision.reset_after.max(reset_after);
            if !decision.allowed {
                violated.add(position);
            }
            if is_first || decision.binds_more_than(&binding) {
                binding = decision;
            }
            is_first = false;
        }
        (binding.reset_after, binding.violated) = (reset_after, violated);
        binding
    }

    /// Returns the bans as of a time; with `counts`, as they are after a violation.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn together(&self, algorithms: &[AnyAlgorithm], entry: Entry<'_>, now: u64, counts: bool) -> Together {
        let mut together = Together { held: Violated::default(), last: 0, until: 0, ends_at: 0 };
        for (position, ban) in bans(algorithms) {
            let mut view = ban.view(entry.from(self.place(position)).words, now);
            if counts {
                ban.count(&mut view);
            }
            if view.holds() {
                together.held.add(position);
                if view.until > together.until {
                    (together.until, together.last) = (view.until, position);
                }
            }
            together.ends_at = together.ends_at.max(view.ends_at());
        }
        together
    }

    /// Counts a violation under each ban. None of them may hold.
    pub(crate) fn count_violation(&self, algorithms: &[AnyAlgorithm], mut entry: EntryMut<'_>, now: u64) {
        for (position, ban) in bans(algorithms) {
            change(ban, entry.from(self.place(position)), now, |view| ban.count(view));
        }
    }

    /// Begins a ban at a position, or changes the end of the one that holds; without a length, removes its state. Returns
    /// when it ends, or ended.
    pub(crate) fn hold(&self, position: usize, mut entry: EntryMut<'_>, length: Option<u64>, now: u64) -> u64 {
        let Some(AnyAlgorithm::Ban(ban)) = self.algorithms().get(position) else { return 0 };
        let mut own = entry.from(self.place(position));
        match length {
            Some(length) => change(ban, own, now, |view| view.begin(length)).until,
            None => {
                let view = ban.view(own.words, now);
                ban.clear(own.reborrow().words, now);
                if view.holds() { view.until } else { 0 }
            }
        }
    }
}

/// Changes the state of a ban.
fn change(ban: &Ban, entry: EntryMut<'_>, now: u64, work: impl FnOnce(&mut ban::View)) -> ban::View {
    let mut view = ban.view(entry.words, now);
    work(&mut view);
    ban.commit(entry.words, view);
    view
}

/// Returns the bans of a list with their positions.
fn bans(algorithms: &[AnyAlgorithm]) -> impl Iterator<Item = (usize, &Ban)> {
    algorithms.iter().enumerate().filter_map(|(position, algorithm)| match algorithm {
        AnyAlgorithm::Ban(ban) => Some((position, ban)),
        AnyAlgorithm::Window(_)
        | AnyAlgorithm::SlidingWindow(_)
        | AnyAlgorithm::Bucket(_)
        | AnyAlgorithm::Concurrency(_) => None,
    })
}
