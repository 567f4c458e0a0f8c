//! Bans: none begins early, ends early, or begins twice from the same denials, and each is as long as its policy says.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{Answer, Costs, Ledger, ManualClock, Operation, Policies, Policy, Reason, ReservationId};

use crate::ban_oracle::{Numbers, Oracle};
use crate::kept::{InMemory, Stepping};
use crate::support::*;

fn numbers() -> impl Strategy<Value = Numbers> + Clone {
    let length = prop_oneof![3 => 1..=40_u64, 2 => 41..=3_000_u64, 1 => Just(3_600_000)];
    (1..=5_u64, prop_oneof![1..=40_u64, 41..=3_000_u64], length, 1..=4_u64, 0..=20_u64).prop_map(
        |(after, scale, length, factor, more)| {
            let most = if factor == 1 { length } else { length + length * more / 2 };
            Numbers { after, scale, length, factor, most }
        },
    )
}

/// Something done to a key.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Hit(u64),
    Peek(u64),
    Reserve(u64),
    Settle(u64),
    Ban(u64),
    Unban,
    Reset,
}

fn deeds() -> impl Strategy<Value = Deed> + Clone {
    prop_oneof![
        12 => weights().prop_map(Deed::Hit),
        3 => weights().prop_map(Deed::Peek),
        3 => weights().prop_map(Deed::Reserve),
        3 => weights().prop_map(Deed::Settle),
        1 => (1..=2_000_u64).prop_map(Deed::Ban),
        1 => Just(Deed::Unban),
        1 => Just(Deed::Reset),
    ]
}

/// A key under the policies, wherever it is stored.
trait Subject {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer;
}

impl Subject for Ledger {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        Ledger::apply(self, operation, now).unwrap().0
    }
}

impl Subject for Stepping {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        self.step(operation, now)
    }
}

impl Subject for InMemory<'_> {
    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        let limiter = self.next(now);
        match operation {
            Operation::Hit { cost } => Answer::Decision(limiter.hit(&1, cost).unwrap()),
            Operation::Peek { cost } => Answer::Decision(limiter.peek(&1, cost).unwrap()),
            Operation::Ban { length, .. } => Answer::Number(limiter.ban(&1, length).unwrap()),
            Operation::Unban { .. } => {
                limiter.unban(&1).unwrap();
                Answer::Number(0)
            }
            Operation::Get { policy } => Answer::Number(limiter.get_policy(&1, policy).unwrap()),
            Operation::ExpiresAt { policy } => Answer::Number(limiter.expires_at_policy(&1, policy).unwrap()),
            Operation::Reset => {
                limiter.reset(&1).unwrap();
                Answer::Done
            }
            other => panic!("{other:?} is not of this test"),
        }
    }
}

/// Compares a key with the oracle. The other policy is compared with a ledger of its own, which no ban holds back.
fn compare(
    subject: &mut dyn Subject,
    (spec, numbers): (&Spec, &Numbers),
    start: u64,
    deeds: &[(Move, Deed)],
    reserves: bool,
) -> TestCaseResult {
    let (mut oracle, mut alone, mut now) = (Oracle::default(), spec.ledger(), start);
    let mut open: Vec<(ReservationId, ReservationId)> = Vec::new();
    for &(step, deed) in deeds {
        now = step.from(now, numbers.scale.max(numbers.length));
        match deed {
            Deed::Hit(weight) | Deed::Peek(weight) | Deed::Reserve(weight) => {
                let cost = fit(weight, spec.limit);
                // A peek moves no state.
                let mut after = oracle.clone();
                let at = after.time(now);
                let held = after.held_until(at);
                let random = next_random();
                let operation = match deed {
                    Deed::Reserve(_) if reserves => {
                        Operation::Reserve { costs: Costs::All(cost), ttl: Some(500), random }
                    }
                    Deed::Peek(_) => Operation::Peek { cost },
                    _ => Operation::Hit { cost },
                };
                let other = match (operation, held) {
                    // A ban charges nothing, but a state that is far ahead follows the clock.
                    (Operation::Reserve { .. } | Operation::Hit { .. }, Some(_)) => {
                        let peeked = peek(&mut alone, cost, now);
                        alone.apply(Operation::Hit { cost: 0 }, now).unwrap();
                        Answer::Decision(peeked)
                    }
                    _ => Ledger::apply(&mut alone, operation, now).unwrap().0,
                };
                let answer = subject.apply(operation, now);
                let (other_decision, own) = (decision(other), decision(answer));
                let begins = held.is_none() && !other_decision.allowed && cost > 0 && other_decision.reason.is_none();
                if begins {
                    after.deny(at, numbers);
                }
                let unchanged = peek(&mut alone, 0, now);
                prop_assert_eq!(after.difference(&own, (&other_decision, &unchanged), at, now), None);
                if !matches!(deed, Deed::Peek(_)) {
                    oracle = after;
                }
                if let (Answer::Reserved { id: Some(own), .. }, Answer::Reserved { id: Some(other), .. }) =
                    (answer, other)
                {
                    open.push((own, other));
                }
            }
            Deed::Settle(weight) => {
                if let Some((own, other)) = open.pop() {
                    let used = Some(Costs::All(weight));
                    let settled = subject.apply(Operation::Settle { id: own, used }, now);
                    prop_assert_eq!(
                        settled,
                        Ledger::apply(&mut alone, Operation::Settle { id: other, used }, now).unwrap().0
                    );
                }
            }
            Deed::Ban(length) => {
                let at = oracle.time(now);
                oracle.begin(at, length as i64);
                let until = subject.apply(Operation::Ban { policy: Some("ban"), length }, now);
                prop_assert_eq!(until, Answer::Number((at + length as i64) as u64));
            }
            Deed::Unban => {
                oracle = Oracle::default();
                subject.apply(Operation::Unban { policy: None }, now);
            }
            Deed::Reset => {
                oracle = Oracle::default();
                Ledger::apply(&mut alone, Operation::Reset, now).unwrap();
                subject.apply(Operation::Reset, now);
            }
        }
        let mut read = oracle.clone();
        let at = read.time(now);
        let get = subject.apply(Operation::Get { policy: Some("ban") }, now);
        prop_assert_eq!(get, Answer::Number(read.violations(at)));
        let ends = Some(read.ends_at() as u64).filter(|&ends| ends > now).unwrap_or(0);
        prop_assert_eq!(subject.apply(Operation::ExpiresAt { policy: Some("ban") }, now), Answer::Number(ends));
    }
    Ok(())
}

