//! Decisions over several keys: isolates hit the objects of all keys at once, and undo the hits if a key denies.
//!
//! Each request is limited by a key of its own and by one that all share. Messages take a while, and may be lost or come
//! twice; isolates go away in the middle; objects crash.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::START;
use super::random::Random;
use crate::cloudflare::object::in_memory::ObjectInMemory;
use crate::cloudflare::protocol::wire::{Certainty, Reply, json_of};
use crate::{Costs, HitId, MAX_UNDO, Operation, Policies, Policy};

/// How long an isolate waits for a reply, in milliseconds.
const TIMEOUT: u64 = 1_000;

/// How long a key is asked before the others after it denied, in milliseconds.
const LATELY: u64 = 5_000;

/// The key that all requests share.
const SHARED: u64 = 0;

/// What goes wrong, each in so many of a thousand messages.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: u64,
    repeated: u64,
    /// Isolates that go away before they undo.
    gone: u64,
    crashes: u64,
}

/// A request, and what the objects of its keys replied.
#[derive(Clone, Debug)]
struct Request {
    isolate: u64,
    keys: Vec<u64>,
    /// How many of the keys are asked so far. One that denied lately comes first.
    asked: usize,
    sent_at: u64,
    replies: BTreeMap<u64, Replied>,
    is_decided: bool,
}

#[derive(Clone, Copy, Debug)]
struct Replied {
    allowed: bool,
    /// When the object decided.
    at: u64,
    /// How long the denial may be remembered.
    lasts: u64,
    id: Option<HitId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin { request: usize },
    Hit { request: usize, key: u64 },
    Reply { request: usize, key: u64 },
    TimeOut { request: usize },
    Undo { request: usize, key: u64, tries: u64 },
}

struct World {
    now: u64,
    random: Random,
    faults: Faults,
    limits: HashMap<u64, Policy>,
    objects: HashMap<u64, ObjectInMemory>,
    requests: Vec<Request>,
    /// What each object replied to a request, until the reply arrives.
    under_way: HashMap<(usize, u64), Replied>,
    /// Until when each isolate denies a key by itself.
    remembered: HashMap<(u64, u64), u64>,
    /// When each key denied last, and how often in a row, as an isolate knows.
    denied: HashMap<(u64, u64), (u64, u64)>,
    events: BinaryHeap<std::cmp::Reverse<(u64, u64, Event)>>,
    number: u64,
    admitted: Vec<usize>,
}

impl World {
    fn new(limits: impl IntoIterator<Item = (u64, Policy)>, faults: Faults, seed: u64) -> Self {
        Self {
            now: START,
            random: Random(seed),
            faults,
            limits: limits.into_iter().collect(),
            objects: HashMap::new(),
            requests: Vec::new(),
            under_way: HashMap::new(),
            remembered: HashMap::new(),
            denied: HashMap::new(),
            events: BinaryHeap::new(),
            number: 0,
            admitted: Vec::new(),
        }
    }

    fn chance(&mut self, of_a_thousand: u64) -> bool {
        self.random.below(1_000) < of_a_thousand
    }

    fn at(&mut self, time: u64, event: Event) {
        self.number += 1;
        self.events.push(std::cmp::Reverse((time, self.number, event)));
    }

    /// Sends a message, which takes 5 to 25 milliseconds, unless it is lost.
    fn send(&mut self, event: Event) {
        if self.chance(self.faults.lost) {
            return;
        }
        let copies = 1 + u64::from(matches!(event, Event::Undo { .. }) && self.chance(self.faults.repeated));
        for _ in 0..copies {
            let time = self.now + 5 + self.random.below(20);
            self.at(time, event);
        }
    }

    fn request(&mut self, time: u64, isolate: u64, keys: &[u64]) {
        let request = self.requests.len();
        let (keys, replies) = (keys.to_vec(), BTreeMap::new());
        self.requests.push(Request { isolate, keys, asked: 0, sent_at: time, replies, is_decided: false });
        self.at(time, Event::Begin { request });
    }

    fn run(&mut self) {
        while let Some(std::cmp::Reverse((time, _, event))) = self.events.pop() {
            self.now = time;
            match event {
                Event::Begin { request } => self.begin(request),
                Event::Hit { request, key } => self.hit(request, key),
                Event::Reply { request, key } => self.reply(request, key),
                Event::TimeOut { request } => self.decide(request),
                Event::Undo { request, key, tries } => self.undo(request, key, tries),
            }
        }
    }

