//! Reservations against a plain model: what is open is a list, and waits are found by search.

use proptest::prelude::*;
use tollgate::{
    Answer, Costs, MAX_STORED_LOG, ManualClock, Operation, Options, Policies, Record, Reservation, ReservationId,
    Reserve, Settlement, step,
};

use crate::model::{Model, Verdict, first};
use crate::support::*;

/// Something done to a key that may have reservations. Reservations are named by how many were made after them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    Act(Act),
    Peek(u64),
    /// A weight, and a ttl in thousandths of a period.
    Reserve(u64, u64),
    Settle(usize, Option<u64>),
    Extend(usize, u64),
    Reset,
}

pub(crate) fn deeds() -> impl Strategy<Value = Deed> + Clone {
    let ttl = prop_oneof![1 => Just(1_u64), 4 => 1..=3_000_u64];
    let used = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 3 => weights().prop_map(Some)];
    prop_oneof![
        5 => acts().prop_map(Deed::Act),
        1 => weights().prop_map(Deed::Peek),
        6 => (weights(), ttl.clone()).prop_map(|(weight, ttl)| Deed::Reserve(weight, ttl)),
        4 => (0..6_usize, used).prop_map(|(which, used)| Deed::Settle(which, used)),
        1 => (0..6_usize, ttl).prop_map(|(which, ttl)| Deed::Extend(which, ttl)),
        1 => Just(Deed::Reset),
    ]
}

/// So many thousandths of a period, but a ttl.
pub(crate) fn ttl_of(spec: &Spec, thousandths: u64) -> u64 {
    (u128::from(spec.period()) * u128::from(thousandths) / 1_000).clamp(1, 86_400_000) as u64
}

/// An open reservation of the model.
#[derive(Clone, Debug)]
struct Open {
    /// The numbers of the call that opened it.
    spec: Spec,
    random: u128,
    start: u64,
    end: u64,
    ttl: u64,
    amount: u64,
}

/// The model of a key with reservations.
#[derive(Clone, Debug)]
pub(crate) struct Reserving {
    pub(crate) model: Model,
    open: Vec<Open>,
}

impl Reserving {
    /// The key at `now`: each reservation that has expired is charged at its end.
    fn at(&self, now: u64) -> Self {
        let mut key = self.clone();
        // Those that come to end at the same time stay in the order of their ends before.
        key.open.sort_by_key(|open| open.end);
        for open in &mut key.open {
            open.end = open.end.min(now + open.ttl);
        }
        key.open.sort_by_key(|open| open.end);
        while key.open.first().is_some_and(|open| open.end <= now) {
            let open = key.open.remove(0);
            key.charge_closed(&open, open.amount, open.end);
        }
        key
    }

    /// Charges what was used of a reservation, by the numbers of the call that opened it: not before it was made, nor before
    /// what was charged last, unless either was a wrong reading of the clock.
    fn charge_closed(&mut self, open: &Open, used: u64, closed_at: u64) {
        let own = core::mem::replace(&mut self.model.spec, open.spec.clone());
        let latest_possible = closed_at + self.model.spec.period();
        let start = if open.start > latest_possible { closed_at } else { open.start };
        let at = closed_at.max(start).max(self.model.latest());
        let at = if at > latest_possible { closed_at } else { at };
        if used > 0 {
            self.model.charge(used, at);
        } else {
            self.model = self.model.followed(at);
        }
        self.model.spec = own;
    }

    fn sum(&self) -> u64 {
        self.open.iter().map(|open| open.amount).sum()
    }

    fn fits(&self, cost: u64, now: u64) -> bool {
        let key = self.at(now);
        key.model.used(now) + key.model.parts(key.sum() + cost) <= key.model.full()
    }

    fn unused(&self, now: u64) -> bool {
        let key = self.at(now);
        key.sum() == 0 && key.model.unused(now)
    }

    fn count(&self, now: u64) -> u64 {
        let (key, kind) = (self.at(now), self.model.spec.kind);
        let count = key.model.count(now);
        match kind {
            TokenBucket => count.saturating_sub(key.sum()),
            SlidingWindow => (count + key.sum()).min(key.model.keep.max(MAX_STORED_LOG) + 1),
            _ => count + key.sum(),
        }
    }

