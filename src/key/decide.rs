//! Decisions of a key's policies together: which of them binds, and the first times from which all of them allow.

use crate::algorithm::Act;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::forecast::Beside;
use crate::key::bans::Together;
use crate::key::open_reservations::Open;
use crate::key::policy_states::{Entry, PolicyStates};
use crate::number::MAX;
use crate::policy::costs::PositionCosts;
use crate::{Decision, Reason, Violated};

/// Combines the decisions of the policies that are not bans: the one that binds the client most, the policies that denied, and
/// the longest waits. Without any, everything is allowed.
///
/// In wasm it is compiled once, for its size; elsewhere it is inlined, since a call would copy each decision once more.
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) fn combined<D>(algorithms: &[AnyAlgorithm], costs: &PositionCosts, decide: &D) -> Decision
where
    D: Fn(usize, &AnyAlgorithm, Act) -> Decision + ?Sized,
{
    let mut binding = Decision { allowed: true, limit: MAX, remaining: MAX, retry_after: Some(0), ..Decision::NOTHING };
    let (mut violated, mut reset_after) = (Violated::default(), 0);
    let (mut is_first, mut are_reserved) = (true, true);
    for (position, algorithm) in counting(algorithms) {
        let mut decision = decide(position, algorithm, Act::Hit(costs.at(position)));
        decision.policy = position;
        reset_after = decision.reset_after.max(reset_after);
        if !decision.allowed {
            violated.add(position);
            are_reserved &= decision.reason.is_some();
        }
        if is_first || decision.binds_more_than(&binding) {
            binding = decision;
        } else if decision.allowed == binding.allowed && decision.remaining == binding.remaining {
            // More remains when each of those has more that have the least.
            binding.more_after = decision.more_after.max(binding.more_after);
        }
        is_first = false;
    }
    // A denial by one policy charges none.
    if !violated.is_empty() {
        reset_after = 0;
        for (position, algorithm) in counting(algorithms) {
            let unchanged = decide(position, algorithm, Act::LOOK);
            reset_after = unchanged.reset_after.max(reset_after);
            if position != binding.policy && unchanged.remaining <= binding.remaining {
                let more = Act::Hit((binding.remaining + 1).min(algorithm.limit()));
                let wait = decide(position, algorithm, more).retry_after.unwrap_or(0);
                binding.more_after = binding.more_after.max(wait);
            }
        }
        binding.reason = are_reserved.then_some(Reason::Reserved);
    }
    (binding.reset_after, binding.violated) = (reset_after, violated);
    binding
}

/// Passes a function to [`combined`]: in wasm as any other, elsewhere as itself.
macro_rules! shared {
    ($decide:ident) => {{
        #[cfg(target_arch = "wasm32")]
        let decide: &dyn Fn(usize, &AnyAlgorithm, Act) -> Decision = &$decide;
        #[cfg(not(target_arch = "wasm32"))]
        let decide = &$decide;
        decide
    }};
}
pub(super) use shared;

/// Returns the policies that are not bans, with their positions.
#[inline(always)]
fn counting(algorithms: &[AnyAlgorithm]) -> impl Iterator<Item = (usize, &AnyAlgorithm)> {
    algorithms.iter().enumerate().filter(|(_, algorithm)| cfg!(not(feature = "bans")) || !algorithm.is_ban())
}

/// A decision, and whether the hit is a violation, which is to be counted.
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    pub(crate) is_violation: bool,
}

/// A key's states and its open amounts, none of which is due, as of a time, for decisions under the algorithms of a call.
#[derive(Clone, Copy)]
pub(crate) struct KeyAt<'a> {
    pub(crate) policy_states: &'a PolicyStates,
    pub(crate) algorithms: &'a [AnyAlgorithm],
    pub(crate) entry: Entry<'a>,
    pub(crate) open: &'a Open,
    pub(crate) now: u64,
}

/// What a hit has charged that is not in the states.
#[derive(Clone, Copy)]
pub(super) struct Charged<'a> {
    pub(super) costs: &'a PositionCosts,
    /// Whether it is only a slot: one that was not opened.
    pub(super) only_slots: bool,
}

impl Charged<'_> {
    const NOTHING: Charged<'static> = Charged { costs: &PositionCosts::All(0), only_slots: false };

    fn at(&self, position: usize, algorithm: &AnyAlgorithm) -> u64 {
        if self.only_slots && !algorithm.is_concurrency() { 0 } else { self.costs.at(position) }
    }
}

/// The costs that are to fit.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Costs(&'a PositionCosts),
    /// More than so much, or all of a limit that is no more.
    MoreThan(u64),
}

