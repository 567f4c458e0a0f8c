//! Exceptions: a key with one decides as it would by those numbers for each call, field by field before the call's own and the
//! limiter's, until its end and not longer; wherever it is stored.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{
    Answer, Costs, Decision, Denied, Exception, Ledger, Limiter, MAX, ManualClock, Operation, Options, Policies,
    Policy, Reason, Reserve, Settlement,
};

use crate::admission::Past;
use crate::kept::{InMemory, Stepping};
use crate::support::*;

/// An exception to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Numbers { limit: Option<u64>, rate: Option<u64> },
    Allow,
    Deny,
}

impl Given {
    fn exception(self, spec: &Spec) -> Exception {
        let (limit, rate) = match self {
            Self::Allow => return Exception::allow(),
            Self::Deny => return Exception::deny(),
            Self::Numbers { limit, rate } => (limit, rate),
        };
        let own = spec.policy();
        // Fields of other algorithms are ignored.
        let (limit_field, rate_field, other_rate) = match spec.kind {
            TokenBucket => ("capacity", "refillRate", "leakRate"),
            LeakyBucket => ("capacity", "leakRate", "refillRate"),
            _ => ("limit", "leakRate", "refillRate"),
        };
        let other_limit = if spec.kind.is_bucket() { "limit" } else { "capacity" };
        let mut exception = Exception::new();
        for (field, value) in [(limit_field, limit), (rate_field, rate)] {
            if let Some(value) = value {
                exception = exception.with(own.algorithm(), field, value).unwrap();
            }
        }
        for field in [other_limit, other_rate, "after", "factor"] {
            exception = exception.with(own.algorithm(), field, 1_u64).unwrap();
        }
        exception
    }

    /// Returns a spec with the numbers.
    fn over(self, spec: &Spec) -> Spec {
        match self {
            Self::Numbers { limit, rate } => {
                Spec { limit: limit.unwrap_or(spec.limit), rate: rate.unwrap_or(spec.rate), ..spec.clone() }
            }
            Self::Allow | Self::Deny => spec.clone(),
        }
    }
}

fn given() -> impl Strategy<Value = Given> + Clone {
    let number = |most: u64| prop::option::of(1..=most);
    prop_oneof![
        4 => (number(300), number(50)).prop_map(|(limit, rate)| Given::Numbers { limit, rate }),
        1 => Just(Given::Allow),
        1 => Just(Given::Deny),
    ]
}

/// Something done to a key.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Hit(u64),
    Peek(u64),
    Reserve(u64),
    /// Settles the oldest reservation for so much, or for what was reserved.
    Settle(Option<u64>),
    Except(Given, u64),
    Lift,
    Reset,
    Inc(u64),
    Set(u64),
}

fn deeds() -> impl Strategy<Value = Deed> + Clone {
    prop_oneof![
        12 => weights().prop_map(Deed::Hit),
        3 => weights().prop_map(Deed::Peek),
        3 => weights().prop_map(Deed::Reserve),
        3 => prop::option::of(weights()).prop_map(Deed::Settle),
        4 => (given(), 1..=3_000_u64).prop_map(|(given, length)| Deed::Except(given, length)),
        1 => Just(Deed::Lift),
        1 => Just(Deed::Reset),
        1 => weights().prop_map(Deed::Inc),
        1 => weights().prop_map(Deed::Set),
    ]
}

/// A key, wherever it is stored.
trait Subject {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer;
    fn exception(&mut self, now: u64) -> Option<(Exception, u64)>;
}

impl Subject for Ledger {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        Ledger::apply(self, operation, now).unwrap().0
    }

    fn exception(&mut self, now: u64) -> Option<(Exception, u64)> {
        Ledger::exception(self, now)
    }
}

impl Subject for Stepping {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        self.step(operation, now)
    }

    fn exception(&mut self, now: u64) -> Option<(Exception, u64)> {
        let mut ledger = Ledger::new(self.0.clone()).unwrap();
        ledger.load(self.1.as_ref()?, now).unwrap();
        ledger.exception(now)
    }
}