    /// The numbers of a decision on `cost`, which was decided already and charged or opened if so.
    fn verdict(&self, allowed: bool, cost: u64, now: u64) -> Verdict {
        let spec = &self.model.spec;
        let retry_after = match allowed {
            true => Some(0),
            false if cost > spec.limit => None,
            false => Some(self.first(now, |at| self.fits(cost, at))),
        };
        let used = self.at(now).model.used(now) + self.model.parts(self.sum());
        let remaining = ((self.model.full() - used).max(0) / i128::from(spec.scale)) as u64;
        let reset_after = first(|wait| self.unused(now + wait));
        let more_after = if remaining == spec.limit { 0 } else { self.first(now, |at| self.fits(remaining + 1, at)) };
        Verdict { allowed, count: self.count(now), remaining, retry_after, reset_after, more_after }
    }

    /// The least wait after which something holds. Between two ends of reservations it keeps holding; at an end, a bucket
    /// that flows faster for this policy than by itself may be fuller again.
    fn first(&self, now: u64, holds: impl Fn(u64) -> bool) -> u64 {
        let mut ends: Vec<u64> = self.at(now).open.iter().map(|open| open.end).collect();
        ends.sort_unstable();
        let mut from = now;
        for end in ends {
            if holds(end - 1) {
                return first(|wait| from + wait >= end - 1 || holds(from + wait)) + from - now;
            }
            from = end;
        }
        first(|wait| holds(from + wait)) + from - now
    }

    fn hit(&mut self, cost: u64, now: u64) -> Verdict {
        let allowed = self.fits(cost, now);
        if cost > 0 && (allowed || self.model.spec.denied == tollgate::Denied::Count) {
            self.model.charge_denied(cost, now);
        } else {
            self.model = self.model.followed(now);
        }
        self.verdict(allowed, cost, now)
    }

    fn reserve(&mut self, open: Open, now: u64) -> Verdict {
        if !self.fits(open.amount, now) {
            return self.hit(open.amount, now);
        }
        self.model = self.model.followed(now);
        let amount = open.amount;
        self.open.push(open);
        self.verdict(true, amount, now)
    }

    fn take(&mut self, random: u128) -> Option<Open> {
        let index = self.open.iter().position(|open| open.random == random)?;
        Some(self.open.remove(index))
    }
}

/// What an operation comes to, of the model and of Tollgate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Decided(Verdict),
    Number(u64),
    Done,
    Settled(Settlement),
}

/// Returns what became of the reservation with this id, if it is not open.
fn missing(id: &ReservationId, now: u64) -> Settlement {
    if now >= id.end() { Settlement::Expired } else { Settlement::Closed }
}

/// A story of a key: what the model says, and the ids of the reservations that were allowed.
pub(crate) struct Story {
    pub(crate) spec: Spec,
    pub(crate) reserving: Reserving,
    made: u128,
    ids: Vec<ReservationId>,
}

impl Story {
    pub(crate) fn new(spec: &Spec) -> Self {
        let reserving = Reserving { model: Model::new(spec.clone()), open: Vec::new() };
        Self { spec: spec.clone(), reserving, made: 0, ids: Vec::new() }
    }

    fn id(&self, which: usize) -> Option<ReservationId> {
        self.ids.iter().rev().nth(which).copied()
    }

