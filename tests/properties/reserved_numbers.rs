//! Reservations under the numbers of single calls, under policies that change while they are open, and under several.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{
    Answer, Costs, Decision, Denied, Ledger, Limiter, ManualClock, Operation, Options, Policies, Policy, Reservation,
    ReservationId, Reserve, Reserving,
};

use crate::model::State;
use crate::reservations::{Story, deeds, ttl_of};
use crate::several_policies::sets;
use crate::shapes::Stored;
use crate::support::*;

const MINUTE: u64 = 60_000;

/// What is reserved by a call's numbers is charged by them.
#[test]
fn what_a_smaller_bucket_reserved_is_charged_to_the_smaller_bucket() {
    for kind in [TokenBucket, LeakyBucket] {
        let own = Spec { kind, limit: 100, scale: 1_000, rate: 10, denied: Denied::Free };
        let call = Policies::from(Spec { limit: 10, rate: 1, ..own.clone() }.policy());
        let clock = ManualClock::new(0);
        let mut limiter: Limiter<u8, _> = limiter(&own, &clock, Options::new());
        let reserve = Reserve::new(1).cost(10).policies(&call);
        let reservation = limiter.reserve(&0, reserve).unwrap().reservation.unwrap();
        clock.set(2_000);
        limiter.settle(reservation, None).unwrap();
        assert!(!limiter.hit_with(&0, 1, &call).unwrap().allowed, "{kind:?}");
        clock.set(3_000);
        assert!(limiter.hit_with(&0, 1, &call).unwrap().allowed, "{kind:?}");
        assert!(!limiter.hit_with(&0, 1, &call).unwrap().allowed, "{kind:?}");
    }
}

#[test]
fn what_a_day_reserved_counts_for_the_day_after_a_deploy_of_a_minute() {
    for kind in [FixWindow, FixWindowPerKey, SlidingWindow, SlidingCounter] {
        for (ttl, settled_at) in [(60 * MINUTE, Some(2 * MINUTE)), (2 * MINUTE, None), (MINUTE / 2, None)] {
            let [day, minute] =
                [DAY, MINUTE].map(|scale| Spec { kind, limit: 5, scale, rate: 5, denied: Denied::Free });
            let mut key = Stored::default();
            let reserve = Operation::Reserve { costs: Costs::All(5), ttl: Some(ttl), random: 1 };
            let Answer::Reserved { id: Some(id), .. } = key.operate(&day, reserve, 0) else { panic!("denied") };
            key.hit(&minute, 0, MINUTE);
            if let Some(at) = settled_at {
                key.operate(&minute, Operation::Settle { id, used: None }, at);
            }
            key.hit(&minute, 1, 5 * MINUTE);
            assert!(!key.hit(&day, 1, 10 * MINUTE), "{kind:?} {ttl}");
        }
    }
}

/// A limiter with these numbers, and others that every call brings. Those of a sliding window are at most its own.
fn own_and_call(kind: Kind) -> impl Strategy<Value = (Spec, Spec)> {
    (specs(kind), 0..=300_u64, 1..=50_u64).prop_map(|(call, more, rate)| {
        let own = Spec { limit: call.limit + more, rate: rate.min(call.rate), ..call.clone() };
        (own, call)
    })
}

/// Whatever a limiter's own numbers are, those that every call brings decide, also after a snapshot was restored.
fn numbers_that_every_call_brings_decide(kind: Kind) {
    let story = prop::collection::vec((forward(), deeds(), prop::bool::weighted(0.1)), 1..50);
    check((own_and_call(kind), starts(), story), |((own, call), mut now, story)| {
        let (clock, policies) = (ManualClock::new(now), Policies::from(call.policy()));
        let (mut model, mut ledger) = (Story::new(&call), call.ledger());
        let mut limiter = limiter(&own, &clock, Options::new());
        for (step, deed, restores) in story {
            now = step.from(now, call.period());
            clock.set(now);
            let Some(operation) = model.operation(deed) else { continue };
            let (actual, is_shown) = match operation {
                Operation::Hit { cost } => (Answer::Decision(limiter.hit_with(&1, cost, &policies).unwrap()), true),
                Operation::Reserve { costs, ttl, random } => {
                    let reserve = Reserve::new(random).costs(costs).ttl(ttl.unwrap()).policies(&policies);
                    let Reserving { decision, reservation } = limiter.reserve(&1, reserve).unwrap();
                    (Answer::Reserved { decision, id: reservation.map(|reservation| reservation.id) }, true)
                }
                Operation::Settle { id, used } => (Answer::Settled(limiter.settle_by_id(&1, &id, used).unwrap()), true),
                Operation::Extend { id, ttl } => {
                    (Answer::Settled(limiter.extend(&mut Reservation { key: 1, id }, ttl).unwrap()), true)
                }
                Operation::Reset => {
                    limiter.reset(&1).unwrap();
                    (Answer::Done, true)
                }
                // The others are by the limiter's own numbers.
                _ => (Answer::Done, false),
            };
            if !is_shown {
                continue;
            }
            let expected = ledger.apply(operation, now).unwrap().0;
            model.note(expected);
            prop_assert_eq!(shown(kind, actual), shown(kind, expected), "{:?} at {}", operation, now);
            if restores {
                let json = serde_json::to_string(&limiter.snapshot().unwrap()).unwrap();
                limiter = self::limiter(&own, &clock, Options::new());
                limiter.restore(&serde_json::from_str(&json).unwrap()).unwrap();
            }
        }
        Ok(())
    });
}