impl Subject for InMemory<'_> {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        let limiter = self.next(now);
        match operation {
            Operation::Hit { cost } => Answer::Decision(limiter.hit(&1, cost).unwrap()),
            Operation::Peek { cost } => Answer::Decision(limiter.peek(&1, cost).unwrap()),
            Operation::Reserve { costs: Costs::All(cost), random, .. } => {
                let reserving = limiter.reserve(&1, Reserve::new(random).cost(cost).ttl(500)).unwrap();
                let id = reserving.reservation.map(|reservation| reservation.id);
                Answer::Reserved { decision: reserving.decision, id }
            }
            Operation::Settle { id, used } => Answer::Settled(limiter.settle_by_id(&1, &id, used).unwrap()),
            Operation::Inc { cost, .. } => Answer::Number(limiter.inc(&1, cost).unwrap()),
            Operation::Set { count, .. } => Answer::Number(limiter.set(&1, count).unwrap()),
            Operation::Get { .. } => Answer::Number(limiter.get(&1).unwrap()),
            Operation::Except { exception: Some(exception), until } => {
                Answer::Number(limiter.except(&1, exception, until).unwrap())
            }
            Operation::Except { exception: None, .. } => {
                let until = limiter.exception(&1).unwrap().map_or(0, |(_, until)| until);
                assert_eq!(limiter.lift_exception(&1).unwrap(), until > 0);
                Answer::Number(until)
            }
            Operation::Reset => {
                limiter.reset(&1).unwrap();
                Answer::Done
            }
            other => panic!("{other:?} is not of this test"),
        }
    }

    fn exception(&mut self, now: u64) -> Option<(Exception, u64)> {
        self.clock.set(now);
        self.limiter.exception(&1).unwrap()
    }
}

/// A limiter without exceptions, whose calls have the numbers.
struct Oracle<'a> {
    spec: &'a Spec,
    limiter: Limiter<u8, &'a ManualClock>,
    clock: &'a ManualClock,
    given: Option<(Given, u64)>,
}

impl Oracle<'_> {
    fn in_force(&self, now: u64) -> Option<(Given, u64)> {
        self.given.filter(|(_, until)| now < *until)
    }

    fn policies(&self, now: u64) -> Policies {
        self.in_force(now).map_or(self.spec.clone(), |(given, _)| given.over(self.spec)).policy().into()
    }

    /// Does `work` on a limiter with the same states whose own numbers are those in force.
    fn under_those_in_force(&mut self, now: u64, work: impl FnOnce(&mut Limiter<u8, &ManualClock>)) {
        let mut other = Limiter::new(self.policies(now), self.clock).unwrap();
        other.restore(&self.limiter.snapshot().unwrap()).unwrap();
        work(&mut other);
        self.limiter = Limiter::new(self.spec.policy(), self.clock).unwrap();
        self.limiter.restore(&other.snapshot().unwrap()).unwrap();
    }

    /// Charges a cost, by the numbers in force.
    fn charge(&mut self, cost: i64, now: u64) {
        // Only a bucket has a number that comes with a charge. A charge of 0 reads.
        if !self.spec.kind.is_bucket() || cost == 0 {
            self.limiter.inc(&1, cost).unwrap();
        } else {
            self.under_those_in_force(now, |limiter| assert!(limiter.inc(&1, cost).is_ok()));
        }
    }

    fn set(&mut self, count: u64, now: u64) {
        if self.spec.kind.is_bucket() {
            self.under_those_in_force(now, |limiter| assert!(limiter.set(&1, count).is_ok()));
        } else {
            self.limiter.set(&1, count).unwrap();
        }
    }

    /// Returns a decision with the waits that reach the end of the exception: from then on, they are those of the limiter's own
    /// numbers on the states after the decision.
    fn after(&self, states: &Limiter<u8, &ManualClock>, decision: Decision, cost: u64, now: u64) -> Decision {
        let Some((_, until)) = self.in_force(now) else { return decision };
        let end = until - now;
        let mut after = decision;
        // Only the hit itself is counted if denied hits are, and it was.
        let free = Spec { denied: Denied::Free, ..self.spec.clone() };
        let mut own = Limiter::new(free.policy(), self.clock).unwrap();
        own.restore(&states.snapshot().unwrap()).unwrap();
        if decision.retry_after.is_none_or(|wait| wait >= end) {
            after.retry_after = own.peek(&1, cost).unwrap().retry_after.map(|wait| wait.max(end));
        }
        if decision.more_after >= end {
            let more = (decision.remaining + 1).min(self.spec.limit);
            after.more_after = own.peek(&1, more).unwrap().retry_after.unwrap().max(end);
        }
        if decision.reset_after >= end {
            after.reset_after = own.peek(&1, 0).unwrap().reset_after.max(end);
        }
        after
    }

    /// Returns a limiter with the same states, for operations that are to leave them.
    fn copy(&self) -> Limiter<u8, &ManualClock> {
        let mut copy = Limiter::new(self.spec.policy(), self.clock).unwrap();
        copy.restore(&self.limiter.snapshot().unwrap()).unwrap();
        copy
    }
}