    /// The operation that a deed is; `None` if there is no such reservation.
    pub(crate) fn operation(&mut self, deed: Deed) -> Option<Operation<'static>> {
        Some(match deed {
            // Slots are only reserved, and what is peeked of them has no ttl.
            Deed::Act(_) | Deed::Peek(1..) if self.spec.kind == Concurrency => return None,
            Deed::Act(act) => act.operation(&self.spec),
            Deed::Peek(weight) => Operation::Peek { cost: fit(weight, self.spec.limit) },
            Deed::Reserve(weight, ttl) => {
                self.made += 1;
                let costs = Costs::All(fit(weight, self.spec.limit));
                Operation::Reserve { costs, ttl: Some(ttl_of(&self.spec, ttl)), random: self.made }
            }
            Deed::Settle(which, used) => {
                Operation::Settle { id: self.id(which)?, used: used.map(|used| Costs::All(fit(used, self.spec.limit))) }
            }
            Deed::Extend(which, ttl) => Operation::Extend { id: self.id(which)?, ttl: ttl_of(&self.spec, ttl) },
            Deed::Reset => Operation::Reset,
        })
    }

    /// What the model says of an operation.
    pub(crate) fn expected(&mut self, operation: Operation<'_>, now: u64) -> Outcome {
        let mut current = self.reserving.at(now);
        match operation {
            Operation::Peek { cost } => return Outcome::Decided(current.hit(cost, now)),
            Operation::Inc { cost: 0, .. } => return Outcome::Number(current.count(now)),
            _ => {}
        }
        self.reserving = current;
        let key = &mut self.reserving;
        match operation {
            Operation::Hit { cost } => Outcome::Decided(key.hit(cost, now)),
            Operation::Reserve { costs: Costs::All(amount), ttl: Some(ttl), random } => {
                let spec = key.model.spec.clone();
                Outcome::Decided(key.reserve(Open { spec, random, start: now, end: now + ttl, ttl, amount }, now))
            }
            Operation::Settle { id, used } => Outcome::Settled(match key.take(random_of(&id)) {
                None => missing(&id, now),
                Some(open) => {
                    let used = match used {
                        Some(Costs::All(used)) => used,
                        _ => open.amount,
                    };
                    key.charge_closed(&open, used, now);
                    Settlement::Settled
                }
            }),
            // It keeps its place before those that end at the same time.
            Operation::Extend { id, ttl } => {
                Outcome::Settled(match key.open.iter_mut().find(|open| open.random == random_of(&id)) {
                    None => missing(&id, now),
                    Some(open) => {
                        let end = open.end.max(now + ttl);
                        (open.start, open.end, open.ttl) = (open.start.max(now), end, end - now);
                        Settlement::Extended
                    }
                })
            }
            Operation::Reset => {
                key.model = Model::new(self.spec.clone());
                Outcome::Done
            }
            other => {
                let _ = key.model.apply(other, now);
                Outcome::Number(key.count(now))
            }
        }
    }

    /// Notes what was answered.
    pub(crate) fn note(&mut self, answer: Answer) -> Outcome {
        match answer {
            Answer::Decision(decision) => Outcome::Decided(decision.into()),
            Answer::Number(number) => Outcome::Number(number),
            Answer::Done => Outcome::Done,
            Answer::Reserved { decision, id } => {
                assert_eq!(id.is_some(), decision.allowed);
                self.ids.extend(id);
                Outcome::Decided(decision.into())
            }
            Answer::Settled(settlement) => Outcome::Settled(settlement),
            Answer::Leased { decision, .. } | Answer::Undoable { decision, .. } => Outcome::Decided(decision.into()),
        }
    }
}

/// The random bits of an id are what it was made with.
fn random_of(id: &ReservationId) -> u128 {
    u128::from_str_radix(&id.to_string()[..32], 16).unwrap()
}

fn a_ledger_with_reservations_equals_the_model(kind: Kind) {
    let story = prop::collection::vec((anywhere(), deeds()), 1..50);
    check((specs(kind), starts(), story), |(spec, mut now, deeds)| {
        let (mut story, mut ledger) = (Story::new(&spec), spec.ledger());
        for (step_, deed) in deeds {
            now = step_.from(now, spec.period());
            let Some(operation) = story.operation(deed) else { continue };
            let expected = story.expected(operation, now);
            let answer = ledger.apply(operation, now).unwrap().0;
            prop_assert_eq!(&story.note(answer), &expected, "{:?} at {}", operation, now);
        }
        Ok(())
    });
}

/// Through what a store would hold. The clock goes forward: a store may drop what has ended.
fn a_store_with_reservations_equals_a_ledger(kind: Kind) {
    let story = prop::collection::vec((forward(), deeds()), 1..50);
    check((specs(kind), starts(), story), |(spec, mut now, deeds)| {
        let policies = Policies::from(spec.policy());
        let (mut story, mut ledger, mut stored) = (Story::new(&spec), spec.ledger(), None::<String>);
        for (step_, deed) in deeds {
            now = step_.from(now, spec.period());
            let Some(operation) = story.operation(deed) else { continue };
            let answer = ledger.apply(operation, now).unwrap().0;
            story.note(answer);
            let record = stored.as_deref().map(|json| serde_json::from_str::<Record>(json).unwrap());
            let stepped = step(&policies, record.as_ref(), operation, now).unwrap();
            prop_assert_eq!(stepped.answer, answer, "{:?} at {}", operation, now);
            prop_assert_eq!(stepped.expires_at, ledger.expires_at(now).unwrap());
            if stepped.changed {
                stored = stepped.record.map(|record| serde_json::to_string(&record).unwrap());
            }
        }
        Ok(())
    });
}