impl KeyAt<'_> {
    fn beside<'b>(&'b self, position: usize, algorithm: &'b AnyAlgorithm) -> Beside<'b> {
        self.policy_states.beside(position, algorithm, self.entry, self.open, self.now)
    }

    /// Returns the verdict on a hit: first the bans, then the other policies, whose denial is a violation. It counts as one only
    /// if `counts` is set and open reservations alone are not the cause.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn judge(&self, costs: &PositionCosts, counts: bool) -> Verdict {
        let mut decision = self.combined(costs);
        let bans = self.bans(false);
        let is_held = !bans.held.is_empty();
        let is_denied = !decision.allowed && decision.reason.is_none();
        let is_violation = counts && !is_held && is_denied && self.has_bans() && !self.policy_states.are_zero(costs);
        let bans = if is_violation { self.bans(true) } else { bans };
        if !bans.held.is_empty() {
            decision = self.denied_until(bans.until, Reason::Banned, decision, costs, &bans);
            (decision.policy, decision.violated) = (bans.last, bans.held);
        }
        decision.reset_after = decision.reset_after.max(bans.ends_at.saturating_sub(self.now));
        Verdict { decision, is_violation }
    }

    fn has_bans(&self) -> bool {
        !self.policy_states.bans().is_empty()
    }

    /// Returns the decision of the policies that are not bans.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn combined(&self, costs: &PositionCosts) -> Decision {
        let decide = |position: usize, algorithm: &AnyAlgorithm, act: Act| self.beside(position, algorithm).peek(act);
        let mut decision = combined(self.algorithms, costs, shared!(decide));
        // A bucket that flows faster for this call than by itself may be fuller again after a reservation's end.
        if counting(self.algorithms).any(|(position, algorithm)| !self.beside(position, algorithm).flows_alike()) {
            let charged = if decision.allowed { Charged { costs, only_slots: false } } else { Charged::NOTHING };
            if let Some(wait) = decision.retry_after.filter(|_| !decision.allowed) {
                decision.retry_after = self.wait_for(costs, self.now + wait);
            }
            let more_from = self.now + decision.more_after;
            decision.more_after = self.wait_for_more(decision.remaining, charged, more_from);
        }
        decision
    }

    /// Returns a decision as a denial that lasts until a time, whatever the policies say, and from then on for as long as they
    /// deny.
    pub(super) fn denied_until(
        &self,
        until: u64,
        reason: Reason,
        decision: Decision,
        costs: &PositionCosts,
        bans: &Together,
    ) -> Decision {
        // Nothing is charged.
        let unchanged = if decision.allowed { self.combined(&PositionCosts::All(0)) } else { decision };
        let denied = Decision {
            allowed: false,
            remaining: 0,
            retry_after: None,
            more_after: MAX,
            reason: Some(reason),
            ..unchanged
        };
        self.after(denied, costs, Charged::NOTHING, until, bans)
    }

    /// Returns a decision that holds until a time: waits that are not over by then are those of the policies from then on, and
    /// after any ban.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn after(
        &self,
        mut decision: Decision,
        costs: &PositionCosts,
        charged: Charged<'_>,
        until: u64,
        bans: &Together,
    ) -> Decision {
        let end = until - self.now;
        let from = until.max(bans.until);
        if decision.retry_after.is_none_or(|wait| wait >= end) {
            // Among too many reservations, there is no room before.
            let is_full = decision.reason == Some(Reason::Full);
            let room_at = self.now + decision.retry_after.filter(|_| is_full).unwrap_or(0);
            decision.retry_after = self.wait_for(costs, from.max(room_at));
        }
        if decision.more_after >= end {
            decision.more_after = self.wait_for_more(decision.remaining, charged, from);
        }
        if decision.reset_after >= end {
            decision.reset_after = self.wait_for_unused(charged, until.max(bans.ends_at));
        }
        decision
    }

    /// Returns how long it takes until a hit is allowed by all policies at once, from a time on; `None` for ever.
    pub(super) fn wait_for(&self, costs: &PositionCosts, from: u64) -> Option<u64> {
        self.wait_until(Wanted::Costs(costs), Charged::NOTHING, from)
    }

    /// Returns how long it takes until more than `remaining` is allowed by all policies at once, or all of a limit that is no
    /// more, after costs were charged.
    pub(super) fn wait_for_more(&self, remaining: u64, charged: Charged<'_>, from: u64) -> u64 {
        self.wait_until(Wanted::MoreThan(remaining), charged, from).unwrap_or(0)
    }

    /// Returns how long it takes until all policies allow what is wanted at once, from a time on; `None` for ever.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    fn wait_until(&self, wanted: Wanted<'_>, charged: Charged<'_>, from: u64) -> Option<u64> {
        let mut at = from;
        loop {
            let before = at;
            for (position, algorithm) in counting(self.algorithms) {
                let cost = match wanted {
                    Wanted::Costs(costs) => costs.at(position),
                    Wanted::MoreThan(remaining) => (remaining + 1).min(algorithm.limit()),
                };
                at = self.beside(position, algorithm).fits_from(charged.at(position, algorithm), cost, at)?;
            }
            // A policy that had room may have none any more when the last one has.
            if at == before {
                return Some(at - self.now);
            }
        }
    }

    /// Returns how long it takes until the key is as if never used, and slots that were charged have ended; at least until a
    /// time.
    fn wait_for_unused(&self, charged: Charged<'_>, from: u64) -> u64 {
        let mut wait = from - self.now;
        for (position, algorithm) in counting(self.algorithms) {
            let slot = if charged.at(position, algorithm) > 0 { algorithm.scale() } else { 0 };
            wait = self.beside(position, algorithm).peek(Act::LOOK).reset_after.max(slot).max(wait);
        }
        wait
    }
}
