//! Tests that no more is admitted than the policies allow.

use super::oracle::{check, check_at};
use super::plan::Plan;
use super::policies::policies;
use super::random::Random;
use super::scenario::{Faults, Load, any_scenario};
use super::world::{Features, World};
use crate::Policy;

#[test]
fn no_more_is_admitted_than_allowed_whatever_fails() {
    let mut hits = 0;
    for (number, policy) in policies().iter().enumerate() {
        for round in 0..16_u64 {
            let seed = number as u64 * 1_000 + round;
            let mut random = Random(seed ^ 0x7041);
            let isolates = random.one_of(&[1, 2, 5, 20, 50]);
            let rate = random.one_of(&[20, 300, 2_000, 8_000]);
            let load = Load {
                isolates,
                hits: 22_000,
                rate,
                bursts: random.once_in(2),
                max_cost: if random.once_in(3) { 5 } else { 1 },
            };
            let often = random.one_of(&[0, 50, 1_000]);
            let faults = Faults {
                lost: often,
                late: often,
                crashed_object: random.one_of(&[0, 200, 5_000]),
                crashed_isolate: random.one_of(&[0, 2_000]),
                skewed: random.once_in(2),
                cancelled: often,
                ..Faults::default()
            };
            let (credit, leases) = (!random.once_in(4), !random.once_in(5));
            let mut world = World::new(policy, load, faults, seed, Features { credit, leases });
            world.run(load);
            check(policy, &world);
            assert!(world.admitted() > 0);
            hits += load.hits;
        }
    }
    assert!(hits >= 9_000_000, "{hits}");
}

#[test]
fn messages_that_are_repeated_storage_that_fails_and_alarms_admit_no_more() {
    for (number, policy) in policies().iter().enumerate() {
        for round in 0..4_u64 {
            let seed = 1_000_000 + number as u64 * 1_000 + round;
            let (load, faults) = any_scenario(&mut Random(seed ^ 0x7041));
            let mut world = World::new(policy, load, faults, seed, Features { credit: true, leases: round != 3 });
            world.run(load);
            check(policy, &world);
            assert!(world.admitted() > 0);
        }
    }
}

#[test]
fn an_object_whose_clock_steps_back_admits_no_more() {
    // Times of uses are true times, so the oracle cannot check windows that the object's clock determines.
    let has_no_window =
        |policy: &&Policy| !policy.algorithm().contains("fix") && !policy.algorithm().contains("counter");
    for (number, policy) in policies().iter().filter(has_no_window).enumerate() {
        for round in 0..8_u64 {
            let seed = 2_000_000 + number as u64 * 1_000 + round;
            let (load, faults) = any_scenario(&mut Random(seed ^ 0x7041));
            let stepped = [100, 1_000, 5_000][round as usize % 3];
            // The times of reservations' uses and of changes ignore the object's clock.
            let faults = Faults { stepped, reserved: 0, changed: 0, ..faults };
            let mut world = World::new(policy, load, faults, seed, Features::ALL);
            world.run(load);
            check(policy, &world);
        }
    }
}

#[test]
fn several_policies_in_one_decision_each_hold() {
    let named = |name: &str, policy: &Policy| policy.clone().named(name).unwrap();
    let all = policies();
    for round in 0..60_u64 {
        let seed = 3_000_000 + round;
        let mut random = Random(seed ^ 0x7041);
        let mut any = |name| named(name, &all[random.below(all.len() as u64) as usize]);
        let (mut first, mut second) = (any("first"), any("second"));
        // A world records the window starts of its first policy only.
        while second.algorithm() == "fix_window_per_key" {
            (first, second) = (named("first", &second), any("second"));
        }
        let (load, faults) = any_scenario(&mut random);
        let plan = Plan::new(&[(0, &first), (1, &second)]);
        let mut world = World::with_plans(vec![plan], first.scale(), load, faults, seed, Features::ALL);
        world.run(load);
        check_at(0, &first, &world);
        check_at(1, &second, &world);
    }
}

#[test]
fn several_plans_on_one_key_each_hold_also_when_a_limit_or_a_scale_changes() {
    let all: Vec<Policy> = policies().into_iter().filter(|policy| policy.algorithm() != "fix_window_per_key").collect();
    for round in 0..60_u64 {
        let seed = 4_000_000 + round;
        let mut random = Random(seed ^ 0x7041);
        let mut any = |name| all[random.below(all.len() as u64) as usize].clone().named(name).unwrap();
        let (first, second) = (any("first"), any("second"));
        // A deploy is under way: some have a lower limit, under which no more is admitted than under the higher one.
        let lower = match first.algorithm() {
            "fix_window" => Policy::fix_window(first.limit() / 2, first.scale()).unwrap().named("first").unwrap(),
            "sliding_window" => {
                Policy::sliding_window(first.limit() / 2, first.scale()).unwrap().named("first").unwrap()
            }
            "sliding_counter" => {
                Policy::sliding_counter(first.limit() / 2, first.scale()).unwrap().named("first").unwrap()
            }
            _ => first.clone(),
        };
        // Another scale, or another `per`, is another shape, with a budget of its own beside the former one.
        let other = match first.algorithm() {
            "fix_window" => Policy::fix_window(first.limit(), first.scale() * 2).unwrap(),
            "sliding_window" => Policy::sliding_window(first.limit(), first.scale() / 2).unwrap(),
            "sliding_counter" => Policy::sliding_counter(first.limit(), first.scale() * 2).unwrap(),
            "token_bucket" => Policy::token_bucket(first.limit(), 1, first.scale() * 2).unwrap(),
            _ => Policy::leaky_bucket(first.limit(), 1, first.scale() * 2).unwrap(),
        };
        let other = other.named("first").unwrap();
        let plans = vec![
            Plan::new(&[(0, &first)]),
            Plan::new(&[(0, &first), (1, &second)]),
            Plan::new(&[(1, &second)]),
            Plan::new(&[(0, &lower)]),
            Plan::new(&[(2, &other)]),
        ];
        let (load, faults) = any_scenario(&mut random);
        let mut world = World::with_plans(plans, first.scale(), load, faults, seed, Features::ALL);
        world.run(load);
        check_at(0, &first, &world);
        check_at(1, &second, &world);
        check_at(2, &other, &world);
    }
}
