//! Every charge of a bucket brings its rate: whatever charges, and under whichever numbers, no more passes than the capacity of
//! the call that let it pass, and what flows meanwhile.
//!
//! Checked on the list of what passed and of what was charged, not on states. Each takes the numbers of a call with it. A
//! bucket flows at the rate of its last charge, or at that of a call that looks at it since, whichever is faster.

use proptest::prelude::*;
use tollgate::{
    Answer, Costs, Denied, Exception, Limiter, ManualClock, Operation, Options, Policies, Record, Renewal,
    ReservationId, Reserve, step,
};

use crate::support::*;

const SECOND: u64 = 1_000;

/// The numbers of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    capacity: u64,
    rate: u64,
}

impl Numbers {
    fn policies(self, kind: Kind) -> Policies {
        let Self { capacity, rate } = self;
        Spec { kind, limit: capacity, scale: SECOND, rate, denied: Denied::Free }.policy().into()
    }
}

/// A key as a store keeps it, which drops a record at its end.
struct Stored {
    kind: Kind,
    text: Option<String>,
    ends: u64,
}

impl Stored {
    fn new(kind: Kind) -> Self {
        Self { kind, text: None, ends: 0 }
    }

    fn apply(&mut self, numbers: Numbers, operation: Operation<'_>, now: u64) -> Answer {
        if self.ends <= now {
            self.text = None;
        }
        let record: Option<Record> = self.text.as_deref().map(|text| serde_json::from_str(text).unwrap());
        let stepped = step(&numbers.policies(self.kind), record.as_ref(), operation, now).unwrap();
        if stepped.changed {
            self.text = stepped.record.map(|record| serde_json::to_string(&record).unwrap());
            self.ends = stepped.expires_at;
        }
        stepped.answer
    }
}

/// Something that passed, or that was charged.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A call of these numbers let a cost pass.
    Passed,
    Charged,
}

#[derive(Clone, Copy, Debug)]
struct Noted {
    event: Event,
    time: u64,
    cost: u64,
    numbers: Numbers,
}

/// A reservation or a lease that is open.
#[derive(Clone, Debug)]
struct Open {
    /// What of the history passed by it.
    passed: Vec<usize>,
    id: ReservationId,
    end: u64,
    amount: u64,
    numbers: Numbers,
    is_lease: bool,
}

/// The history of a key.
#[derive(Default)]
struct History {
    noted: Vec<Noted>,
    open: Vec<Open>,
    made: u128,
}

impl History {
    fn note(&mut self, event: Event, cost: u64, numbers: Numbers, time: u64) {
        if cost > 0 {
            self.noted.push(Noted { event, time, cost, numbers });
        }
    }

    /// A call that was charged at once.
    fn pass(&mut self, cost: u64, numbers: Numbers, now: u64) {
        self.note(Event::Passed, cost, numbers, now);
        self.note(Event::Charged, cost, numbers, now);
    }

    /// Takes back what a reservation let pass and was not used: of what passed last first.
    fn give_back(&mut self, open: &Open, mut amount: u64) {
        for &index in open.passed.iter().rev() {
            let given = amount.min(self.noted[index].cost);
            self.noted[index].cost -= given;
            amount -= given;
        }
    }

    /// Charges what has expired, each at its end, in the order of their ends.
    fn expire(&mut self, now: u64) {
        self.open.sort_by_key(|open| open.end);
        while self.open.first().is_some_and(|open| open.end <= now) {
            let open = self.open.remove(0);
            self.note(Event::Charged, open.amount, open.numbers, open.end);
        }
    }

    /// How much flows at most between two times next to each other, in parts: at the rate of the last charge or of a call that
    /// something passed or was charged by since, whichever is faster.
    fn flows(&self) -> Vec<u64> {
        let mut rates = vec![0; self.noted.len().saturating_sub(1)];
        let mut last = None;
        for (index, noted) in self.noted.iter().enumerate() {
            if let Some((since, rate)) = last {
                for own in &mut rates[since..index] {
                    *own = noted.numbers.rate.max(rate).max(*own);
                }
            }
            if matches!(noted.event, Event::Charged) {
                last = Some((index, noted.numbers.rate));
            }
        }
        let elapsed = self.noted.windows(2).map(|pair| pair[1].time - pair[0].time);
        rates.iter().zip(elapsed).map(|(rate, elapsed)| rate * elapsed).collect()
    }

