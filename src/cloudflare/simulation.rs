//! A simulation of isolates with leases, and of an object with credit that crashes. It checks that no more is admitted
//! than the policy allows, whatever is lost, late or skewed.
//!
//! Time is the object's. A use counts when it is decided: in the isolate if a lease covers the hit, otherwise in the object.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::account::{Account, Request};
use super::codec;
use super::object_error::ObjectError;
use super::row::{LoadError, Storage};
use super::states::States;
use super::wire::Reply;
use crate::lease::holder::{Holder, Reply as HolderReply, Report, Step};
use crate::{Answer, Ledger, Operation, Policies, Policy, Renewal};

const KEY: &str = "key";
const START: u64 = 1_800_000_000_000;

/// How long an isolate waits for an object.
const TIMEOUT: u64 = 2_000;

/// How long a hit waits for another request's renewal.
const RENEWAL_WAIT: u64 = 50;

/// Random numbers that are the same in every run.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }
}

/// A stored row that survives a crash of the object.
struct Disk {
    row: Option<Vec<u8>>,
    writes: u64,
    random: Random,
}

impl Storage for Disk {
    fn load(&mut self) -> Result<States, LoadError> {
        let states = |bytes: &Vec<u8>| codec::decode(bytes).map(|stored| stored.states);
        self.row.as_ref().map_or(Ok(States::default()), states).map_err(LoadError::Unreadable)
    }

    fn save(&mut self, states: &States, _: u64) -> Result<(), ObjectError> {
        self.row = if states.0.is_empty() { None } else { Some(codec::encode(1, states)) };
        self.writes += 1;
        Ok(())
    }

    fn renew_alarm(&mut self, _: &States, _: u64) -> Result<(), ObjectError> {
        Ok(())
    }

    fn clear_alarm(&mut self) {}

    fn clear(&mut self) {}

    fn quarantine(&mut self, _: u64) -> Result<Vec<u8>, ObjectError> {
        Ok(self.row.take().unwrap_or_default())
    }

    fn random(&mut self) -> Result<u128, ObjectError> {
        Ok(u128::from(self.random.next()) << 64 | u128::from(self.random.next()))
    }
}

fn new_holder() -> Holder {
    Holder::new(100, crate::DEFAULT_LEASE_TTL, true)
}

/// The faults to inject: each once in so many times, or never if 0.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: u64,
    late: u64,
    crashed_object: u64,
    crashed_isolate: u64,
    /// Whether the clocks of isolates differ, step and drift.
    skewed: bool,
    /// A request that renews a lease is cancelled, and its reply is dropped.
    cancelled: u64,
}

/// The traffic.
#[derive(Clone, Copy, Debug)]
struct Load {
    isolates: u64,
    hits: u64,
    /// Hits a second.
    rate: u64,
    /// Whether hits come in bursts with pauses between them.
    bursts: bool,
    largest_cost: u64,
}

/// A scheduled event.
enum Event {
    /// A request reaches an isolate.
    Hit { cost: u64 },
    /// A message reaches the object.
    Arrive(Message),
    /// The object's reply reaches the isolate.
    Reply { message: Message, reply: HolderReply },
    /// A message times out.
    TimeOut(Message),
    /// A request that waits for another's renewal times out.
    StopWaiting { isolate: usize, life: u64, waiting: u64, cost: u64 },
    /// The timer of a lease.
    GiveBack { isolate: usize, life: u64, sent_at: u64 },
    /// The timer that returns the credit of a quiet key.
    ReturnCredit,
}

#[derive(Clone)]
struct Message {
    number: u64,
    isolate: usize,
    /// The number of restarts of the isolate when it sent the message.
    life: u64,
    cost: u64,
    report: Option<Report>,
    /// The time by the isolate's clock.
    sent_at: u64,
    gives_back: bool,
}

struct Isolate {
    holder: Holder,
    life: u64,
    /// The difference of its clock from the object's.
    skew: i64,
    /// The difference of its clock's speed, in millionths.
    drift: i64,
    waiting: Vec<(u64, u64)>,
    /// The messages without a reply.
    open: Vec<u64>,
}