/// The limiter in memory says what a ledger says, also while it is cleaned, and after a snapshot was restored.
fn a_limiter_with_reservations_equals_a_ledger(kind: Kind) {
    // A clock that steps back may find again what a cleaning or a snapshot left out.
    let wild = prop::collection::vec((anywhere(), deeds(), Just(false)), 1..40);
    let restored = prop::collection::vec((forward(), deeds(), prop::bool::weighted(0.2)), 1..40);
    let story = prop_oneof![wild, restored];
    check((specs(kind), starts(), story), |(spec, mut now, deeds)| {
        let clock = ManualClock::new(now);
        let (mut story, mut ledger) = (Story::new(&spec), spec.ledger());
        let mut limiter = limiter(&spec, &clock, Options::new());
        for (step_, deed, restores) in deeds {
            now = step_.from(now, spec.period());
            clock.set(now);
            let Some(operation) = story.operation(deed) else { continue };
            let answer = ledger.apply(operation, now).unwrap().0;
            let expected = story.note(answer);
            let actual = match operation {
                Operation::Hit { cost } => Outcome::Decided(limiter.hit(&1, cost).unwrap().into()),
                Operation::Peek { cost } => {
                    prop_assert_eq!(limiter.get(&1).unwrap(), peek(&mut ledger, 0, now).count);
                    Outcome::Decided(limiter.peek(&1, cost).unwrap().into())
                }
                Operation::Inc { cost, .. } => Outcome::Number(limiter.inc(&1, cost).unwrap()),
                Operation::Set { count, .. } => Outcome::Number(limiter.set(&1, count).unwrap()),
                Operation::Reserve { costs, ttl, random } => {
                    let reserve = Reserve::new(random).costs(costs).ttl(ttl.unwrap());
                    let reserving = limiter.reserve(&1, reserve).unwrap();
                    if let Some(reservation) = reserving.reservation {
                        prop_assert_eq!(Some(reservation.id), story.id(0));
                    }
                    Outcome::Decided(reserving.decision.into())
                }
                Operation::Settle { id, used } => Outcome::Settled(limiter.settle_by_id(&1, &id, used).unwrap()),
                Operation::Extend { id, ttl } => {
                    Outcome::Settled(limiter.extend(&mut Reservation { key: 1, id }, ttl).unwrap())
                }
                _ => {
                    limiter.reset(&1).unwrap();
                    Outcome::Done
                }
            };
            prop_assert_eq!(actual, expected, "{:?} at {}", operation, now);
            if restores {
                limiter.clean().unwrap();
                let json = serde_json::to_string(&limiter.snapshot().unwrap()).unwrap();
                limiter = self::limiter(&spec, &clock, Options::new());
                limiter.restore(&serde_json::from_str(&json).unwrap()).unwrap();
            }
        }
        Ok(())
    });
}

/// However many are open, the wait is to the millisecond.
fn a_wait_beside_many_reservations_is_exact(kind: Kind) {
    let open = prop::collection::vec((0..=2_u64, 0..=3_u64, 1..=2_500_u64), 40..120);
    check_cases(64, (specs(kind), starts(), open, 0..100_u64), |(mut spec, mut now, open, share)| {
        (spec.limit, spec.denied) = (spec.limit + 300, tollgate::Denied::Free);
        let mut ledger = spec.ledger();
        for (random, (tick, amount, ttl)) in (1_u128..).zip(open) {
            now += tick;
            let costs = Costs::All(amount);
            ledger.apply(Operation::Reserve { costs, ttl: Some(ttl_of(&spec, ttl)), random }, now).unwrap();
        }
        let cost = spec.limit - peek(&mut ledger, 0, now).remaining * share / 100;
        let decision = hit(&mut ledger, cost, now);
        if decision.allowed {
            return Ok(());
        }
        let wait = decision.retry_after.unwrap();
        prop_assert!(!peek(&mut ledger, cost, now + wait - 1).allowed, "too early: {:?}", decision);
        prop_assert!(peek(&mut ledger, cost, now + wait).allowed, "not yet: {:?}", decision);
        Ok(())
    });
}

each_algorithm!(
    a_wait_beside_many_reservations_is_exact
    a_ledger_with_reservations_equals_the_model
    a_store_with_reservations_equals_a_ledger
    a_limiter_with_reservations_equals_a_ledger
);