    /// Fails if more passed, or was charged, than the last call that let something pass allows.
    fn check(&self) -> Result<(), TestCaseError> {
        let flows = self.flows();
        for (from, first) in self.noted.iter().enumerate() {
            let (mut passed, mut charged, mut flowed) = (0, 0, 0);
            let mut capacity = self.noted[..=from].iter().rev().find(|noted| matches!(noted.event, Event::Passed));
            for (index, noted) in self.noted.iter().enumerate().skip(from) {
                flowed += if index > from { flows[index - 1] } else { 0 };
                match noted.event {
                    Event::Passed => {
                        passed += noted.cost;
                        capacity = Some(noted);
                    }
                    Event::Charged => charged += noted.cost,
                }
                let most = capacity.map_or(0, |by| by.numbers.capacity) * SECOND + flowed;
                prop_assert!(
                    passed.max(charged) * SECOND <= most,
                    "{passed} passed and {charged} were charged from {} to {}, of {most} thousandths: {:#?}",
                    first.time,
                    noted.time,
                    self.noted
                );
            }
        }
        Ok(())
    }
}

/// What is done to a key.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Hit(u64),
    /// A peek, and an `inc` if it allows it.
    PeekAndInc(u64),
    /// A cost and a ttl.
    Reserve(u64, u64),
    /// Settles a reservation, for all of it or for half.
    Settle(usize, bool),
    /// Reserves and settles at once.
    Through(u64),
    /// Reports so many percent of a lease, and renews it: a cost, a size and a ttl.
    Renew(u64, u64, u64, u64),
    Extend(usize, u64),
}

fn deeds() -> impl Strategy<Value = Deed> + Clone {
    let (cost, ttl) = (prop_oneof![4 => 1..=3_u64, 1 => 1..=60_u64], prop_oneof![1..=50_u64, 1..=3_000_u64]);
    prop_oneof![
        2 => cost.clone().prop_map(Deed::Hit),
        3 => cost.clone().prop_map(Deed::PeekAndInc),
        4 => (cost.clone(), ttl.clone()).prop_map(|(cost, ttl)| Deed::Reserve(cost, ttl)),
        3 => (0..4_usize, any::<bool>()).prop_map(|(which, all)| Deed::Settle(which, all)),
        3 => cost.clone().prop_map(Deed::Through),
        3 => (0..=100_u64, 0..=2_u64, 0..=40_u64, 20..=3_000_u64)
            .prop_map(|(used, cost, size, ttl)| Deed::Renew(used, cost, size, ttl)),
        1 => (0..4_usize, ttl).prop_map(|(which, ttl)| Deed::Extend(which, ttl)),
    ]
}

fn numbers() -> impl Strategy<Value = Numbers> + Clone {
    let rate = prop_oneof![3 => Just(1_u64), 2 => 1..=30_u64, 2 => Just(1_000_u64)];
    let capacity = prop_oneof![3 => Just(10_u64), 3 => 1..=60_u64, 1 => Just(200_u64)];
    (capacity, rate).prop_map(|(capacity, rate)| Numbers { capacity, rate })
}

/// The times between operations, each under one of three numbers.
fn stories() -> impl Strategy<Value = Vec<(u64, usize, Deed)>> {
    let elapsed = prop_oneof![4 => Just(0_u64), 4 => 1..=20_u64, 2 => 1..=1_500_u64, 1 => 1..=12_000_u64];
    let which = prop_oneof![3 => Just(0_usize), 1 => 0..3_usize];
    prop::collection::vec((elapsed, which, deeds()), 1..60)
}

/// Does what is told to a key, and notes what passed and what was charged.
struct Teller {
    stored: Stored,
    history: History,
    answers: Vec<Answer>,
}

impl Teller {
    fn new(kind: Kind) -> Self {
        Self { stored: Stored::new(kind), history: History::default(), answers: Vec::new() }
    }

    fn apply(&mut self, numbers: Numbers, operation: Operation<'_>, now: u64) -> Answer {
        let answer = self.stored.apply(numbers, operation, now);
        self.answers.push(answer);
        answer
    }