/// A log is kept for the limiter's own limit, and so is its count.
fn shown(kind: Kind, answer: Answer) -> Answer {
    let without_count = |decision| match kind {
        SlidingWindow => Decision { count: 0, ..decision },
        _ => decision,
    };
    match answer {
        Answer::Decision(decision) => Answer::Decision(without_count(decision)),
        Answer::Reserved { decision, id } => Answer::Reserved { decision: without_count(decision), id },
        other => other,
    }
}

/// Another limit and another rate apply to what is used and to what is open as they are.
fn a_store_whose_numbers_change_equals_the_model(kind: Kind) {
    let change = prop_oneof![4 => Just(None), 1 => (1..=300_u64, 1..=50_u64).prop_map(Some)];
    let story = prop::collection::vec((forward(), deeds(), change), 1..50);
    check((specs(kind), starts(), story), |(spec, mut now, story)| {
        let (mut model, mut key) = (Story::new(&spec), Stored::default());
        for (step, deed, change) in story {
            now = step.from(now, model.spec.period());
            if let Some((limit, rate)) = change {
                model.spec = Spec { limit, rate, ..model.spec };
                model.reserving.model.spec = model.spec.clone();
                model.reserving.model.keep = limit;
            }
            let Some(operation) = model.operation(deed) else { continue };
            let expected = model.expected(operation, now);
            let answer = key.operate(&model.spec, operation, now);
            prop_assert_eq!(model.note(answer), expected, "{:?} at {} under {:?}", operation, now, &model.spec);
            if key.is_empty() {
                model.reserving.model.state = State::Unused;
            }
        }
        Ok(())
    });
}

each_algorithm!(numbers_that_every_call_brings_decide a_store_whose_numbers_change_equals_the_model);

/// What is done to a key under several policies, with a weight for each.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Hit([u64; 4]),
    /// And a ttl.
    Reserve([u64; 4], u64),
    Settle(usize, [u64; 4]),
    Extend(usize, u64),
}

fn turns() -> impl Strategy<Value = Turn> + Clone {
    let (four, ttl, which) = (prop::array::uniform4(weights()), 1..=3_000_u64, 0..4_usize);
    prop_oneof![
        3 => four.clone().prop_map(Turn::Hit),
        6 => (four.clone(), ttl.clone()).prop_map(|(weights, ttl)| Turn::Reserve(weights, ttl)),
        4 => (which.clone(), four).prop_map(|(which, weights)| Turn::Settle(which, weights)),
        1 => (which, ttl).prop_map(|(which, ttl)| Turn::Extend(which, ttl)),
    ]
}

/// Several policies in one ledger, and each in one of its own.
struct Several {
    names: Vec<String>,
    limits: Vec<u64>,
    all: Ledger,
    alone: Vec<Ledger>,
    /// The ids that each of them gave, of the reservations that were allowed.
    ids: Vec<(ReservationId, Vec<ReservationId>)>,
}

impl Several {
    fn new(policies: Vec<Policy>) -> Self {
        let names: Vec<_> = (0..policies.len()).map(|position| position.to_string()).collect();
        let named = policies.iter().zip(&names).map(|(policy, name)| policy.clone().named(name).unwrap());
        let all = Ledger::new(Policies::new(named).unwrap()).unwrap();
        let limits = policies.iter().map(Policy::limit).collect();
        let alone = policies.into_iter().map(|policy| Ledger::new(policy).unwrap()).collect();
        Self { names, limits, all, alone, ids: Vec::new() }
    }

    fn costs(&self, weights: [u64; 4]) -> Vec<(&str, u64)> {
        let numbers = self.names.iter().zip(&self.limits).zip(weights);
        numbers.map(|((name, limit), weight)| (name.as_str(), fit(weight, *limit))).collect()
    }