impl Isolate {
    fn clock(&self, now: u64) -> u64 {
        let elapsed = (now - START) as i64;
        (now as i64 + self.skew + elapsed * self.drift / 1_000_000) as u64
    }
}

struct World {
    random: Random,
    faults: Faults,
    policies: String,
    account: Account<Disk>,
    isolates: Vec<Isolate>,
    events: BinaryHeap<(Reverse<(u64, u64)>, usize)>,
    bodies: Vec<Option<Event>>,
    free: Vec<usize>,
    number: u64,
    uses: Vec<(u64, u64)>,
    starts: Vec<u64>,
    scale: u64,
    has_timer: bool,
    messages: u64,
    writes_before: u64,
    credit: bool,
    leases: bool,
}

impl World {
    fn new(policy: &Policy, load: Load, faults: Faults, seed: u64, credit: bool, leases: bool) -> Self {
        let mut random = Random(seed);
        let isolates = (0..load.isolates)
            .map(|_| Isolate {
                holder: new_holder(),
                life: 0,
                skew: if faults.skewed { random.below(600_000) as i64 - 300_000 } else { 0 },
                drift: if faults.skewed { random.below(4_000) as i64 - 2_000 } else { 0 },
                waiting: Vec::new(),
                open: Vec::new(),
            })
            .collect();
        let disk = Disk { row: None, writes: 0, random: Random(seed ^ 0xd15c) };
        let policies = super::wire::json_of(&Policies::from(policy.clone())).unwrap().get().to_string();
        Self {
            random,
            faults,
            policies,
            account: Account::stored_in(disk, String::new()),
            isolates,
            events: BinaryHeap::new(),
            bodies: Vec::new(),
            free: Vec::new(),
            number: 0,
            uses: Vec::new(),
            starts: Vec::new(),
            scale: policy.scale(),
            has_timer: false,
            messages: 0,
            writes_before: 0,
            credit,
            leases,
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.number += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.bodies.push(None);
            self.bodies.len() - 1
        });
        self.bodies[place] = Some(event);
        self.events.push((Reverse((time, self.number)), place));
    }

    fn run(&mut self, load: Load) {
        let (mut hits, mut next) = (0, START);
        self.at(next, Event::Hit { cost: 1 });
        while let Some((Reverse((now, _)), place)) = self.events.pop() {
            let Some(event) = self.bodies[place].take() else { continue };
            self.free.push(place);
            if let Event::Hit { .. } = event {
                hits += 1;
                if hits < load.hits {
                    let pause = if load.bursts && self.random.once_in(2_000) { self.random.below(9_000) } else { 0 };
                    let gap = 2_000 / load.rate.max(1);
                    // Below one a millisecond, several come at once.
                    let step = if gap == 0 {
                        u64::from(self.random.below(load.rate) < 1_000)
                    } else {
                        self.random.below(gap + 1)
                    };
                    next = next.max(now) + step + pause;
                    let cost = if load.largest_cost > 1 { 1 + self.random.below(load.largest_cost) } else { 1 };
                    self.at(next, Event::Hit { cost });
                }
            }
            self.handle(event, now);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        self.inject_faults(now);
        match event {
            Event::Hit { cost } => {
                let isolate = self.random.below(self.isolates.len() as u64) as usize;
                self.hit(isolate, cost, now);
            }
            Event::Arrive(message) => self.arrive(message, now),
            Event::Reply { message, reply } => self.receive(message, reply, now),
            Event::TimeOut(message) => self.time_out(&message, now),
            Event::StopWaiting { isolate, life, waiting, cost } => {
                let own = &mut self.isolates[isolate];
                if let Some(at) = own.waiting.iter().position(|&(known, _)| known == waiting && own.life == life) {
                    own.waiting.remove(at);
                    self.send(isolate, cost, None, false, now);
                }
            }
            Event::GiveBack { isolate, life, sent_at } => {
                let own = &mut self.isolates[isolate];
                let time = own.clock(now);
                if own.life == life
                    && let Some(report) = own.holder.give_back(KEY, sent_at, time)
                {
                    self.send(isolate, 0, Some(report), true, now);
                }
            }
            Event::ReturnCredit => {
                self.has_timer = self.account.return_credit(now).unwrap();
                if self.has_timer {
                    self.at(now + super::credit::QUIET, Event::ReturnCredit);
                }
            }
        }
    }

    fn inject_faults(&mut self, now: u64) {
        if self.random.once_in(self.faults.crashed_object) {
            let row = core::mem::take(&mut self.account.row.row);
            let random = Random(self.random.next());
            self.writes_before += self.account.row.writes;
            self.account = Account::stored_in(Disk { row, writes: 0, random }, String::new());
            self.has_timer = false;
        }
        if self.random.once_in(self.faults.crashed_isolate) {
            let which = self.random.below(self.isolates.len() as u64) as usize;
            let own = &mut self.isolates[which];
            own.life += 1;
            own.holder = new_holder();
            own.waiting.clear();
            own.open.clear();
        }
        if self.faults.skewed && self.random.once_in(20_000) {
            let step = self.random.below(20_000) as i64;
            let which = self.random.below(self.isolates.len() as u64) as usize;
            // Back by any amount, or forward: both end a lease, or make it seem older.
            let back = self.random.once_in(2);
            let own = &mut self.isolates[which];
            own.skew += if back { -step - 11_000 } else { step };
            let _ = now;
        }
    }

    fn hit(&mut self, isolate: usize, cost: u64, now: u64) {
        let own = &mut self.isolates[isolate];
        let time = own.clock(now);
        let denied = || own.holder.denied(KEY, cost, time);
        let step = match self.leases {
            true => own.holder.hit(KEY, cost, time),
            false => denied().map_or(Step::Ask, |decision| Step::Decided { decision, renewal: None }),
        };
        match step {
            Step::Decided { decision, renewal } => {
                if decision.allowed {
                    self.uses.push((now, cost));
                }
                if let Some(report) = renewal {
                    self.send(isolate, 0, Some(report), false, now);
                }
            }
            Step::Ask => self.send(isolate, cost, None, false, now),
            Step::Renew(report) => self.send(isolate, cost, Some(report), false, now),
            Step::Wait => {
                self.number += 1;
                let (waiting, life) = (self.number, own.life);
                own.waiting.push((waiting, cost));
                self.at(now + RENEWAL_WAIT, Event::StopWaiting { isolate, life, waiting, cost });
            }
        }
    }

    fn send(&mut self, isolate: usize, cost: u64, report: Option<Report>, gives_back: bool, now: u64) {
        self.number += 1;
        self.messages += 1;
        let (number, own) = (self.number, &mut self.isolates[isolate]);
        own.open.push(number);
        let message = Message { number, isolate, life: own.life, cost, report, sent_at: own.clock(now), gives_back };
        self.at(now + TIMEOUT, Event::TimeOut(message.clone()));
        if !self.random.once_in(self.faults.lost) {
            let late = if self.random.once_in(self.faults.late) { self.random.below(6_000) } else { 0 };
            let delay = 1 + self.random.below(15) + late;
            self.at(now + delay, Event::Arrive(message));
        }
    }

    fn arrive(&mut self, message: Message, now: u64) {
        let operation = match &message.report {
            None => Operation::Hit { cost: message.cost },
            Some(Report { id, used, size, ttl }) => {
                let renewal = Renewal { id: *id, used: *used, size: *size, ttl: *ttl, random: message.number.into() };
                Operation::Lease { cost: message.cost, renewal }
            }
        };
        let policies = self.policies.clone();
        let request = Request { operation, settles: &[], policies: &policies, credit: self.credit };
        let reply = self.account.apply(request, now).unwrap();
        self.record_start(now);
        let (decision, open, lease) = match reply {
            Reply::Decision { decision, open } => (decision, open, None),
            Reply::Leased { decision, open, lease } => (decision, open, lease),
            other => panic!("{other:?}"),
        };
        if self.credit && !self.has_timer {
            self.has_timer = true;
            self.at(now + super::credit::QUIET, Event::ReturnCredit);
        }
        let reply = HolderReply { cost: message.cost, decision, certain: open.lasts(), lease };
        // The object counted it, whether or not its reply arrives.
        if decision.allowed && message.cost > 0 {
            self.uses.push((now, message.cost));
        }
        if self.random.once_in(self.faults.lost) || self.random.once_in(self.faults.cancelled) {
            return;
        }
        let late = if self.random.once_in(self.faults.late) { self.random.below(6_000) } else { 0 };
        let delay = 1 + self.random.below(15) + late;
        self.at(now + delay, Event::Reply { message, reply });
    }

    /// Records the starts of windows that a key's own hits start.
    fn record_start(&mut self, now: u64) {
        if let Some(start) = self.account.first_number().map(|start| start as u64)
            && (start..start + self.scale).contains(&now)
            && self.starts.last() != Some(&start)
        {
            self.starts.push(start);
        }
    }

    fn receive(&mut self, message: Message, reply: HolderReply, now: u64) {
        let Message { number, isolate, life, cost, ref report, sent_at, gives_back } = message;
        let own = &mut self.isolates[isolate];
        let Some(at) = own.open.iter().position(|&open| open == number).filter(|_| own.life == life) else { return };
        own.open.swap_remove(at);
        let time = own.clock(now);
        if gives_back {
            return;
        }
        own.holder.replied(KEY, reply, report.is_some(), sent_at, time);
        if cost > 0 && !reply.decision.allowed && own.holder.spend(KEY, cost, time).is_some() {
            self.uses.push((now, cost));
        }
        if report.is_some() {
            if let Some(lease) = reply.lease.filter(|_| !self.random.once_in(10)) {
                self.at(now + lease.life * 9 / 10, Event::GiveBack { isolate, life, sent_at });
            }
            self.serve_waiting(isolate, now);
        }
    }

    fn serve_waiting(&mut self, isolate: usize, now: u64) {
        for (_, cost) in core::mem::take(&mut self.isolates[isolate].waiting) {
            let own = &mut self.isolates[isolate];
            let time = own.clock(now);
            if own.holder.spend(KEY, cost, time).is_some() {
                self.uses.push((now, cost));
            } else {
                self.send(isolate, cost, None, false, now);
            }
        }
    }

    fn time_out(&mut self, message: &Message, now: u64) {
        let own = &mut self.isolates[message.isolate];
        let Some(at) = own.open.iter().position(|&open| open == message.number).filter(|_| own.life == message.life)
        else {
            return;
        };
        own.open.swap_remove(at);
        if message.report.is_some() && !message.gives_back {
            own.holder.failed(KEY);
            self.serve_waiting(message.isolate, now);
        }
    }

    fn admitted(&self) -> u64 {
        self.uses.iter().map(|&(_, cost)| cost).sum()
    }

    fn writes(&self) -> u64 {
        self.writes_before + self.account.row.writes
    }
}