    fn reserve(&mut self, cost: u64, ttl: u64, numbers: Numbers, now: u64) -> Option<ReservationId> {
        self.history.made += 1;
        let random = self.history.made;
        let operation = Operation::Reserve { costs: Costs::All(cost), ttl: Some(ttl), random };
        let Answer::Reserved { id, .. } = self.apply(numbers, operation, now) else { panic!() };
        if let Some(id) = id {
            let passed = vec![self.history.noted.len()];
            self.history.note(Event::Passed, cost, numbers, now);
            self.history.open.push(Open { passed, id, end: now + ttl, amount: cost, numbers, is_lease: false });
        }
        id
    }

    fn settle(&mut self, index: usize, all: bool, numbers: Numbers, now: u64) {
        let open = self.history.open.remove(index);
        let used = if all { open.amount } else { open.amount / 2 };
        let operation = Operation::Settle { id: open.id, used: (!all).then_some(Costs::All(used)) };
        self.apply(numbers, operation, now);
        self.history.give_back(&open, open.amount - used);
        // Its own numbers, not those of the call that settles it.
        self.history.note(Event::Charged, used, open.numbers, now);
    }

    fn renew(&mut self, (percent, cost, size, ttl): (u64, u64, u64, u64), numbers: Numbers, now: u64) {
        let found = self.history.open.iter().position(|open| open.is_lease);
        let mut lease = found.map(|index| self.history.open.remove(index));
        let used = lease.as_ref().map_or(0, |lease| lease.amount * percent / 100);
        self.history.made += 1;
        let renewal = Renewal { id: lease.as_ref().map(|lease| lease.id), used, size, ttl, random: self.history.made };
        let answer = self.apply(numbers, Operation::Lease { cost, renewal }, now);
        let Answer::Leased { decision, lease: renewed } = answer else { panic!() };
        if let Some(lease) = &mut lease {
            self.history.note(Event::Charged, used, lease.numbers, now);
            lease.amount -= used;
        }
        if decision.allowed {
            self.history.pass(cost, numbers, now);
        }
        if let Some(lease) = lease.take_if(|_| size == 0) {
            self.history.give_back(&lease, lease.amount);
        }
        let rest = lease.as_ref().map_or(0, |lease| lease.amount);
        if let Some(renewed) = renewed {
            let (id, end, amount) = (renewed.id, renewed.id.end(), renewed.amount);
            let mut passed = lease.as_ref().map_or(Vec::new(), |lease| lease.passed.clone());
            // A lease that grows is charged by the numbers of the call that lets it.
            let by = if amount > rest { numbers } else { lease.unwrap().numbers };
            passed.extend((amount > rest).then_some(self.history.noted.len()));
            self.history.note(Event::Passed, amount - rest, numbers, now);
            self.history.open.push(Open { passed, id, end, amount, numbers: by, is_lease: true });
        } else {
            assert_eq!(rest, 0, "a lease is closed only if nothing is left of it");
        }
    }

    fn tell(&mut self, deed: Deed, numbers: Numbers, now: u64) {
        self.history.expire(now);
        let which = |which: usize, open: &[Open]| (which < open.len() && !open[which].is_lease).then_some(which);
        match deed {
            Deed::Hit(cost) => {
                let hit = self.apply(numbers, Operation::Hit { cost }, now);
                if decision(hit).allowed {
                    self.history.pass(cost, numbers, now);
                }
            }
            Deed::PeekAndInc(cost) => {
                let peek = self.apply(numbers, Operation::Peek { cost }, now);
                if decision(peek).allowed {
                    self.apply(numbers, Operation::Inc { policy: None, cost: cost as i64 }, now);
                    self.history.pass(cost, numbers, now);
                }
            }
            Deed::Reserve(cost, ttl) => drop(self.reserve(cost, ttl, numbers, now).into_iter()),
            Deed::Through(cost) => {
                if self.reserve(cost, 30_000, numbers, now).is_some() {
                    self.settle(self.history.open.len() - 1, true, numbers, now);
                }
            }
            Deed::Settle(index, all) => {
                if let Some(index) = which(index, &self.history.open) {
                    self.settle(index, all, numbers, now);
                }
            }
            Deed::Renew(used, cost, size, ttl) => self.renew((used, cost, size, ttl), numbers, now),
            Deed::Extend(index, ttl) => {
                if let Some(index) = which(index, &self.history.open) {
                    let id = self.history.open[index].id;
                    self.apply(numbers, Operation::Extend { id, ttl }, now);
                    let open = &mut self.history.open[index];
                    open.end = open.end.max(now + ttl);
                }
            }
        }
    }
}