/// Compares a key with the oracle.
fn compare(subject: &mut dyn Subject, oracle: &mut Oracle<'_>, start: u64, deeds: &[(Move, Deed)]) -> TestCaseResult {
    let (mut now, mut ids) = (start, Vec::new());
    let spec = oracle.spec;
    let mut was_far_back = false;
    for &(step, deed) in deeds {
        now = step.from(now, spec.period());
        was_far_back |= matches!(step, Move::FarBack(_));
        oracle.clock.set(now);
        let in_force = oracle.in_force(now);
        let policies = oracle.policies(now);
        match deed {
            Deed::Hit(weight) | Deed::Peek(weight) | Deed::Reserve(weight) => {
                let cost = fit(weight, spec.limit);
                let random = next_random();
                let is_concurrency = spec.kind == Concurrency;
                let operation = match deed {
                    Deed::Peek(_) => Operation::Peek { cost },
                    Deed::Hit(_) if !is_concurrency => Operation::Hit { cost },
                    _ => Operation::Reserve { costs: Costs::All(cost), ttl: Some(500), random },
                };
                let answer = subject.apply(operation, now);
                let own = decision(answer);
                if !matches!(in_force, Some((Given::Numbers { .. }, _)) | None)
                    && !matches!(operation, Operation::Peek { .. })
                    && !is_concurrency
                {
                    // Nothing is charged, but a state that is far ahead follows the clock.
                    oracle.limiter.hit(&1, 0).unwrap();
                }
                match in_force {
                    Some((Given::Allow, _)) => {
                        prop_assert!(own.allowed && own.reason.is_none() && own.violated.is_empty(), "{own:?}");
                        prop_assert_eq!((own.limit, own.remaining, own.more_after), (MAX, MAX, 0));
                        prop_assert_eq!(own.retry_after, Some(0));
                    }
                    Some((Given::Deny, until)) => {
                        let expected = oracle.limiter.peek(&1, cost).unwrap();
                        prop_assert!(!own.allowed && own.remaining == 0 && own.violated.is_empty(), "{own:?}");
                        prop_assert_eq!(own.reason, Some(Reason::Denied));
                        match expected.retry_after {
                            None => prop_assert_eq!(own.retry_after, None),
                            Some(_) if expected.allowed => prop_assert_eq!(own.retry_after, Some(until - now)),
                            Some(_) => prop_assert!(own.retry_after >= Some(until - now)),
                        }
                    }
                    Some((Given::Numbers { .. }, _)) | None => {
                        let expected = match operation {
                            // A reservation that is not opened decides as a peek does.
                            Operation::Peek { .. } => {
                                match is_concurrency {
                                    false => oracle.copy().hit_with(&1, cost, &policies).unwrap(),
                                    true => {
                                        let reserve = Reserve::new(next_random()).cost(cost).ttl(500);
                                        let reserved = oracle.copy().reserve(&1, reserve.policies(&policies));
                                        // Its numbers are those after the reservation; a peek has those before.
                                        prop_assert_eq!(own.allowed, reserved.unwrap().decision.allowed);
                                        own
                                    }
                                }
                            }
                            Operation::Hit { .. } => oracle.limiter.hit_with(&1, cost, &policies).unwrap(),
                            _ => {
                                let reserve = Reserve::new(random).cost(cost).ttl(500).policies(&policies);
                                oracle.limiter.reserve(&1, reserve).unwrap().decision
                            }
                        };
                        let expected = match operation {
                            Operation::Peek { .. } if is_concurrency => expected,
                            // What a peek foretells was not charged to the oracle.
                            Operation::Peek { .. } => {
                                let mut copy = oracle.copy();
                                copy.hit_with(&1, cost, &policies).unwrap();
                                oracle.after(&copy, expected, cost, now)
                            }
                            _ => oracle.after(&oracle.limiter, expected, cost, now),
                        };
                        // A reservation that was made ahead of the clock is charged ahead of it, which no single wait foretells.
                        let waits = if was_far_back { &own } else { &expected };
                        let Decision { retry_after, reset_after, more_after, .. } = *waits;
                        prop_assert_eq!(own, Decision { retry_after, reset_after, more_after, ..expected });
                    }
                }
                if let Answer::Reserved { id: Some(id), .. } = answer {
                    ids.push((id, matches!(in_force, Some((Given::Allow, _)))));
                }
            }
            Deed::Settle(used) => {
                if !ids.is_empty() {
                    let (id, is_free) = ids.remove(0);
                    let used = used.map(Costs::All);
                    let settled = subject.apply(Operation::Settle { id, used }, now);
                    let expected = oracle.limiter.settle_by_id(&1, &id, used).unwrap();
                    if is_free {
                        // It is charged nothing, whatever was used, now or at its end.
                        prop_assert!(settled != Answer::Settled(Settlement::Evicted));
                    } else {
                        prop_assert_eq!(settled, Answer::Settled(expected));
                    }
                }
            }
            Deed::Except(given, length) => {
                let until = now + length;
                let exception = given.exception(spec);
                let set = subject.apply(Operation::Except { exception: Some(&exception), until }, now);
                prop_assert_eq!(set, Answer::Number(until));
                oracle.given = Some((given, until));
            }
            Deed::Lift => {
                let lifted = subject.apply(Operation::Except { exception: None, until: 0 }, now);
                prop_assert_eq!(lifted, Answer::Number(in_force.map_or(0, |(_, until)| until)));
                oracle.given = None;
            }
            Deed::Reset => {
                oracle.limiter.reset(&1).unwrap();
                subject.apply(Operation::Reset, now);
            }
            Deed::Inc(weight) if spec.kind != Concurrency => {
                let cost = fit(weight, spec.limit) as i64;
                subject.apply(Operation::Inc { policy: None, cost }, now);
                oracle.charge(cost, now);
            }
            // The tokens that are left count from the capacity of the exception, and what is used brings its rate.
            Deed::Set(weight) if spec.kind != Concurrency => {
                let limit = policies.iter().next().unwrap().limit();
                let count = fit(weight, limit).min(limit);
                subject.apply(Operation::Set { policy: None, count }, now);
                oracle.set(count, now);
            }
            Deed::Inc(_) | Deed::Set(_) => {}
        }
        let in_force = oracle.in_force(now);
        let expected = in_force.map(|(given, until)| (given.exception(spec), until));
        prop_assert_eq!(subject.exception(now), expected);
        let expected = match spec.kind {
            Concurrency => oracle.limiter.get(&1).unwrap(),
            // The tokens left count from the capacity of the exception, and flow at its rate.
            _ => oracle.copy().hit_with(&1, 0, &oracle.policies(now)).unwrap().count,
        };
        prop_assert_eq!(subject.apply(Operation::Get { policy: None }, now), Answer::Number(expected));
    }
    Ok(())
}