/// Fails if more of a key was used than its policy allows.
fn check(policy: &Policy, world: &World) {
    let mut uses = world.uses.clone();
    uses.sort_unstable();
    let (limit, scale) = (u128::from(policy.limit()), policy.scale());
    let within = |from: u64, to: u64| {
        let (first, last) = (uses.partition_point(|&(at, _)| at < from), uses.partition_point(|&(at, _)| at < to));
        uses[first..last.max(first)].iter().map(|&(_, cost)| u128::from(cost)).sum::<u128>()
    };
    match policy.algorithm() {
        "fix_window" => {
            let windows: std::collections::BTreeSet<u64> = uses.iter().map(|(at, _)| at - at % scale).collect();
            for start in windows {
                assert!(within(start, start + scale) <= limit, "{policy:?} from {start}");
            }
        }
        "fix_window_per_key" => {
            let mut edges = vec![0];
            edges.extend(world.starts.iter().flat_map(|&start| [start, start + scale]));
            edges.push(u64::MAX);
            for edge in edges.windows(2).filter(|edge| edge[0] < edge[1]) {
                assert!(within(edge[0], edge[1]) <= limit, "{policy:?} from {edge:?}");
            }
        }
        "sliding_window" => {
            let (mut first, mut sum) = (0, 0);
            for &(at, cost) in &uses {
                sum += u128::from(cost);
                while uses[first].0 + scale <= at {
                    sum -= u128::from(uses[first].1);
                    first += 1;
                }
                assert!(sum <= limit, "{policy:?} at {at}: {sum}");
            }
        }
        "sliding_counter" => {
            let (mut start, mut previous, mut current) = (0, 0_u128, 0_u128);
            for &(at, cost) in &uses {
                let window = at - at % scale;
                if window != start {
                    previous = if window == start + scale { current } else { 0 };
                    (start, current) = (window, 0);
                }
                current += u128::from(cost);
                let weighted = previous * u128::from(scale - (at - window)) + current * u128::from(scale);
                assert!(weighted <= limit * u128::from(scale), "{policy:?} at {at}");
            }
        }
        _ => {
            // The level of a bucket that the uses fill, in parts of a hit.
            let (rate, mut level, mut last) = (u128::from(policy.rule.rate()), 0_u128, 0);
            for &(at, cost) in &uses {
                level = level.saturating_sub(rate * u128::from(at - last)) + u128::from(cost) * u128::from(scale);
                last = at;
                assert!(level <= limit * u128::from(scale), "{policy:?} at {at}: {level}");
            }
        }
    }
}