    fn begin(&mut self, request: usize) {
        let Request { isolate, mut keys, .. } = self.requests[request].clone();
        if keys.iter().any(|key| self.remembered.get(&(isolate, *key)).is_some_and(|until| *until > self.now)) {
            return;
        }
        let worst = |key: &u64| match self.denied.get(&(isolate, *key)) {
            Some((at, in_a_row)) if at + LATELY > self.now => 1 + in_a_row,
            _ => 0,
        };
        keys.sort_by_key(|key| core::cmp::Reverse(worst(key)));
        let asked = if keys.first().map_or(0, worst) > 0 { 1 } else { keys.len() };
        self.requests[request].keys = keys;
        self.ask(request, asked);
    }

    /// Asks the next keys of a request, up to a number of them.
    fn ask(&mut self, request: usize, asked: usize) {
        let own = &mut self.requests[request];
        let before = core::mem::replace(&mut own.asked, asked);
        let keys = own.keys[before..asked].to_vec();
        keys.into_iter().for_each(|key| self.send(Event::Hit { request, key }));
        self.at(self.now + TIMEOUT, Event::TimeOut { request });
    }

    fn apply(&mut self, key: u64, operation: Operation<'_>) -> Reply {
        let crashes = self.chance(self.faults.crashes);
        let object = self.objects.entry(key).or_insert_with(|| ObjectInMemory::new(None));
        if crashes {
            *object = ObjectInMemory::new(object.row().cloned());
        }
        let policies = json_of(&Policies::from(self.limits[&key].clone())).unwrap();
        object.apply(operation, policies.get(), false, self.now).unwrap()
    }

    fn hit(&mut self, request: usize, key: u64) {
        let random = self.random.below(1 << 40) << 20 | request as u64;
        let is_alone = self.requests[request].keys.len() == 1;
        let operation = match is_alone {
            true => Operation::Hit { cost: 1 },
            false => Operation::HitUndoable { costs: Costs::All(1), random },
        };
        let (decision, open, id) = match self.apply(key, operation) {
            Reply::Decision { decision, open } => (decision, open, None),
            Reply::Undoable { decision, open, id } => (decision, open, id),
            other => panic!("{other:?}"),
        };
        assert_eq!(id.is_some(), decision.allowed && !is_alone);
        let lasts = Certainty::lasts(open).min(decision.retry_after.unwrap_or(u64::MAX));
        let replied = Replied { allowed: decision.allowed, at: self.now, lasts, id };
        self.under_way.insert((request, key), replied);
        self.send(Event::Reply { request, key });
    }

    fn reply(&mut self, request: usize, key: u64) {
        let Some(replied) = self.under_way.remove(&(request, key)) else { return };
        let own = &mut self.requests[request];
        if own.is_decided {
            return;
        }
        own.replies.insert(key, replied);
        let isolate = own.isolate;
        match self.denied.get_mut(&(isolate, key)) {
            Some((_, in_a_row)) if replied.allowed => *in_a_row = 0,
            None if replied.allowed => {}
            Some(known) => *known = (self.now, known.1 + 1),
            None => {
                self.denied.insert((isolate, key), (self.now, 1));
            }
        }
        let Request { keys, asked, replies, .. } = own;
        if replies.len() == *asked && *asked < keys.len() && replies.values().all(|replied| replied.allowed) {
            let all = keys.len();
            self.ask(request, all);
        } else if replies.len() == *asked {
            self.decide(request);
        }
    }

    /// Admits a request that all its keys allow, and undoes its hits otherwise.
    fn decide(&mut self, request: usize) {
        let own = &mut self.requests[request];
        if core::mem::replace(&mut own.is_decided, true) {
            return;
        }
        let Request { isolate, sent_at, replies, keys, .. } = own.clone();
        if replies.len() == keys.len() && replies.values().all(|replied| replied.allowed) {
            return self.admitted.push(request);
        }
        let is_gone = self.chance(self.faults.gone);
        for (key, replied) in replies {
            if !replied.allowed {
                let until = self.remembered.entry((isolate, key)).or_default();
                *until = (*until).max(sent_at + replied.lasts);
            } else if !is_gone {
                self.send(Event::Undo { request, key, tries: 0 });
                // As if the reply were lost: it is tried again although it was performed.
                for tries in 1..4 {
                    if self.chance(self.faults.lost + self.faults.repeated) {
                        self.at(self.now + tries * 800, Event::Undo { request, key, tries });
                    }
                }
            }
        }
    }

    fn undo(&mut self, request: usize, key: u64, _: u64) {
        let Some(id) = self.requests[request].replies[&key].id else { return };
        self.apply(key, Operation::Undo { id, costs: Costs::All(1) });
    }

    /// Returns how many requests of some were admitted.
    fn admitted_of(&self, of: impl Fn(&Request) -> bool) -> usize {
        self.admitted.iter().filter(|&&request| of(&self.requests[request])).count()
    }

