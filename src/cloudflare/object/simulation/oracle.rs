//! The definitions of the policies, against which the uses are checked.

use super::START;
use super::random::Random;
use super::scenario::Load;
use super::used::{Effect, Used};
use super::world::{Change, World};
use crate::{Answer, Ledger, Operation, Policy};

/// Asserts that the uses are no more than the definition of the policy allows.
pub(super) fn check(policy: &Policy, world: &World) {
    check_at(0, policy, world);
}

/// Asserts the same for the policy at a position, of the uses under plans with that policy.
pub(super) fn check_at(position: usize, policy: &Policy, world: &World) {
    let mut used = Used::new(policy);
    for (at, effect) in effects(position, policy, world) {
        used.apply(effect, at);
        assert!(used.is_within_limit(), "{policy:?} at {at}: {used:?}");
    }
}

/// Returns the effects on the policy at a position, in order.
pub(super) fn effects(position: usize, policy: &Policy, world: &World) -> Vec<(u64, Effect)> {
    let mut all: Vec<(u64, usize, Effect)> = Vec::new();
    if policy.algorithm() == "fix_window_per_key" {
        for (number, &start) in world.window_starts.iter().enumerate() {
            all.push((start, 0, Effect::Edge));
            let end = start + policy.scale();
            if world.window_starts.get(number + 1).is_none_or(|&next| next >= end) {
                all.push((end, 0, Effect::Edge));
            }
        }
    }
    let applies = |plan: usize| world.plans[plan].positions.contains(&position);
    for (number, used) in world.uses.iter().enumerate().filter(|(_, used)| applies(used.plan)) {
        all.push((used.at, number + 1, Effect::Use(used.cost)));
    }
    for changed in &world.changes {
        let plan = &world.plans[changed.plan];
        let applies = match changed.change {
            Change::Reset => {
                plan.names.iter().any(|name| Some(name.as_str()) == policy.name().or(Some(policy.algorithm())))
            }
            Change::Set { .. } | Change::Refund { .. } => plan.positions[0] == position,
        };
        if applies {
            all.push((changed.at, changed.uses + 1, Effect::Change(changed.change)));
        }
    }
    // Of one time, in the order in which they happened: a change comes before the next use.
    all.sort_by_key(|&(at, number, effect)| (at, number, matches!(effect, Effect::Use(_))));
    all.into_iter().map(|(at, _, effect)| (at, effect)).collect()
}

/// Returns the amount that one exact limiter admits of the same traffic without delays.
pub(super) fn admitted_at_once(policy: &Policy, load: Load, seed: u64) -> u64 {
    let mut ledger = Ledger::new(policy.clone()).unwrap();
    let mut random = Random(seed);
    let (mut next, mut admitted) = (START, 0);
    for _ in 0..load.hits {
        if let (Answer::Decision(decision), _) = ledger.apply(Operation::Hit { cost: 1 }, next).unwrap() {
            admitted += u64::from(decision.allowed);
        }
        next += load.gap(&mut random);
    }
    admitted
}