/// Returns how much of the same traffic an exact limiter without delays admits.
fn admitted_at_once(policy: &Policy, load: Load, seed: u64) -> u64 {
    let mut ledger = Ledger::new(policy.clone()).unwrap();
    let mut world = World::new(policy, load, Faults::default(), seed, false, false);
    let (mut next, mut admitted) = (START, 0);
    for _ in 0..load.hits {
        if let (Answer::Decision(decision), _) = ledger.apply(Operation::Hit { cost: 1 }, next).unwrap() {
            admitted += u64::from(decision.allowed);
        }
        let gap = 2_000 / load.rate.max(1);
        next += if gap == 0 { u64::from(world.random.below(load.rate) < 1_000) } else { world.random.below(gap + 1) };
    }
    admitted
}

fn free(policy: Policy) -> Policy {
    super::wire::free_by_default(policy).unwrap()
}

/// Policies of every algorithm, of several sizes.
fn policies() -> Vec<Policy> {
    let mut all = Vec::new();
    for (limit, scale) in [(100, 60_000), (800, 5_000), (1_000, 10_000)] {
        all.push(Policy::fix_window(limit, scale).unwrap());
        all.push(Policy::fix_window_per_key(limit, scale).unwrap());
        all.push(Policy::sliding_window(limit, scale).unwrap());
        all.push(Policy::sliding_counter(limit, scale).unwrap());
        all.push(Policy::token_bucket(limit, limit / 10, scale / 10).unwrap());
        all.push(Policy::leaky_bucket(limit, limit / 10, scale / 10).unwrap());
    }
    for limit in [20_000, 100_000] {
        all.push(Policy::fix_window(limit, 10_000).unwrap());
        all.push(Policy::fix_window_per_key(limit, 10_000).unwrap());
        all.push(Policy::sliding_counter(limit, 10_000).unwrap());
        all.push(Policy::token_bucket(limit, limit / 10, 1_000).unwrap());
        all.push(Policy::leaky_bucket(limit, limit / 10, 1_000).unwrap());
    }
    all.into_iter().map(free).collect()
}

