//! A simulation of isolates that hold leases, and of an object with credit that crashes: never more is admitted than the
//! policy's definition allows, whatever is lost, late or skewed.
//!
//! Time is the object's. A use counts when it is decided: at the object for a hit that asks it, in the isolate for one
//! that a lease covers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wasm_bindgen::JsValue;

use super::account::{Account, Request};
use super::codec;
use super::object_error::ObjectError;
use super::row::{LoadError, Storage};
use super::states::States;
use super::wire::Reply;
use crate::lease::holder::{Holder, Reply as HolderReply, Report, Step};
use crate::{Answer, Costs, Ledger, Operation, Policies, Policy, Renewal, ReservationId, Settlement};

/// The key, as a holder knows it under each plan.
const KEYS: [&str; 4] = ["0 key", "1 key", "2 key", "3 key"];
const START: u64 = 1_800_000_000_000;

/// How long an isolate waits for an object, and for another request's renewal.
const TIMEOUT: u64 = 2_000;
const PATIENCE: u64 = 50;

/// How far the object's clock steps back at the most, in all.
const MOST_BACK: u64 = 3_000;

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

/// A row that outlives the object.
struct Disk {
    row: Option<Vec<u8>>,
    writes: u64,
    random: Random,
    /// How often it fails: once in so many times.
    broken: u64,
}

impl Disk {
    fn fails(&mut self) -> bool {
        let broken = self.broken;
        self.random.once_in(broken)
    }
}

impl Storage for Disk {
    fn load(&mut self) -> Result<States, LoadError> {
        if self.fails() {
            return Err(LoadError::Platform(JsValue::NULL));
        }
        let states = |bytes: &Vec<u8>| codec::decode(bytes).map(|stored| stored.states);
        self.row.as_ref().map_or(Ok(States::default()), states).map_err(LoadError::Unreadable)
    }

    fn save(&mut self, states: &States, _: u64) -> Result<(), ObjectError> {
        // Before it has written, or after that.
        let fails = [self.fails(), self.fails()];
        if !fails[0] {
            self.row = if states.0.is_empty() { None } else { Some(codec::encode(1, states)) };
            self.writes += 1;
        }
        if fails.contains(&true) { Err(ObjectError::Platform(JsValue::NULL)) } else { Ok(()) }
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

/// What goes wrong: each once in so many times, or never if 0.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: u64,
    late: u64,
    crashed_object: u64,
    crashed_isolate: u64,
    /// Whether the clocks of isolates differ, step and drift.
    skewed: bool,
    /// A request that renews is cancelled, and nobody is told of its reply.
    cancelled: u64,
    /// The platform sends a message once more, some time after the object did what it said.
    repeated: u64,
    /// The storage fails.
    broken: u64,
    /// The object's clock steps back a little.
    stepped: u64,
    /// The alarm rings.
    alarm: u64,
    /// Someone reserves, and settles or does not.
    reserved: u64,
    /// How much slower or faster the clocks of isolates run, in millionths at the most; 2,000 if 0.
    drift: u64,
}

/// What traffic there is.
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

/// Something that happens later.
enum Event {
    /// A request reaches an isolate.
    Hit { cost: u64 },
    /// Someone settles a reservation for less than it is.
    Settle { plan: usize, id: ReservationId, used: u64 },
    /// A message reaches the object.
    Arrive(Message),
    /// The object's reply reaches the isolate.
    Answer { message: Message, said: HolderReply, counted_at: u64 },
    /// An isolate gives a message up.
    GiveUp(Message),
    /// A request has waited for another's renewal for long enough.
    Impatient { isolate: usize, life: u64, plan: usize, waiting: u64, cost: u64 },
    /// The timer of a lease.
    Return { isolate: usize, life: u64, plan: usize, asked: u64 },
    /// The object is asked whether it has gone quiet.
    Rest,
}

#[derive(Clone)]
struct Message {
    number: u64,
    isolate: usize,
    /// Which life of the isolate sent it.
    life: u64,
    plan: usize,
    cost: u64,
    report: Option<Report>,
    /// By the isolate's clock.
    asked: u64,
    gives_back: bool,
    /// Whether the platform may send it once more.
    repeats: bool,
}

/// Policies that are one decision.
struct Plan {
    json: String,
    /// Which of all policies they are.
    positions: Vec<usize>,
}

/// A use, under a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    at: u64,
    cost: u64,
    plan: usize,
}