fn no_more_passes_than_flows_and_the_capacity(kind: Kind) {
    check_cases(1_000, (prop::array::uniform3(numbers()), stories()), |(lists, story)| {
        let (mut teller, mut now) = (Teller::new(kind), 5_000);
        for (elapsed, which, deed) in story {
            now += elapsed;
            teller.tell(deed, lists[which], now);
        }
        teller.history.expire(now + 100_000);
        teller.history.check()
    });
}

/// What looks at a key and charges nothing.
fn look(stored: &mut Stored, numbers: Numbers, what: u64, now: u64) {
    let operation = match what % 6 {
        0 => Operation::Peek { cost: 1 },
        1 => Operation::Hit { cost: 0 },
        // It never fits.
        2 => Operation::Hit { cost: numbers.capacity + 1 },
        3 => Operation::Get { policy: None },
        4 => Operation::Inc { policy: None, cost: 0 },
        _ => Operation::ExpiresAt { policy: None },
    };
    stored.apply(numbers, operation, now);
}

/// Whoever looks in between, whenever, and under whichever numbers: what a key answers next is the same, and so what was
/// charged at the ends of reservations.
fn who_looks_changes_nothing(kind: Kind) {
    let looks = prop::collection::vec((0..=100_u64, numbers(), any::<u64>()), 60);
    let given = (prop::array::uniform3(numbers()), stories(), looks);
    check_cases(600, given, |(lists, story, looks)| {
        let (mut alone, mut seen, mut now) = (Teller::new(kind), Teller::new(kind), 5_000);
        for ((elapsed, which, deed), (percent, numbers, what)) in story.into_iter().zip(looks) {
            look(&mut seen.stored, numbers, what, now + elapsed * percent / 100);
            now += elapsed;
            alone.tell(deed, lists[which], now);
            seen.tell(deed, lists[which], now);
            prop_assert_eq!(alone.answers.last(), seen.answers.last());
        }
        let text = |answers: &[Answer]| format!("{answers:?}");
        prop_assert_eq!(text(&alone.answers), text(&seen.answers));
        for (wait, list) in [(0, 0), (700, 1), (20_000, 2), (100_000, 0)] {
            let get = Operation::Get { policy: None };
            let [one, other] = [&mut alone, &mut seen].map(|by| by.stored.apply(lists[list], get, now + wait));
            prop_assert_eq!(one, other);
        }
        Ok(())
    });
}

each_kind! { {
    token_bucket: TokenBucket,
    leaky_bucket: LeakyBucket,
} no_more_passes_than_flows_and_the_capacity who_looks_changes_nothing }

const FAST: Numbers = Numbers { capacity: 10, rate: 1_000 };
const SLOW: Numbers = Numbers { capacity: 10, rate: 1 };

/// A rate that was lowered holds from the first charge by it on, whatever charges.
#[test]
fn a_lowered_rate_holds_for_whatever_charges() {
    let deeds = [
        Deed::Hit(1),
        Deed::PeekAndInc(1),
        Deed::Through(1),
        Deed::Reserve(1, 1),
        Deed::Reserve(1, 40),
        Deed::Renew(100, 1, 8, 1_000),
    ];
    for kind in [TokenBucket, LeakyBucket] {
        for deed in deeds {
            let mut teller = Teller::new(kind);
            teller.tell(Deed::Hit(1), FAST, 5_000);
            for now in 5_000..15_000 {
                teller.tell(deed, SLOW, now);
            }
            let passed = teller.history.noted.iter().filter(|noted| matches!(noted.event, Event::Passed));
            let passed: u64 = passed.map(|noted| noted.cost).sum();
            assert!((10..=20).contains(&passed), "{kind:?}: {passed} by {deed:?}");
        }
    }
}