fn a_key_with_an_exception_decides_by_its_numbers(kind: Kind) {
    let deeds = prop::collection::vec((anywhere(), deeds()), 1..60);
    check((specs(kind), starts(), deeds, any::<u64>()), |(spec, start, deeds, sweeps)| {
        let policies = Policies::from(spec.policy());
        // Only reservations move its clock.
        let deeds: Vec<_> = match kind {
            Concurrency => deeds.into_iter().map(|(step, deed)| (step.not_back(), deed)).collect(),
            _ => deeds,
        };
        let (clock, own_clock) = (ManualClock::new(start), ManualClock::new(start));
        let oracle =
            || Oracle { spec: &spec, limiter: limiter(&spec, &clock, Options::new()), clock: &clock, given: None };
        compare(&mut spec.ledger(), &mut oracle(), start, &deeds)?;
        // What has ended is not stored, so a clock that steps back behind its end does not find it.
        let deeds: Vec<_> = deeds.into_iter().map(|(step, deed)| (step.not_back(), deed)).collect();
        compare(&mut Stepping(policies.clone(), None), &mut oracle(), start, &deeds)?;
        compare(&mut InMemory::new(policies, &own_clock, sweeps), &mut oracle(), start, &deeds)
    });
}

/// The numbers of an exception, then those of the call, then the limiter's own, field by field.
fn a_field_of_an_exception_stands_before_that_of_a_call(kind: Kind) {
    let number = |most: u64| prop::option::of(1..=most);
    let numbers = (number(300), number(50), 1..=300_u64, 1..=50_u64);
    let hits = prop::collection::vec((forward(), any::<bool>(), weights()), 1..40);
    check((specs(kind), starts(), numbers, hits), |(own, start, (limit, rate, call_limit, call_rate), hits)| {
        let clock = ManualClock::new(start);
        let (mut excepted, mut expected) =
            (limiter(&own, &clock, Options::new()), limiter(&own, &clock, Options::new()));
        let given = Given::Numbers { limit, rate };
        excepted.except_for(&1, &given.exception(&own), "400d").unwrap();
        let call = Spec { limit: call_limit, rate: call_rate, ..own.clone() };
        let mut now = start;
        for (step, by_call, weight) in hits {
            now = step.from(now, own.period());
            if now >= start + 400 * DAY {
                break;
            }
            clock.set(now);
            let (cost, base) = (fit(weight, own.limit), if by_call { &call } else { &own });
            let decided = match by_call {
                true => excepted.hit_with(&1, cost, &call.policy().into()).unwrap(),
                false => excepted.hit(&1, cost).unwrap(),
            };
            let under = Policies::from(given.over(base).policy());
            let expected = expected.hit_with(&1, cost, &under).unwrap();
            // Waits that reach the exception's end are those of `waits.rs`.
            let end = start + 400 * DAY - now;
            let waits = [expected.retry_after, Some(expected.more_after), Some(expected.reset_after)];
            if waits.into_iter().all(|wait| wait.is_some_and(|wait| wait < end)) {
                prop_assert_eq!(decided, expected);
            } else {
                prop_assert_eq!((decided.allowed, decided.count), (expected.allowed, expected.count));
            }
        }
        Ok(())
    });
}

