//! Tests of what leases and credit cost and save: admitted hits, messages and writes.

use super::START;
use super::disk::Disk;
use super::oracle::{admitted_at_once, check};
use super::policies::policies;
use super::random::Random;
use super::scenario::{Faults, Load};
use super::world::{Features, World};
use crate::cloudflare::object::account::{Account, Request};
use crate::cloudflare::protocol::wire::json_of;
use crate::{Operation, Policies, Policy};

#[test]
fn a_steady_load_gets_nearly_all_that_it_may() {
    for (number, policy) in policies().iter().enumerate() {
        for isolates in [1, 5, 50] {
            let seed = number as u64 + 31 * isolates;
            // Half more than the policy allows in the long run, and a little less.
            let period = policy.algorithm.period().max(1);
            for percent in [90, 150] {
                let rate = (policy.limit() * 10 * percent / period).clamp(1, 20_000);
                // Three periods, so that leases which are open when the traffic ends matter little.
                let hits = (3 * rate * period / 1_000).clamp(20_000, 150_000);
                let load = Load { isolates, hits, rate, bursts: false, max_cost: 1 };
                let mut world = World::new(policy, load, Faults::default(), seed, Features::ALL);
                world.run(load);
                check(policy, &world);
                let (own, at_once) = (world.admitted(), admitted_at_once(policy, load, seed));
                assert!(own * 100 >= at_once * 95, "{own} of {at_once}: {policy:?}, {load:?}");
            }
        }
    }
}

#[test]
fn a_hot_key_costs_few_messages_and_rows() {
    let policy = Policy::fix_window(100_000, "1m").unwrap();
    let load = Load { isolates: 1, hits: 20_000, rate: 200, bursts: false, max_cost: 1 };
    let mut world = World::new(&policy, load, Faults::default(), 7, Features::ALL);
    world.run(load);
    check(&policy, &world);
    assert_eq!(world.admitted(), 20_000);
    assert!(world.messages < 20_000 / 50 && world.writes() < 20_000 / 200, "{} {}", world.messages, world.writes());
}

#[test]
fn a_key_with_a_few_hits_a_second_gets_longer_leases() {
    let policy = Policy::fix_window(100_000, "1h").unwrap();
    for (rate, saved) in [(1, 3), (4, 12), (20, 20)] {
        let load = Load { isolates: 1, hits: 4_000, rate, bursts: false, max_cost: 1 };
        let mut world = World::new(&policy, load, Faults::default(), 7, Features { credit: false, leases: true });
        world.run(load);
        check(&policy, &world);
        assert_eq!(world.admitted(), 4_000);
        assert!(world.messages < 4_000 / saved, "{rate} hits a second: {} messages", world.messages);
    }
}

#[test]
fn a_cold_key_and_one_near_its_limit_ask_for_every_hit() {
    let policy = Policy::fix_window(100_000, "1m").unwrap();
    let cold = Load { isolates: 3, hits: 2_000, rate: 1, bursts: false, max_cost: 1 };
    let mut world = World::new(&policy, cold, Faults::default(), 7, Features { credit: false, leases: true });
    world.run(cold);
    let mut plain = World::new(&policy, cold, Faults::default(), 7, Features::NONE);
    plain.run(cold);
    // A hit in three seconds at each isolate is worth a lease now and then.
    assert!(world.messages <= plain.messages, "{}", world.messages);

    let near = Policy::fix_window(15, "1m").unwrap();
    let load = Load { isolates: 3, hits: 2_000, rate: 300, bursts: false, max_cost: 1 };
    let run = |leases| {
        let mut world = World::new(&near, load, Faults::default(), 7, Features { credit: false, leases });
        world.run(load);
        (world.uses, world.messages)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_cold_key_and_one_near_its_limit_write_every_allowed_hit() {
    let rows = |policy: Policy, pause: u64, credit: bool| {
        let disk = Disk::new(None, Random(7), 0);
        let mut account = Account::stored_in(disk, String::new());
        let policies = json_of(&Policies::from(policy)).unwrap();
        for number in 0..50 {
            let operation = Operation::Hit { cost: 1 };
            let request = Request { operation, policies: policies.get(), credit };
            account.apply(request, START + number * pause).unwrap();
        }
        account.row.writes
    };
    for (policy, pause) in
        [(Policy::fix_window(10_000, "1h").unwrap(), 16_000), (Policy::fix_window(15, "1h").unwrap(), 100)]
    {
        assert_eq!(rows(policy.clone(), pause, true), rows(policy, pause, false));
    }
    assert!(rows(Policy::fix_window(10_000, "1h").unwrap(), 100, true) < 10);
}