#[test]
fn no_more_is_admitted_than_allowed_whatever_fails() {
    let mut hits = 0;
    for (number, policy) in policies().iter().enumerate() {
        for round in 0..16_u64 {
            let seed = number as u64 * 1_000 + round;
            let mut random = Random(seed ^ 0x7041);
            let isolates = [1, 2, 5, 20, 50][random.below(5) as usize];
            let rate = [20, 300, 2_000, 8_000][random.below(4) as usize];
            let load = Load {
                isolates,
                hits: 22_000,
                rate,
                bursts: random.once_in(2),
                largest_cost: if random.once_in(3) { 5 } else { 1 },
            };
            let often = [0, 50, 1_000][random.below(3) as usize];
            let faults = Faults {
                lost: often,
                late: often,
                crashed_object: [0, 200, 5_000][random.below(3) as usize],
                crashed_isolate: [0, 2_000][random.below(2) as usize],
                skewed: random.once_in(2),
                cancelled: often,
            };
            let (credit, leases) = (!random.once_in(4), !random.once_in(5));
            let mut world = World::new(policy, load, faults, seed, credit, leases);
            world.run(load);
            check(policy, &world);
            assert!(world.admitted() > 0);
            hits += load.hits;
        }
    }
    assert!(hits >= 9_000_000, "{hits}");
}