/// The same in memory, where an exception had the faster rate, or a call.
#[test]
fn a_lowered_rate_holds_in_memory() {
    for by_exception in [true, false] {
        for charges in 0..3 {
            let clock = ManualClock::new(0);
            let mut limiter = Limiter::with_options(SLOW.policies(TokenBucket), &clock, Options::new()).unwrap();
            let fast = FAST.policies(TokenBucket);
            if by_exception {
                let exception = Exception::new().with("token_bucket", "refillRate", 1_000_u64).unwrap();
                limiter.except(&1, &exception, 1).unwrap();
                limiter.hit(&1, 10).unwrap();
            } else {
                limiter.hit_with(&1, 10, &fast).unwrap();
            }
            let mut passed = 0;
            for now in 1..10_000 {
                clock.set(now);
                passed += u64::from(match charges {
                    0 => limiter.peek(&1, 1).unwrap().allowed && limiter.inc(&1, 1).is_ok(),
                    1 => {
                        let reserving = limiter.reserve(&1, Reserve::new(now.into())).unwrap();
                        reserving.reservation.map(|id| limiter.settle(id, None).unwrap()).is_some()
                    }
                    _ => limiter.reserve(&1, Reserve::new(now.into()).ttl(1)).unwrap().decision.allowed,
                });
            }
            assert!((10..=20).contains(&passed), "{passed} by {charges}, {by_exception}");
        }
    }
}

/// The end of a reservation brings its rate, and takes back what a call's faster rate had restored. A wait is the first time at
/// which the call is allowed, before that end or after it.
#[test]
fn waits_are_exact_where_an_end_takes_back_what_a_faster_rate_restored() {
    for kind in [TokenBucket, LeakyBucket] {
        let clock = ManualClock::new(0);
        let mut limiter = Limiter::new(SLOW.policies(kind), &clock).unwrap();
        let fast = FAST.policies(kind);
        limiter.hit(&1, 5).unwrap();
        limiter.reserve(&1, Reserve::new(1).cost(5).ttl(2_000)).unwrap();
        let mut wait = |now, cost| {
            clock.set(now);
            // A reservation that is denied, or given back, changes nothing.
            let reserving = limiter.reserve(&1, Reserve::new(2).cost(cost).ttl(1).policies(&fast)).unwrap();
            if let Some(reservation) = reserving.reservation {
                limiter.settle(reservation, Some(Costs::All(0))).unwrap();
            }
            reserving.decision.retry_after.unwrap()
        };
        // At 5 ms nothing is used but what is open. At 2 s the 5 are charged to the 3 that a second each left.
        assert_eq!([wait(0, 5), wait(4, 5), wait(5, 5), wait(1_999, 5)], [5, 1, 0, 0], "{kind:?}");
        assert_eq!([wait(1_999, 6), wait(2_000, 6), wait(2_000, 5), wait(2_003, 5)], [5, 4, 3, 0], "{kind:?}");
    }
}

/// What was reserved under an exception is charged by its numbers, also after its end, and by nobody else's.
#[test]
fn a_reservation_under_an_exception_is_charged_by_its_numbers() {
    let ends_at = |look: Option<Numbers>| {
        let mut key = Stored::new(LeakyBucket);
        let exception = Exception::new().with("leaky_bucket", "leakRate", 2_u64).unwrap();
        key.apply(SLOW, Operation::Except { exception: Some(&exception), until: 1_000 }, 0);
        key.apply(SLOW, Operation::Hit { cost: 4 }, 0);
        key.apply(SLOW, Operation::Reserve { costs: Costs::All(6), ttl: Some(3_000), random: 1 }, 0);
        if let Some(numbers) = look {
            key.apply(numbers, Operation::Get { policy: None }, 3_500);
        }
        key.apply(FAST, Operation::ExpiresAt { policy: None }, 4_000)
    };
    // Of the 4, none are left at 2 s; the 6 flow at 2/s from 3 s on.
    for look in [None, Some(SLOW), Some(FAST)] {
        assert_eq!(ends_at(look), Answer::Number(6_000), "{look:?}");
    }
}