struct Isolate {
    holder: Holder,
    life: u64,
    /// How its clock differs from the object's.
    skew: i64,
    /// How much slower or faster it runs, in millionths.
    drift: i64,
    /// The plan, the number and the cost of each hit that waits.
    waiting: Vec<(usize, u64, u64)>,
    /// The messages under way.
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
    plans: Vec<Plan>,
    account: Account<Disk>,
    isolates: Vec<Isolate>,
    events: BinaryHeap<(Reverse<(u64, u64)>, usize)>,
    bodies: Vec<Option<Event>>,
    free: Vec<usize>,
    number: u64,
    uses: Vec<Use>,
    starts: Vec<u64>,
    scale: u64,
    /// How far the object's clock has stepped back.
    behind: u64,
    /// The latest time that it showed.
    latest: u64,
    resting: bool,
    messages: u64,
    writes_before: u64,
    credit: bool,
    leases: bool,
}

impl World {
    fn new(policy: &Policy, load: Load, faults: Faults, seed: u64, credit: bool, leases: bool) -> Self {
        let plan = Plan::new(&[(0, policy)]);
        Self::with_plans(vec![plan], policy.scale(), load, faults, seed, credit, leases)
    }

    /// Makes a world in which each hit is under one of several plans. `scale` is that of the first policy.
    fn with_plans(
        plans: Vec<Plan>,
        scale: u64,
        load: Load,
        faults: Faults,
        seed: u64,
        credit: bool,
        leases: bool,
    ) -> Self {
        let mut random = Random(seed);
        let drift = if faults.drift > 0 { faults.drift } else { 2_000 };
        let isolates = (0..load.isolates)
            .map(|_| Isolate {
                holder: new_holder(),
                life: 0,
                skew: if faults.skewed { random.below(600_000) as i64 - 300_000 } else { 0 },
                drift: if faults.skewed { random.below(2 * drift) as i64 - drift as i64 } else { 0 },
                waiting: Vec::new(),
                open: Vec::new(),
            })
            .collect();
        let disk = Disk { row: None, writes: 0, random: Random(seed ^ 0xd15c), broken: faults.broken };
        Self {
            random,
            faults,
            plans,
            account: Account::stored_in(disk, String::new()),
            isolates,
            events: BinaryHeap::new(),
            bodies: Vec::new(),
            free: Vec::new(),
            number: 0,
            uses: Vec::new(),
            starts: Vec::new(),
            scale,
            behind: 0,
            latest: 0,
            resting: false,
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
            self.happen(event, now);
        }
    }

    fn happen(&mut self, event: Event, now: u64) {
        self.go_wrong(now);
        match event {
            Event::Hit { cost } => {
                let isolate = self.random.below(self.isolates.len() as u64) as usize;
                let plans = self.plans.len() as u64;
                let plan = if plans > 1 { self.random.below(plans) as usize } else { 0 };
                self.hit(isolate, plan, cost, now);
            }
            Event::Settle { plan, id, used } => self.settle(plan, id, used, now),
            Event::Arrive(message) => self.arrive(message, now),
            Event::Answer { message, said, counted_at } => self.answer(message, said, counted_at, now),
            Event::GiveUp(message) => self.give_up(&message, now),
            Event::Impatient { isolate, life, plan, waiting, cost } => {
                let own = &mut self.isolates[isolate];
                if let Some(at) = own.waiting.iter().position(|&(_, known, _)| known == waiting && own.life == life) {
                    own.waiting.remove(at);
                    self.send(isolate, plan, cost, None, false, now);
                }
            }
            Event::Return { isolate, life, plan, asked } => {
                let own = &mut self.isolates[isolate];
                let time = own.clock(now);
                if own.life == life
                    && let Some(report) = own.holder.give_back(KEYS[plan], asked, time)
                {
                    self.send(isolate, plan, 0, Some(report), true, now);
                }
            }
            Event::Rest => {
                // What fails is forgotten, as after a crash.
                self.resting = self.account.return_credit(now - self.behind).unwrap_or(false);
                if self.resting {
                    self.at(now + super::credit::QUIET, Event::Rest);
                }
            }
        }
    }