/// From the admitted hits alone: never more than the larger of both policies.
fn an_exception_admits_no_more_than_it_says(kind: Kind) {
    let hits = prop::collection::vec((forward(), weights()), 1..60);
    let numbers = (1..=300_u64, 1..=50_u64, 1..=5_000_u64);
    check((specs(kind), starts(), numbers, hits), |(own, start, (limit, rate, length), hits)| {
        // Under a lower limit, denied hits that count are kept up to that limit.
        if kind == SlidingWindow && own.denied == tollgate::Denied::Count && limit > own.limit {
            return Ok(());
        }
        let clock = ManualClock::new(start);
        let mut limiter = limiter(&own, &clock, Options::new().clean_period(1_u64).unwrap());
        let given = Given::Numbers { limit: Some(limit), rate: Some(rate) };
        limiter.except_for(&1, &given.exception(&own), length).unwrap();
        let larger = Spec { limit: own.limit.max(limit), rate: own.rate.max(rate), ..own.clone() };
        let (mut past, mut now) = (Past::new(larger), start);
        for (step, weight) in hits {
            now = step.from(now, own.period());
            clock.set(now);
            for _ in 0..3 {
                limiter.hit(&0, 1).unwrap();
            }
            let cost = fit(weight, limit);
            let decision = limiter.hit(&1, cost).unwrap();
            prop_assert_eq!(decision.limit, if now < start + length { limit } else { own.limit });
            past.note(cost, now, decision.allowed);
        }
        past.check()
    });
}