#[test]
fn a_steady_load_gets_nearly_all_that_it_may() {
    for (number, policy) in policies().iter().enumerate() {
        for isolates in [1, 5, 50] {
            let seed = number as u64 + 31 * isolates;
            // Half more than the policy allows in the long run, and a little less.
            let period = policy.rule.period().max(1);
            for percent in [90, 150] {
                let rate = (policy.limit() * 10 * percent / period).clamp(1, 20_000);
                // Three periods, so that the amount leased when the traffic ends weighs little.
                let hits = (3 * rate * period / 1_000).clamp(20_000, 150_000);
                let load = Load { isolates, hits, rate, bursts: false, largest_cost: 1 };
                let mut world = World::new(policy, load, Faults::default(), seed, true, true);
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
    let policy = free(Policy::fix_window(100_000, "1m").unwrap());
    let load = Load { isolates: 1, hits: 20_000, rate: 200, bursts: false, largest_cost: 1 };
    let mut world = World::new(&policy, load, Faults::default(), 7, true, true);
    world.run(load);
    check(&policy, &world);
    assert_eq!(world.admitted(), 20_000);
    assert!(world.messages < 20_000 / 50 && world.writes() < 20_000 / 200, "{} {}", world.messages, world.writes());
}

#[test]
fn a_cold_key_and_one_near_its_limit_ask_for_every_hit() {
    let policy = free(Policy::fix_window(100_000, "1m").unwrap());
    let cold = Load { isolates: 3, hits: 2_000, rate: 1, bursts: false, largest_cost: 1 };
    let mut world = World::new(&policy, cold, Faults::default(), 7, false, true);
    world.run(cold);
    let mut plain = World::new(&policy, cold, Faults::default(), 7, false, false);
    plain.run(cold);
    // Two hits of an isolate within a second are rare, and a lease of two saves a message.
    assert!(world.messages.abs_diff(plain.messages) * 100 <= plain.messages, "{}", world.messages);

    let near = free(Policy::fix_window(15, "1m").unwrap());
    let load = Load { isolates: 3, hits: 2_000, rate: 300, bursts: false, largest_cost: 1 };
    let run = |leases| {
        let mut world = World::new(&near, load, Faults::default(), 7, false, leases);
        world.run(load);
        (world.uses, world.messages)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_cold_key_and_one_near_its_limit_write_every_allowed_hit() {
    let rows = |policy: Policy, pause: u64, credit: bool| {
        let disk = Disk { row: None, writes: 0, random: Random(7) };
        let mut account = Account::stored_in(disk, String::new());
        let policies = super::wire::json_of(&Policies::from(free(policy))).unwrap();
        for number in 0..50 {
            let operation = Operation::Hit { cost: 1 };
            let request = Request { operation, settles: &[], policies: policies.get(), credit };
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