    /// Checks that no window of a key has more admitted hits than its limit.
    fn check(&self, scale: u64) {
        let mut counts: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for &request in &self.admitted {
            for (key, replied) in &self.requests[request].replies {
                *counts.entry((*key, replied.at / scale)).or_default() += 1;
            }
        }
        for ((key, _), count) in counts {
            assert!(count <= self.limits[&key].limit(), "{count} hits of {key}");
        }
    }
}

/// How many of the requests are admitted that come evenly at the rate of the shared limit, and a part in a thousand more.
fn admitted_at(shared: &Policy, isolates: u64, per_mille: u64, several: bool) -> usize {
    let limits = (1..=40).map(|key| (key, Policy::fix_window(1_000, 1_000).unwrap()));
    let mut world = World::new(limits.chain([(SHARED, shared.clone())]), Faults::default(), isolates);
    let rate = 150 * per_mille / 1_000;
    for number in 0..20 * rate {
        let own = 1 + number % 40;
        let keys: &[u64] = if several { &[SHARED, own] } else { &[SHARED] };
        world.request(START + number * 1_000 / rate, number % isolates, keys);
    }
    world.run();
    world.admitted.len()
}

#[test]
fn a_rule_with_several_keys_admits_as_many_as_a_plain_one() {
    for shared in [
        Policy::fix_window(150, 1_000).unwrap(),
        Policy::sliding_window(150, 1_000).unwrap(),
        Policy::sliding_counter(150, 1_000).unwrap(),
        Policy::token_bucket(150, 150, 1_000).unwrap(),
    ] {
        for isolates in [1, 8, 24] {
            for per_mille in [1_000, 1_500, 3_000] {
                let [several, plain] = [true, false].map(|several| admitted_at(&shared, isolates, per_mille, several));
                assert!(
                    several * 100 >= plain * 95,
                    "{several} of {plain}: {isolates} isolates at {per_mille}, {shared:?}"
                );
            }
        }
    }
}

#[test]
fn a_flood_of_denied_clients_leaves_the_shared_key_to_the_others() {
    const FLOOD: u64 = 1;
    for isolates in [1, 8, 24] {
        for flood in [200, 1_000] {
            let others = (2..=40).map(|key| (key, Policy::fix_window(1_000, 1_000).unwrap()));
            let own = [(FLOOD, Policy::fix_window(5, 1_000).unwrap())];
            let shared = [(SHARED, Policy::fix_window(150, 1_000).unwrap())];
            let mut world = World::new(others.chain(own).chain(shared), Faults::default(), flood);
            for number in 0..20 * 145 {
                world.request(START + number * 1_000 / 145, number % isolates, &[SHARED, 2 + number % 39]);
            }
            for number in 0..20 * flood {
                world.request(START + number * 1_000 / flood, number % isolates, &[SHARED, FLOOD]);
            }
            // And all at once.
            for number in 0..200 {
                world.request(START + 5_000, number % isolates, &[SHARED, FLOOD]);
            }
            world.run();
            world.check(1_000);
            let others = world.admitted_of(|request| !request.keys.contains(&FLOOD));
            assert!(others * 100 >= 95 * 20 * 145, "{others} of 2900 beside {flood} a second, {isolates} isolates");
        }
    }
}

#[test]
fn never_over_and_never_charged_for_ever_whatever_is_lost() {
    let faults = [
        Faults { lost: 50, ..Faults::default() },
        Faults { repeated: 300, ..Faults::default() },
        Faults { gone: 300, crashes: 100, ..Faults::default() },
        Faults { lost: 100, repeated: 300, gone: 100, crashes: 50 },
    ];
    for (seed, faults) in (0..).zip(faults.into_iter().cycle().take(40)) {
        let limits = [(SHARED, 40, 1_000), (1, 9, 1_000), (2, 25, 1_000), (3, 30, 1_000)];
        let limits = limits.map(|(key, limit, scale)| (key, Policy::fix_window(limit, scale).unwrap()));
        let mut world = World::new(limits, faults, seed);
        for _ in 0..600 {
            let (time, isolate, key) =
                (START + world.random.below(5_000), world.random.below(5), 1 + world.random.below(3));
            world.request(time, isolate, &[SHARED, key]);
        }
        world.run();
        world.check(1_000);
        assert!(!world.admitted.is_empty());
        world.now += MAX_UNDO + 1_000;
        for key in [SHARED, 1, 2, 3] {
            assert_eq!(world.apply(key, Operation::ExpiresAt { policy: None }), Reply::Number(0));
            assert_eq!(world.apply(key, Operation::Get { policy: None }), Reply::Number(0));
        }
    }
}