each_algorithm!(a_key_with_an_exception_decides_by_its_numbers);

each_counting_algorithm!(
    a_field_of_an_exception_stands_before_that_of_a_call
    an_exception_admits_no_more_than_it_says
);

const HOUR: u64 = 3_600_000;

fn banned_after(after: u64) -> Policies {
    let policies = [Policy::fix_window(1, "1h").unwrap(), Policy::ban(after, "1h", "10m").unwrap()];
    Policies::new(policies).unwrap()
}

fn hit_at(ledger: &mut Ledger, now: u64) -> Decision {
    hit(ledger, 1, now)
}

#[test]
fn allow_and_deny_come_before_bans_and_count_nothing() {
    for exception in [Exception::allow(), Exception::deny()] {
        let mut ledger = Ledger::new(banned_after(2)).unwrap();
        let except = Operation::Except { exception: Some(&exception), until: 1_000 };
        assert!(hit_at(&mut ledger, 0).allowed);
        assert!(!hit_at(&mut ledger, 0).allowed);
        ledger.apply(except, 0).unwrap();
        for now in 0..1_000 {
            assert_eq!(hit_at(&mut ledger, now).allowed, exception.is_allow());
        }
        let get = |ledger: &mut Ledger, policy| ledger.apply(Operation::Get { policy: Some(policy) }, 1_000).unwrap().0;
        assert_eq!(get(&mut ledger, "ban"), Answer::Number(1));
        assert_eq!(get(&mut ledger, "fix_window"), Answer::Number(1));
        assert_eq!(hit_at(&mut ledger, 1_000).reason, Some(Reason::Banned));
    }
    // A ban that holds does not hold back an exception, and is there after it.
    let mut ledger = Ledger::new(banned_after(1)).unwrap();
    ledger.apply(Operation::Ban { policy: None, length: HOUR }, 0).unwrap();
    ledger.apply(Operation::Except { exception: Some(&Exception::allow()), until: 10 }, 0).unwrap();
    assert!(hit_at(&mut ledger, 9).allowed);
    assert_eq!(hit_at(&mut ledger, 10).retry_after, Some(HOUR - 10));
    ledger.apply(Operation::Except { exception: Some(&Exception::deny()), until: 20 }, 10).unwrap();
    let denied = hit_at(&mut ledger, 10);
    assert_eq!((denied.reason, denied.retry_after), (Some(Reason::Denied), Some(HOUR - 10)));
}

