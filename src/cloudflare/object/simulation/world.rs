//! The simulated world: isolates, an object, and the messages between them.

mod at_isolate;
mod at_object;
mod faults;
mod operator;

pub(super) use operator::{Change, Changed, Excepted};

use super::START;
use super::disk::Disk;
use super::event::{Event, Events};
use super::isolate::Isolate;
use super::plan::Plan;
use super::random::Random;
use super::scenario::{Faults, Load};
use crate::Policy;
use crate::cloudflare::object::account::Account;

/// An admitted amount, under a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) at: u64,
    pub(super) cost: u64,
    pub(super) plan: usize,
}

/// Whether the object has credit, and whether isolates have leases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    pub(super) credit: bool,
    pub(super) leases: bool,
}

impl Features {
    pub(super) const ALL: Self = Self { credit: true, leases: true };
    pub(super) const NONE: Self = Self { credit: false, leases: false };
}

pub(super) struct World {
    random: Random,
    faults: Faults,
    features: Features,
    pub(super) plans: Vec<Plan>,
    /// The scale of the first policy.
    scale: u64,
    account: Account<Disk>,
    isolates: Vec<Isolate>,
    events: Events,
    pub(super) uses: Vec<Use>,
    /// What the operator has changed.
    pub(super) changes: Vec<Changed>,
    /// The exceptions that the operator has set or lifted.
    pub(super) excepted: Vec<Excepted>,
    /// The starts of the key's own windows.
    pub(super) window_starts: Vec<u64>,
    /// How far the object's clock is behind the true time.
    clock_behind: u64,
    /// The latest time that the object's clock has shown.
    latest_clock: u64,
    /// The alarm of the object, by the true time. It survives the object.
    alarm: Option<u64>,
    /// The number of messages to the object.
    pub(super) messages: u64,
    /// The number of writes before the last crash of the object.
    earlier_writes: u64,
}

impl World {
    pub(super) fn new(policy: &Policy, load: Load, faults: Faults, seed: u64, features: Features) -> Self {
        Self::with_plans(vec![Plan::new(&[(0, policy)])], policy.scale(), load, faults, seed, features)
    }

    /// Returns a world in which each hit is under one of several plans. `scale` is that of the first policy.
    pub(super) fn with_plans(
        plans: Vec<Plan>,
        scale: u64,
        load: Load,
        faults: Faults,
        seed: u64,
        features: Features,
    ) -> Self {
        let mut random = Random(seed);
        let isolates = (0..load.isolates).map(|_| Isolate::new(&mut random, &faults)).collect();
        let disk = Disk::new(None, Random(seed ^ 0xd15c), faults.failing_storage);
        Self {
            random,
            faults,
            features,
            plans,
            scale,
            account: Account::stored_in(disk, String::new()),
            isolates,
            events: Events::default(),
            uses: Vec::new(),
            changes: Vec::new(),
            excepted: Vec::new(),
            window_starts: Vec::new(),
            clock_behind: 0,
            latest_clock: 0,
            alarm: None,
            messages: 0,
            earlier_writes: 0,
        }
    }

    /// Runs the traffic until nothing is left to happen.
    pub(super) fn run(&mut self, load: Load) {
        let (mut hits, mut next) = (0, START);
        self.events.push(next, Event::Hit { cost: 1 });
        while let Some((now, event)) = self.events.pop() {
            if let Event::Hit { .. } = event {
                hits += 1;
                if hits < load.hits {
                    let pause = if load.bursts && self.random.once_in(2_000) { self.random.below(9_000) } else { 0 };
                    next = next.max(now) + load.gap(&mut self.random) + pause;
                    let cost = if load.max_cost > 1 { 1 + self.random.below(load.max_cost) } else { 1 };
                    self.events.push(next, Event::Hit { cost });
                }
            }
            self.inject_faults(now);
            self.handle(event, now);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Hit { cost } => {
                let isolate = self.random_isolate();
                let plans = self.plans.len() as u64;
                let plan = if plans > 1 { self.random.below(plans) as usize } else { 0 };
                self.hit(isolate, plan, cost, now);
            }
            Event::Settle { plan, id, used } => self.settle(plan, id, used, now),
            Event::Message(message) => self.receive_message(message, now),
            Event::Reply { message, reply } => self.receive_reply(message, reply, now),
            Event::Timeout(message) => self.time_out(&message, now),
            Event::WaitTimeout { isolate, generation, hit } => self.stop_waiting(isolate, generation, hit, now),
            Event::GiveBack { isolate, generation, plan, sent_at } => {
                self.give_back(isolate, generation, plan, sent_at, now);
            }
            Event::Alarm if self.alarm == Some(now) => self.ring(now),
            // Another one has replaced it.
            Event::Alarm => {}
        }
    }

    fn random_isolate(&mut self) -> usize {
        self.random.below(self.isolates.len() as u64) as usize
    }

    /// Returns how long a message or a reply takes.
    fn delay(&mut self) -> u64 {
        let late = if self.random.once_in(self.faults.late) { self.random.below(6_000) } else { 0 };
        1 + self.random.below(15) + late
    }

    /// Returns the sum of all uses.
    pub(super) fn admitted(&self) -> u64 {
        self.uses.iter().map(|used| used.cost).sum()
    }

    /// Returns the number of rows that the object has written: its own, and its alarms.
    pub(super) fn writes(&self) -> u64 {
        self.earlier_writes + self.account.row.writes + self.account.row.alarms
    }
}
