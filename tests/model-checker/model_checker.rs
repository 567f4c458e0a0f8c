//! Proves, for every order of messages, losses, repeats, crashes, evictions and time steps up to a depth, that two
//! isolates with leases and an object with credit admit no more than the limit.
//!
//! The holder and the account are the real ones. The limit is that of three large hits: a lease is an eighth of what
//! remains at the most, so it covers small ones.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod isolate;
mod world;

use std::sync::atomic::{AtomicUsize, Ordering};

use stateright::{Checker, Model, Property};
use tollgate::Policy;
use world::{Action, Setting, World};

/// The limit: three large hits, or 24 small ones, beside those of the warm-up.
const LIMIT: u64 = 3 * LARGE + 2 * WARM_UP;
const LARGE: u64 = 8;
const SMALL: u64 = 1;

/// The small hits of each isolate before the model begins, so that the next one requests a lease.
const WARM_UP: u64 = 3;

const SCALE: u64 = 20_000;

/// As many events as half a minute allows.
const EVENTS: usize = 6;

/// A model: a policy, and the times at which it may begin.
struct Leases {
    setting: Setting,
    starts: Vec<u64>,
    /// The number of states after the last event. They are checked, and not kept.
    last: AtomicUsize,
}

impl Model for Leases {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let warm = |&start: &u64| World::warm(&self.setting, start);
        self.starts.iter().map(warm).flat_map(|warm| [warm.leased(&self.setting), warm]).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let world = world.after(&self.setting, action)?;
        if world.events < EVENTS || world.used > LIMIT {
            return Some(world);
        }
        self.last.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no more is admitted than the limit", |_, world: &World| world.used <= LIMIT),
            // So that the model has what it is about.
            Property::sometimes("a lease is spent", |_, world: &World| world.seen.leased),
            Property::sometimes("a hit waits for a renewal", |_, world: &World| world.seen.waited),
            Property::sometimes("a message is applied twice", |_, world: &World| world.seen.repeated),
            Property::sometimes("a row is not written", |_, world: &World| world.seen.credited),
            Property::sometimes("credit is lost", |_, world: &World| world.seen.lost_credit),
            Property::sometimes("a lease is given back", |_, world: &World| world.seen.given_back),
            Property::sometimes("a hit is denied", |_, world: &World| world.seen.denied),
        ]
    }
}

/// Checks a policy from these starts, and prints what was visited.
fn check(policy: Policy, starts: &[u64]) {
    let name = policy.algorithm();
    let model = Leases { setting: Setting::new(policy), starts: starts.to_vec(), last: AtomicUsize::new(0) };
    // Breadth first, so that a state is visited after as few events as lead to it.
    let checker = model.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let (states, last) = (checker.unique_state_count(), checker.model().last.load(Ordering::Relaxed));
    println!("{name}: all orders of {EVENTS} events: {states} states, and {last} after the last event");
    assert!(last > 100_000, "{last}");
}

#[test]
fn leases_and_credit_admit_no_more_in_any_order_of_events() {
    let at = 1_800_000_000_000;
    // The window lasts longer than a lease, or ends before it.
    check(Policy::fix_window(LIMIT, SCALE).unwrap(), &[at, at + SCALE - 5_000]);
    // Nothing flows meanwhile, so that all uses count.
    check(Policy::token_bucket(LIMIT, 1, "365d").unwrap(), &[at]);
}