    fn go_wrong(&mut self, now: u64) {
        if self.random.once_in(self.faults.crashed_object) {
            let row = core::mem::take(&mut self.account.row.row);
            let random = Random(self.random.next());
            self.writes_before += self.account.row.writes;
            let broken = self.faults.broken;
            self.account = Account::stored_in(Disk { row, writes: 0, random, broken }, String::new());
            self.resting = false;
        }
        self.latest = self.latest.max(now - self.behind);
        if self.random.once_in(self.faults.stepped) {
            let step = self.random.below(300);
            // By more than a period it is a wrong reading, which a key need not follow.
            self.behind += if now - self.behind + MOST_BACK > self.latest + step { step } else { 0 };
        }
        if self.random.once_in(self.faults.alarm)
            && self.account.expire(now - self.behind).is_ok_and(|expired| expired.empty)
        {
            self.account.row.row = None;
        }
        if self.random.once_in(self.faults.reserved) {
            self.reserve(now);
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
        }
    }

    /// Does an operation at the object; `None` if the storage failed.
    fn apply(&mut self, plan: usize, operation: Operation<'_>, now: u64) -> Option<Reply> {
        let request = Request { operation, settles: &[], policies: &self.plans[plan].json, credit: self.credit };
        match self.account.apply(request, now - self.behind) {
            Ok(reply) => Some(reply),
            Err(ObjectError::Platform(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Reserves some; a part of it is used, and that is settled before or after its end, or never.
    fn reserve(&mut self, now: u64) {
        let plan = self.random.below(self.plans.len() as u64) as usize;
        let (cost, ttl) = (1 + self.random.below(20), 1 + self.random.below(3_000));
        let random = u128::from(self.random.next());
        let operation = Operation::Reserve { costs: Costs::All(cost), ttl: Some(ttl), random };
        let Some(Reply::Reserved { id: Some(id), .. }) = self.apply(plan, operation, now) else { return };
        let (used, after) = (self.random.below(cost + 1), self.random.below(ttl));
        let late = if self.random.once_in(4) { 2 * ttl } else { 0 };
        self.uses.push(Use { at: now + after, cost: used, plan });
        self.at(now + after + late, Event::Settle { plan, id, used });
    }

    fn settle(&mut self, plan: usize, id: ReservationId, used: u64, now: u64) {
        let operation = Operation::Settle { id, used: Some(Costs::All(used)) };
        match self.apply(plan, operation, now) {
            None | Some(Reply::Settled { settlement: Settlement::Settled | Settlement::Expired, .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    fn hit(&mut self, isolate: usize, plan: usize, cost: u64, now: u64) {
        let own = &mut self.isolates[isolate];
        let time = own.clock(now);
        let denied = || own.holder.denied(KEYS[plan], cost, time);
        let step = match self.leases {
            true => own.holder.hit(KEYS[plan], cost, time),
            false => denied().map_or(Step::Ask, |decision| Step::Decided { decision, renewal: None }),
        };
        match step {
            Step::Decided { decision, renewal } => {
                assert!(decision.remaining <= decision.limit);
                if decision.allowed {
                    self.uses.push(Use { at: now, cost, plan });
                }
                if let Some(report) = renewal {
                    self.send(isolate, plan, 0, Some(report), false, now);
                }
            }
            Step::Ask => self.send(isolate, plan, cost, None, false, now),
            Step::Renew(report) => self.send(isolate, plan, cost, Some(report), false, now),
            Step::Wait => {
                self.number += 1;
                let (waiting, life) = (self.number, own.life);
                own.waiting.push((plan, waiting, cost));
                self.at(now + PATIENCE, Event::Impatient { isolate, life, plan, waiting, cost });
            }
        }
    }

    fn send(&mut self, isolate: usize, plan: usize, cost: u64, report: Option<Report>, gives_back: bool, now: u64) {
        self.number += 1;
        self.messages += 1;
        let (number, own) = (self.number, &mut self.isolates[isolate]);
        own.open.push(number);
        let (life, asked) = (own.life, own.clock(now));
        let message = Message { number, isolate, life, plan, cost, report, asked, gives_back, repeats: true };
        self.at(now + TIMEOUT, Event::GiveUp(message.clone()));
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
                // The object draws it anew for a message that is repeated.
                let random = u128::from(message.number) << 1 | u128::from(message.repeats);
                let renewal = Renewal { id: *id, used: *used, size: *size, ttl: *ttl, random };
                Operation::Lease { cost: message.cost, renewal }
            }
        };
        let Some(reply) = self.apply(message.plan, operation, now) else {
            // The isolate hears of it at once.
            let delay = 1 + self.random.below(15);
            self.at(now + delay, Event::GiveUp(message));
            return;
        };
        self.note_start(now - self.behind);
        let (decision, open, lease) = match reply {
            Reply::Decision { decision, open } => (decision, open, None),
            Reply::Leased { decision, open, lease } => (decision, open, lease),
            other => panic!("{other:?}"),
        };
        if self.credit && !self.resting {
            self.resting = true;
            self.at(now + super::credit::QUIET, Event::Rest);
        }
        let said = HolderReply { cost: message.cost, decision, certain: open.lasts(), lease };
        // The object counted it, whether or not its reply arrives.
        if decision.allowed && message.cost > 0 {
            self.uses.push(Use { at: now, cost: message.cost, plan: message.plan });
        }
        assert!(decision.remaining <= decision.limit);
        if message.repeats && self.random.once_in(self.faults.repeated) {
            // The first reply was lost.
            let after = 1 + self.random.below(if self.random.clone().once_in(2) { 20 } else { 3_000 });
            self.at(now + after, Event::Arrive(Message { repeats: false, ..message }));
            return;
        }
        if self.random.once_in(self.faults.lost) || self.random.once_in(self.faults.cancelled) {
            return;
        }
        let late = if self.random.once_in(self.faults.late) { self.random.below(6_000) } else { 0 };
        let delay = 1 + self.random.below(15) + late;
        self.at(now + delay, Event::Answer { message, said, counted_at: now });
    }

    /// Notes when a key's own windows start.
    fn note_start(&mut self, now: u64) {
        if let Some(start) = self.account.first_number().map(|start| start as u64)
            && (start..start + self.scale).contains(&now)
            && self.starts.last() != Some(&start)
        {
            self.starts.push(start);
        }
    }

    fn answer(&mut self, message: Message, said: HolderReply, _: u64, now: u64) {
        let Message { number, isolate, life, plan, cost, ref report, asked, gives_back, .. } = message;
        let own = &mut self.isolates[isolate];
        let Some(at) = own.open.iter().position(|&open| open == number).filter(|_| own.life == life) else { return };
        own.open.swap_remove(at);
        let time = own.clock(now);
        if gives_back {
            return;
        }
        own.holder.replied(KEYS[plan], said, report.is_some(), asked, time);
        if cost > 0 && !said.decision.allowed && own.holder.spend(KEYS[plan], cost, time).is_some() {
            self.uses.push(Use { at: now, cost, plan });
        }
        if report.is_some() {
            if let Some(lease) = said.lease.filter(|_| !self.random.once_in(10)) {
                self.at(now + lease.life * 9 / 10, Event::Return { isolate, life, plan, asked });
            }
            self.serve_waiting(isolate, plan, now);
        }
    }

    fn serve_waiting(&mut self, isolate: usize, plan: usize, now: u64) {
        let waiting = &mut self.isolates[isolate].waiting;
        for (_, _, cost) in waiting.extract_if(.., |(of, ..)| *of == plan).collect::<Vec<_>>() {
            let own = &mut self.isolates[isolate];
            let time = own.clock(now);
            if own.holder.spend(KEYS[plan], cost, time).is_some() {
                self.uses.push(Use { at: now, cost, plan });
            } else {
                self.send(isolate, plan, cost, None, false, now);
            }
        }
    }

    fn give_up(&mut self, message: &Message, now: u64) {
        let own = &mut self.isolates[message.isolate];
        let Some(at) = own.open.iter().position(|&open| open == message.number).filter(|_| own.life == message.life)
        else {
            return;
        };
        own.open.swap_remove(at);
        if message.report.is_some() && !message.gives_back {
            own.holder.failed(KEYS[message.plan]);
            self.serve_waiting(message.isolate, message.plan, now);
        }
    }

    fn admitted(&self) -> u64 {
        self.uses.iter().map(|own| own.cost).sum()
    }

    fn writes(&self) -> u64 {
        self.writes_before + self.account.row.writes
    }
}

impl Plan {
    /// Makes a plan of policies, each with its position among all.
    fn new(policies: &[(usize, &Policy)]) -> Self {
        let list: Vec<Policy> = policies.iter().map(|&(_, policy)| policy.clone()).collect();
        let json = super::wire::json_of(&Policies::new(list).unwrap()).unwrap().get().to_string();
        Self { json, positions: policies.iter().map(|&(position, _)| position).collect() }
    }
}

/// Fails if the uses of a key are more than its policy's definition allows.
fn check(policy: &Policy, world: &World) {
    check_at(0, policy, world);
}

/// Fails if the uses under the plans that a policy is in are more than its definition allows.
fn check_at(position: usize, policy: &Policy, world: &World) {
    let is_counted = |own: &&Use| world.plans[own.plan].positions.contains(&position);
    let mut uses: Vec<(u64, u64)> = world.uses.iter().filter(is_counted).map(|own| (own.at, own.cost)).collect();
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
            // What a bucket holds of the uses, in parts of a hit.
            let (rate, mut level, mut last) = (u128::from(policy.rule.rate()), 0_u128, 0);
            for &(at, cost) in &uses {
                level = level.saturating_sub(rate * u128::from(at - last)) + u128::from(cost) * u128::from(scale);
                last = at;
                assert!(level <= limit * u128::from(scale), "{policy:?} at {at}: {level}");
            }
        }
    }
}

/// Returns what one exact limiter admits of the same traffic, asked without delay.
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
                ..Faults::default()
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
                // Three periods: what is leased when the traffic ends is no use to anyone.
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
        let disk = Disk { row: None, writes: 0, random: Random(7), broken: 0 };
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

/// Faults of every kind, each more or less often; and traffic.
fn anything(random: &mut Random) -> (Load, Faults) {
    let mut one_of = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
    let load = Load {
        isolates: one_of(&[1, 2, 5, 20]),
        hits: 12_000,
        rate: one_of(&[300, 2_000, 8_000]),
        bursts: one_of(&[0, 1]) > 0,
        largest_cost: one_of(&[1, 1, 5, 60]),
    };
    let faults = Faults {
        lost: one_of(&[0, 50]),
        late: one_of(&[0, 50]),
        crashed_object: one_of(&[0, 50, 200, 2_000]),
        crashed_isolate: one_of(&[0, 2_000]),
        skewed: one_of(&[0, 1]) > 0,
        cancelled: one_of(&[0, 50]),
        repeated: one_of(&[0, 10, 100]),
        broken: one_of(&[0, 0, 30, 300]),
        stepped: 0,
        alarm: one_of(&[0, 100, 3_000]),
        reserved: one_of(&[0, 100, 1_000]),
        // Less than the margin by which a holder stops before the end.
        drift: 100_000,
    };
    (load, faults)
}

#[test]
fn messages_that_are_repeated_storage_that_fails_and_alarms_admit_no_more() {
    for (number, policy) in policies().iter().enumerate() {
        for round in 0..4_u64 {
            let seed = 1_000_000 + number as u64 * 1_000 + round;
            let (load, faults) = anything(&mut Random(seed ^ 0x7041));
            let mut world = World::new(policy, load, faults, seed, true, round != 3);
            world.run(load);
            check(policy, &world);
            assert!(world.admitted() > 0);
        }
    }
}

#[test]
fn an_object_whose_clock_steps_back_admits_no_more() {
    // Time is true here, so only policies without windows of the clock have an oracle.
    let has_no_window =
        |policy: &&Policy| !policy.algorithm().contains("fix") && !policy.algorithm().contains("counter");
    for (number, policy) in policies().iter().filter(has_no_window).enumerate() {
        for round in 0..8_u64 {
            let seed = 2_000_000 + number as u64 * 1_000 + round;
            let (load, faults) = anything(&mut Random(seed ^ 0x7041));
            let stepped = [100, 1_000, 5_000][round as usize % 3];
            // Those who reserve do not know of the object's clock.
            let faults = Faults { stepped, reserved: 0, ..faults };
            let mut world = World::new(policy, load, faults, seed, true, true);
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
        // The windows of a key are known of the first policy alone.
        while second.algorithm() == "fix_window_per_key" {
            (first, second) = (named("first", &second), any("second"));
        }
        let (load, faults) = anything(&mut random);
        let plan = Plan::new(&[(0, &first), (1, &second)]);
        let mut world = World::with_plans(vec![plan], first.scale(), load, faults, seed, true, true);
        world.run(load);
        check_at(0, &first, &world);
        check_at(1, &second, &world);
    }
}

#[test]
fn several_plans_on_one_key_each_hold_also_when_a_limit_changes() {
    let all: Vec<Policy> = policies().into_iter().filter(|policy| policy.algorithm() != "fix_window_per_key").collect();
    for round in 0..60_u64 {
        let seed = 4_000_000 + round;
        let mut random = Random(seed ^ 0x7041);
        let mut any = |name| all[random.below(all.len() as u64) as usize].clone().named(name).unwrap();
        let (first, second) = (any("first"), any("second"));
        // A deploy is under way: some have a lower limit, under which no more is admitted than under the higher one.
        let lower = match first.algorithm() {
            "fix_window" => free(Policy::fix_window(first.limit() / 2, first.scale()).unwrap()).named("first").unwrap(),
            "sliding_counter" => {
                free(Policy::sliding_counter(first.limit() / 2, first.scale()).unwrap()).named("first").unwrap()
            }
            _ => first.clone(),
        };
        let plans = vec![
            Plan::new(&[(0, &first)]),
            Plan::new(&[(0, &first), (1, &second)]),
            Plan::new(&[(1, &second)]),
            Plan::new(&[(0, &lower)]),
        ];
        let (load, faults) = anything(&mut random);
        let mut world = World::with_plans(plans, first.scale(), load, faults, seed, true, true);
        world.run(load);
        check_at(0, &first, &world);
        check_at(1, &second, &world);
    }
}

/// An account with credit, and what it is asked.
struct Teller {
    account: Account<Disk>,
    policies: String,
}

impl Teller {
    /// Makes an account that has credit by now, at [`START`].
    fn with_credit(policy: Policy) -> Self {
        let policies = super::wire::json_of(&Policies::from(free(policy))).unwrap().get().to_string();
        let disk = Disk { row: None, writes: 0, random: Random(7), broken: 0 };
        let mut own = Self { account: Account::stored_in(disk, String::new()), policies };
        while own.account.row.writes < 8 {
            own.hit(START);
        }
        own
    }

    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Reply {
        let request = Request { operation, settles: &[], policies: &self.policies, credit: true };
        self.account.apply(request, now).unwrap()
    }

    fn hit(&mut self, now: u64) {
        assert!(
            matches!(self.apply(Operation::Hit { cost: 1 }, now), Reply::Decision { decision, .. } if decision.allowed)
        );
    }

    fn lease(&mut self, id: Option<ReservationId>, used: u64, size: u64, now: u64) -> crate::Lease {
        let renewal = Renewal { id, used, size, ttl: 1_000, random: 42 };
        match self.apply(Operation::Lease { cost: 0, renewal }, now) {
            Reply::Leased { lease: Some(lease), .. } => lease,
            other => panic!("{other:?}"),
        }
    }

    fn count(&mut self, now: u64) -> u64 {
        match self.apply(Operation::Get { policy: None }, now) {
            Reply::Number(count) => count,
            other => panic!("{other:?}"),
        }
    }

    fn crash(&mut self) {
        let row = self.account.row.row.take();
        let disk = Disk { row, writes: 0, random: Random(8), broken: 0 };
        self.account = Account::stored_in(disk, String::new());
    }

    /// Returns how many rows an operation writes.
    fn rows(&mut self, operation: impl FnOnce(&mut Self)) -> u64 {
        let before = self.account.row.writes;
        operation(self);
        self.account.row.writes - before
    }
}

#[test]
fn a_report_is_taken_out_of_the_credit() {
    let mut own = Teller::with_credit(Policy::fix_window(10_000, "1h").unwrap());
    let hits = own.count(START);
    let lease = own.lease(None, 0, 600, START);
    // Most of it was spent, and little is left: the row must not have it whole.
    own.lease(Some(lease.id), 590, 1, START);
    own.crash();
    let left = own.lease(Some(lease.id), 5, 1, START).amount;
    assert!(own.count(START) >= hits + 595 + left, "{left}");
}

#[test]
fn a_credit_does_not_cover_what_may_be_used_after_its_end() {
    let second = 1_000;
    let mut own = Teller::with_credit(Policy::sliding_counter(100_000, "1h").unwrap());
    assert_eq!(own.rows(|own| own.hit(START + 29 * second)), 0);
    assert_eq!(own.rows(|own| assert!(own.lease(None, 0, 3, START + 29 * second + 500).amount > 0)), 1);
    // Now there is a credit from then on.
    assert_eq!(own.rows(|own| own.hit(START + 59 * second)), 0);
    assert_eq!(own.rows(|own| own.hit(START + 60 * second)), 1);
}

#[test]
fn a_clock_that_steps_back_ends_a_credit() {
    let mut own = Teller::with_credit(Policy::fix_window(10_000, "1h").unwrap());
    assert_eq!(own.rows(|own| own.hit(START + 5)), 0);
    assert_eq!(own.rows(|own| own.hit(START + 4)), 1);
}

#[test]
fn a_credit_that_was_not_saved_covers_nothing() {
    let mut own = Teller::with_credit(Policy::fix_window(10_000, "1h").unwrap());
    own.account.row.broken = 1;
    let operation = Operation::Inc { policy: None, cost: 1 };
    let request = Request { operation, settles: &[], policies: &own.policies, credit: true };
    assert!(matches!(own.account.apply(request, START), Err(ObjectError::Platform(_))));
    own.account.row.broken = 0;
    assert_eq!(own.rows(|own| own.hit(START)), 1);
}

#[test]
fn a_credit_that_was_written_back_covers_nothing() {
    let mut own = Teller::with_credit(Policy::fix_window(10_000, "1h").unwrap());
    assert_eq!(own.rows(|own| (0..20).for_each(|_| own.hit(START))), 0);
    assert_eq!(own.rows(|own| assert!(!own.account.return_credit(START + 5_000).unwrap())), 1);
    assert_eq!(own.rows(|own| own.hit(START + 5_000)), 1);
}

#[test]
fn a_lease_is_as_old_as_the_question() {
    let mut holder = new_holder();
    for _ in 0..3 {
        holder.hit(KEYS[0], 1, START);
    }
    let Step::Renew(_) = holder.hit(KEYS[0], 5, START) else { panic!("there is no renewal") };
    let id = "0000000000000000000000000000002a.lw.a".parse().unwrap();
    let lease = Some(crate::Lease { id, amount: 50, life: 875, counts_down: false });
    let decision = crate::Decision { allowed: true, limit: 100, remaining: 50, ..crate::Decision::NOTHING };
    holder.replied(KEYS[0], HolderReply { cost: 5, decision, certain: 0, lease }, true, START, START + 600);
    assert!(holder.spend(KEYS[0], 1, START + 874).is_some());
    assert!(holder.spend(KEYS[0], 1, START + 875).is_none());
}