    /// All take what each would take alone, or none takes anything.
    fn decide(&mut self, weights: [u64; 4], ttl: Option<u64>, random: u128, now: u64) -> TestCaseResult {
        let costs = self.costs(weights).into_iter().map(|(name, cost)| (name.to_owned(), cost)).collect::<Vec<_>>();
        let borrowed: Vec<_> = costs.iter().map(|(name, cost)| (name.as_str(), *cost)).collect();
        let by_policy = Costs::ByPolicy(&borrowed);
        let each: Vec<_> = self.alone.iter_mut().zip(&costs).map(|(own, (_, cost))| peek(own, *cost, now)).collect();
        let denied: Vec<_> = (0..each.len()).filter(|&position| !each[position].allowed).collect();
        let operation = |costs| match ttl {
            Some(_) => Operation::Reserve { costs, ttl, random },
            None => Operation::HitCosts { costs },
        };
        let (decision, id) = match self.all.apply(operation(by_policy), now).unwrap().0 {
            Answer::Reserved { decision, id } => (decision, id),
            other => (decision(other), None),
        };
        prop_assert_eq!(decision.violated.iter().collect::<Vec<_>>(), denied.clone());
        prop_assert_eq!(decision.allowed, denied.is_empty());
        let waits = denied.iter().map(|&position| each[position].retry_after.unwrap_or(u64::MAX));
        prop_assert_eq!(decision.retry_after.unwrap_or(u64::MAX), waits.max().unwrap_or(0));
        let mut ids = Vec::new();
        for (own, (_, cost)) in self.alone.iter_mut().zip(&costs) {
            let taken = if decision.allowed { Costs::All(*cost) } else { Costs::All(0) };
            match ttl {
                Some(_) if decision.allowed => {
                    let Answer::Reserved { id, .. } = own.apply(operation(taken), now).unwrap().0 else { panic!() };
                    ids.extend(id);
                }
                None if decision.allowed => drop(own.apply(operation(taken), now).unwrap()),
                _ => follow_clock(own, now),
            }
        }
        self.ids.extend(id.map(|id| (id, ids)));
        Ok(())
    }

    fn settle(&mut self, which: usize, weights: [u64; 4], now: u64) -> TestCaseResult {
        let Some((id, ids)) = self.ids.iter().rev().nth(which).cloned() else { return Ok(()) };
        let costs = self.costs(weights).into_iter().map(|(name, cost)| (name.to_owned(), cost)).collect::<Vec<_>>();
        // The first policy is left out: as reserved.
        let used: Vec<_> = costs.iter().skip(1).map(|(name, cost)| (name.as_str(), *cost)).collect();
        let settled = self.all.apply(Operation::Settle { id, used: Some(Costs::ByPolicy(&used)) }, now).unwrap().0;
        for (position, (own, id)) in self.alone.iter_mut().zip(ids).enumerate() {
            let used = (position > 0).then(|| Costs::All(costs[position].1));
            prop_assert_eq!(own.apply(Operation::Settle { id, used }, now).unwrap().0, settled);
        }
        Ok(())
    }

    fn extend(&mut self, which: usize, ttl: u64, now: u64) -> TestCaseResult {
        let Some((id, ids)) = self.ids.iter().rev().nth(which).cloned() else { return Ok(()) };
        let extended = self.all.apply(Operation::Extend { id, ttl }, now).unwrap().0;
        for (own, id) in self.alone.iter_mut().zip(ids) {
            prop_assert_eq!(own.apply(Operation::Extend { id, ttl }, now).unwrap().0, extended);
        }
        Ok(())
    }

    /// Each policy counts in the one ledger what it counts alone.
    fn check(&mut self, now: u64) -> TestCaseResult {
        for (name, own) in self.names.iter().zip(&mut self.alone) {
            let count = own.apply(Operation::Get { policy: None }, now).unwrap().0;
            prop_assert_eq!(self.all.apply(Operation::Get { policy: Some(name) }, now).unwrap().0, count);
            let ends = own.apply(Operation::ExpiresAt { policy: None }, now).unwrap().0;
            prop_assert_eq!(self.all.apply(Operation::ExpiresAt { policy: Some(name) }, now).unwrap().0, ends);
        }
        Ok(())
    }
}

/// Lets a key that takes nothing follow the clock all the same.
fn follow_clock(ledger: &mut Ledger, now: u64) {
    let unknown = "0".repeat(32) + ".1.a";
    ledger.apply(Operation::Settle { id: unknown.parse().unwrap(), used: None }, now).unwrap();
    // Slots alone cannot be hit, and have no state that would follow.
    let _ = ledger.apply(Operation::Hit { cost: 0 }, now);
}

#[test]
fn several_policies_reserve_and_settle_each_its_own_cost() {
    let story = prop::collection::vec((anywhere(), turns()), 1..50);
    let slots = prop::option::of(1..=3_u64);
    check_cases(768, (sets(), slots, starts(), story), |(specs, slots, mut now, story)| {
        let mut policies: Vec<_> = specs.iter().map(Spec::policy).take(3).collect();
        policies.extend(slots.map(|limit| Policy::concurrency(limit, 1_000_u64).unwrap()));
        let mut several = Several::new(policies);
        let period = specs.iter().map(Spec::period).min().unwrap();
        for (random, (step, turn)) in (1..).zip(story) {
            now = step.from(now, period);
            match turn {
                // Slots are only reserved.
                Turn::Hit(weights) if slots.is_none() => several.decide(weights, None, random, now)?,
                Turn::Hit(_) => {}
                Turn::Reserve(weights, ttl) => {
                    several.decide(weights, Some(ttl_of(&specs[0], ttl)), random, now)?;
                }
                Turn::Settle(which, weights) => several.settle(which, weights, now)?,
                Turn::Extend(which, ttl) => several.extend(which, ttl_of(&specs[0], ttl), now)?,
            }
            several.check(now)?;
        }
        Ok(())
    });
}