#[test]
fn the_numbers_of_a_ban_are_those_of_the_exception() {
    let mut ledger = Ledger::new(banned_after(1)).unwrap();
    let exception = Exception::new().with("ban", "after", 3_u64).unwrap().with("ban", "for", "2h").unwrap();
    ledger.apply(Operation::Except { exception: Some(&exception), until: HOUR }, 0).unwrap();
    assert!(hit_at(&mut ledger, 0).allowed);
    assert_eq!(hit_at(&mut ledger, 0).reason, None);
    assert_eq!(hit_at(&mut ledger, 0).reason, None);
    let banned = hit_at(&mut ledger, 0);
    assert_eq!((banned.reason, banned.retry_after), (Some(Reason::Banned), Some(2 * HOUR)));
}

#[test]
fn a_key_with_an_exception_is_not_evicted_and_half_of_the_keys_may_have_one() {
    let clock = ManualClock::new(0);
    let options = Options::new().max_keys(20).unwrap();
    let mut limiter = Limiter::<u32, _>::with_options(Policy::fix_window(3, "1h").unwrap(), &clock, options).unwrap();
    for key in 0..10 {
        limiter.except_for(&key, &Exception::deny(), "1d").unwrap();
    }
    let error = limiter.except_for(&10, &Exception::deny(), "1d").unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("20 keys")), ("full", true), "{error}");
    // One that has an exception may get another.
    limiter.except_for(&9, &Exception::allow(), "1d").unwrap();
    for key in 100..1_000 {
        assert!(limiter.hit(&key, 1).unwrap().allowed);
        assert!(limiter.len() <= 20);
    }
    for key in 0..9 {
        assert_eq!(limiter.hit(&key, 1).unwrap().reason, Some(Reason::Denied), "{key}");
    }
    assert!(limiter.reset(&3).is_ok() && limiter.reset_all(&4));
    assert_eq!(limiter.exception(&3).unwrap(), Some((Exception::deny(), DAY)));
    assert_eq!(limiter.exception(&4).unwrap(), Some((Exception::deny(), DAY)));
    // Once they have ended, others get their places.
    clock.set(DAY);
    assert!(limiter.hit(&3, 1).unwrap().allowed);
    limiter.except_for(&10, &Exception::deny(), "1d").unwrap();
    limiter.clean().unwrap();
    assert_eq!(limiter.exception(&3).unwrap(), None);
    assert_eq!(limiter.len(), 2);
}

#[test]
fn a_limiter_full_of_exceptions_denies_new_keys_until_the_first_ends() {
    let clock = ManualClock::new(0);
    let policy = || Policy::fix_window(3, "1s").unwrap();
    let mut large = Limiter::<u32, _>::new(policy(), &clock).unwrap();
    for key in 0..10 {
        large.except(&key, &Exception::deny(), 10_000 + u64::from(key)).unwrap();
    }
    let options = Options::new().max_keys(10).unwrap();
    let mut small = Limiter::<u32, _>::with_options(policy(), &clock, options).unwrap();
    small.restore(&large.snapshot().unwrap()).unwrap();
    let peeked = small.peek(&42, 1).unwrap();
    let denied = small.hit(&42, 1).unwrap();
    assert_eq!(denied, peeked);
    assert_eq!((denied.reason, denied.retry_after), (Some(Reason::Full), Some(10_000)));
    clock.set(10_000);
    assert!(small.hit(&42, 1).unwrap().allowed);
}

#[test]
fn a_key_that_grows_stale_keeps_its_exception() {
    let clock = ManualClock::new(0);
    let options = Options::new().key_older_than(1_000_u64).unwrap();
    let mut limiter = Limiter::<u32, _>::with_options(Policy::fix_window(3, "1h").unwrap(), &clock, options).unwrap();
    limiter.hit(&1, 2).unwrap();
    let twice = Exception::new().with("", "limit", 6_u64).unwrap();
    limiter.except_for(&1, &twice, "1h").unwrap();
    clock.set(5_000);
    limiter.clean().unwrap();
    assert_eq!(limiter.get(&1).unwrap(), 0);
    assert!(limiter.hit(&1, 6).unwrap().allowed);
    assert_eq!(limiter.exception(&1).unwrap().map(|(_, until)| until), Some(HOUR));
}