fn both(spec: &Spec, numbers: &Numbers) -> Policies {
    Policies::new([spec.policy(), numbers.policy()]).unwrap()
}

fn a_ban_is_as_its_definition_says(kind: Kind) {
    let deeds = prop::collection::vec((anywhere(), deeds()), 1..60);
    check((specs(kind), numbers(), starts(), deeds, any::<u64>()), |(mut spec, numbers, start, deeds, sweeps)| {
        // Several policies never count denied hits.
        spec.denied = tollgate::Denied::Free;
        let policies = both(&spec, &numbers);
        let case = (&spec, &numbers);
        compare(&mut Ledger::new(policies.clone()).unwrap(), case, start, &deeds, true)?;
        // A state that has ended is not stored, so a clock that steps back behind its end does not find it.
        let deeds: Vec<_> = deeds.into_iter().map(|(step, deed)| (step.not_back(), deed)).collect();
        compare(&mut Stepping(policies.clone(), None), case, start, &deeds, true)?;
        let clock = ManualClock::new(start);
        compare(&mut InMemory::new(policies, &clock, sweeps), case, start, &deeds, false)
    });
}

/// From the decisions alone: what a client sees of a key that is only hit, under a clock that does not step back.
fn a_ban_follows_from_the_denials_before_it(kind: Kind) {
    let hits = prop::collection::vec((forward(), 1..=3_u64), 1..120);
    check((specs(kind), numbers(), starts(), hits), |(mut spec, numbers, start, hits)| {
        spec.denied = tollgate::Denied::Free;
        let mut ledger = Ledger::new(both(&spec, &numbers)).unwrap();
        // The denials since the last ban, the end of the last ban, and its length.
        let (mut denials, mut until, mut last, mut now): (Vec<u64>, u64, u64, u64) = (Vec::new(), 0, 0, start);
        for (step, cost) in hits {
            now = step.from(now, numbers.scale);
            let decision = hit(&mut ledger, cost, now);
            let is_banned = decision.reason == Some(Reason::Banned);
            if now < until {
                prop_assert!(is_banned, "it ended early: {decision:?}");
            } else if is_banned {
                denials.push(now);
                let first = denials[denials.len() - numbers.after as usize];
                prop_assert!(now - first < numbers.scale, "it began early: {denials:?}");
                let is_longer = last > 0 && numbers.factor > 1 && now - until < last;
                last = if is_longer { (last * numbers.factor).min(numbers.most) } else { numbers.length };
                prop_assert!(decision.retry_after.is_none_or(|wait| wait >= last));
                prop_assert!(decision.more_after >= last);
                (until, denials) = (now + last, Vec::new());
            } else if !decision.allowed {
                denials.push(now);
            }
        }
        Ok(())
    });
}

each_counting_algorithm!(
    a_ban_is_as_its_definition_says
    a_ban_follows_from_the_denials_before_it
);

/// Two processes with different numbers, as while a deploy is under way.
#[test]
fn changed_numbers_apply_to_the_ban_as_it_is() {
    let window = Policy::fix_window_per_key(1, "1h").unwrap();
    let under = |after, scale: &str, length: &str| {
        Policies::new([window.clone(), Policy::ban(after, scale, length).unwrap()]).unwrap()
    };
    let (old, new) = (under(3, "10m", "1h"), under(2, "1m", "1d"));
    let mut subject = Stepping(old.clone(), None);
    let hit = Operation::Hit { cost: 1 };
    for _ in 0..2 {
        subject.apply(hit, 0);
    }
    // The window is that of the first denial, the count and the length those of the call.
    subject.0 = new.clone();
    let banned = decision(subject.apply(hit, 599_999));
    assert_eq!((banned.reason, banned.more_after), (Some(Reason::Banned), 86_400_000));
    subject.0 = old;
    let still = decision(subject.apply(hit, 599_999 + 86_399_999));
    assert_eq!((still.reason, still.more_after), (Some(Reason::Banned), 1));
    // Without the ban, its state stays; with it again, the ban holds.
    subject.0 = window.into();
    assert!(decision(subject.apply(hit, 599_999 + 86_399_999)).allowed);
    subject.0 = new;
    assert_eq!(decision(subject.apply(hit, 599_999 + 86_399_999)).reason, Some(Reason::Banned));
}
