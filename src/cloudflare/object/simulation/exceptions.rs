//! Exceptions that come, go and end while leases and credit are open, and while the object crashes: none is forgotten, and
//! none outlives its end by more than a lease.

use super::oracle::effects;
use super::policies::policies;
use super::random::Random;
use super::scenario::{Faults, Load, any_scenario};
use super::used::{Effect, Used};
use super::world::{Excepted, Features, World};
use crate::Policy;

/// How long a use may follow the numbers before: the longest lease, by a clock that runs slower.
const GRACE: u64 = 12_000;

/// Returns the largest limit that was in force from [`GRACE`] before a time on; `None` if everything was allowed.
fn most_limit(excepted: &[Excepted], own: u64, at: u64) -> Option<u64> {
    let since = at.saturating_sub(GRACE);
    let (mut most, mut covered_until) = (0, 0);
    for (number, exception) in excepted.iter().enumerate() {
        // Each is in the place of the one before.
        let until = excepted.get(number + 1).map_or(exception.until, |next| next.at.min(exception.until));
        if exception.at > covered_until && exception.at > since && covered_until <= at {
            most = most.max(own);
        }
        covered_until = until;
        if exception.at <= at && until > since {
            most = most.max(exception.limit?);
        }
    }
    Some(if covered_until <= at { most.max(own) } else { most })
}

/// Asserts that each use was within the limit that was in force.
fn check_excepted(policy: &Policy, world: &World) {
    let mut used = Used::new(policy);
    for (at, effect) in effects(0, policy, world) {
        let is_use = matches!(effect, Effect::Use(_));
        let limit = most_limit(&world.excepted, policy.limit(), at);
        let allows = world.excepted.iter().rev().find(|exception| exception.at <= at);
        // Nothing is charged while everything is allowed.
        if is_use && allows.is_some_and(|exception| exception.limit.is_none() && at < exception.until) {
            continue;
        }
        used.apply(effect, at);
        let Some(limit) = limit.filter(|_| is_use) else { continue };
        assert!(limit > 0, "{policy:?} at {at}: a use while everything is denied");
        assert!(used.is_within(limit), "{policy:?} at {at}, limit {limit}: {used:?}");
    }
}

#[test]
fn exceptions_hold_whatever_fails() {
    let (mut exceptions, mut raised) = (0, 0);
    for (number, policy) in policies().iter().enumerate() {
        for round in 0..6_u64 {
            let seed = 5_000_000 + number as u64 * 1_000 + round;
            let (load, faults) = any_scenario(&mut Random(seed ^ 0x7041));
            let load = Load { rate: 60, isolates: load.isolates.min(5), max_cost: 60, hits: 6_000, ..load };
            let faults = Faults { excepted: 400, changed: 0, reserved: 0, failing_storage: 0, ..faults };
            let mut world = World::new(policy, load, faults, seed, Features { credit: round != 1, leases: round != 2 });
            world.run(load);
            check_excepted(policy, &world);
            exceptions += world.excepted.len();
            raised += usize::from(world.admitted() > 0);
        }
    }
    assert!(exceptions > 1_000 && raised > 100, "{exceptions} {raised}");
}
