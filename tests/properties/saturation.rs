//! At the ends of the range: accumulators saturate instead of wrapping, and stay denied.

use proptest::prelude::*;
use tollgate::{Denied, Ledger, MAX, Operation, Policy, Record};

use crate::model::Model;
use crate::support::*;

/// Numbers of every size up to the largest, and close to powers of two.
fn sizes() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![
        4 => (0..53_u32, 0..3_u64).prop_map(|(bits, off)| ((1_u64 << bits) + off).saturating_sub(1).clamp(1, MAX)),
        1 => Just(MAX),
        1 => Just(1),
    ]
}

/// Policies of any size. A stored log has at most 1,000 entries, so a sliding window's limit stays below that.
fn extreme(kind: Kind) -> impl Strategy<Value = Spec> {
    let denied = prop_oneof![Just(Denied::Count), Just(Denied::Free)];
    (sizes(), sizes(), sizes(), denied).prop_filter_map("a period out of range", move |(limit, scale, rate, denied)| {
        let denied = if kind.is_bucket() { Denied::Free } else { denied };
        let limit = if kind == SlidingWindow { limit.min(1_000) } else { limit };
        let period = (u128::from(limit) * u128::from(scale)).div_ceil(u128::from(rate));
        (!kind.is_bucket() || period <= u128::from(MAX)).then_some(Spec { kind, limit, scale, rate, denied })
    })
}

#[derive(Clone, Copy, Debug)]
enum Huge {
    Hit(u64),
    Inc(u64),
    Set(u64),
}

fn nothing_wraps_and_everything_can_be_stored(kind: Kind) {
    let act = prop_oneof![
        3 => sizes().prop_map(Huge::Hit),
        1 => Just(Huge::Hit(1)),
        2 => sizes().prop_map(Huge::Inc),
        1 => sizes().prop_map(Huge::Set),
    ];
    let time = prop_oneof![sizes(), Just(0), Just(1_767_225_600_000)];
    let steps = prop::collection::vec((any::<bool>(), time, act), 1..20);
    check((extreme(kind), steps), |(spec, steps)| {
        let (mut ledger, mut model) = (spec.ledger(), Model::new(spec.clone()));
        let mut now = 0;
        for (moves, to, act) in steps {
            now = if moves { to } else { now };
            let operation = match act {
                Huge::Hit(cost) => Operation::Hit { cost },
                Huge::Inc(cost) => Operation::Inc { policy: None, cost: cost as i64 },
                Huge::Set(count) if kind == TokenBucket => {
                    Operation::Set { policy: None, count: count.min(spec.limit) }
                }
                Huge::Set(count) => Operation::Set { policy: None, count },
            };
            let (answer, _) = ledger.apply(operation, now).unwrap();
            if let Operation::Hit { cost } = operation {
                let fits = model.fits(cost, now);
                let decision = decision(answer);
                prop_assert!(decision.count <= MAX);
                // What saturated may be forgotten sooner than it would be, but never while it is past the limit.
                let bucket = kind.is_bucket();
                prop_assert!(bucket || decision.allowed == fits, "{decision:?}, {model:?} at {now}");
                if let Some(wait @ 1..) = decision.retry_after {
                    // A debt may take all of time or longer, and all of time is the longest wait there is.
                    if now + wait <= MAX && !(bucket && wait == MAX) {
                        prop_assert!(hit(&mut ledger.clone(), cost, now + wait).allowed, "{decision:?}");
                    }
                    if now + wait - 1 <= MAX {
                        prop_assert!(!hit(&mut ledger.clone(), cost, now + wait - 1).allowed, "{decision:?}");
                    }
                }
                if fits || spec.denied == Denied::Count {
                    model.charge(cost, now);
                } else {
                    model = model.followed(now);
                }
            } else {
                let _ = model.apply(operation, now);
            }
            if let Some(record) = ledger.record(now).unwrap() {
                let json = serde_json::to_string(&record).unwrap();
                let mut again = spec.ledger();
                again.load(&serde_json::from_str::<Record>(&json).unwrap(), now).unwrap();
                prop_assert_eq!(again.record(now).unwrap(), Some(record));
            }
        }
        Ok(())
    });
}

/// Used as much as can be, again and again: denied, and denied still.
fn what_has_saturated_stays_denied(kind: Kind) {
    check((extreme(kind), starts()), |(spec, now)| {
        let mut ledger = spec.ledger();
        for _ in 0..5 {
            ledger.apply(Operation::Inc { policy: None, cost: MAX as i64 }, now).unwrap();
        }
        let decision = hit(&mut ledger, 1, now);
        prop_assert!(!decision.allowed && decision.remaining == 0, "{decision:?}");
        prop_assert!(decision.retry_after.is_some_and(|wait| wait > 0) && decision.reset_after > 0, "{decision:?}");
        prop_assert!(ledger.expires_at(now).unwrap() > now);
        prop_assert!(!hit(&mut ledger, 1, now).allowed);
        Ok(())
    });
}

each_counting_algorithm!(nothing_wraps_and_everything_can_be_stored what_has_saturated_stays_denied);

/// In memory a log may be kept for any limit.
#[test]
fn a_log_for_the_largest_limit_saturates_and_can_be_restored() {
    let clock = tollgate::ManualClock::new(1_000);
    let policy = Policy::sliding_window(MAX, "1m").unwrap();
    let mut limiter = tollgate::Limiter::<u8, _>::new(policy.clone(), &clock).unwrap();
    for _ in 0..3 {
        assert!(limiter.inc(&1, MAX as i64).unwrap() <= MAX);
    }
    assert!(!limiter.hit(&1, 1).unwrap().allowed);
    let snapshot = limiter.snapshot().unwrap();
    let mut again = tollgate::Limiter::<u8, _>::new(policy, &clock).unwrap();
    again.restore(&snapshot).unwrap();
    assert!(!again.hit(&1, 1).unwrap().allowed);
    assert_eq!(again.get(&1), limiter.get(&1));
}

/// A debt that takes longer than all of time is not forgotten.
#[test]
fn a_debt_past_the_end_of_time_is_kept() {
    for policy in [Policy::token_bucket(1, 1, "1d").unwrap(), Policy::leaky_bucket(1, 1, "1d").unwrap()] {
        let mut ledger = Ledger::new(policy).unwrap();
        ledger.apply(Operation::Inc { policy: None, cost: MAX as i64 }, 1_000).unwrap();
        for now in [1_000, 2_000, MAX] {
            let decision = hit(&mut ledger, 1, now);
            assert!(!decision.allowed && decision.retry_after.is_some_and(|wait| wait > 0), "{decision:?}");
            assert!(ledger.expires_at(now).unwrap() > now);
        }
    }
}

/// Numbers for one call may be as far from the limiter's own as they can be.
#[test]
fn the_widest_numbers_of_two_policies_do_not_overflow() {
    let clock = tollgate::ManualClock::new(1_767_225_600_000);
    let own = Policy::token_bucket(MAX, MAX, "1d").unwrap();
    let call = tollgate::Policies::from(Policy::token_bucket(1, 1, "1d").unwrap());
    let mut limiter = tollgate::Limiter::<u8, _>::new(own, &clock).unwrap();
    assert!(limiter.hit_with(&1, 1, &call).unwrap().allowed);
    clock.advance(120_000);
    limiter.hit(&2, 1).unwrap();
    // The level comes along with the clock, ends by its own rate, and flows at the faster one of the call.
    clock.set(0);
    assert!(!limiter.hit_with(&1, 1, &call).unwrap().allowed);
    assert_eq!(limiter.expires_at(&1), Ok(86_400_000));
    assert_eq!(limiter.clean(), Ok(0));
    assert!(limiter.hit(&1, MAX - 1).unwrap().allowed);
    clock.set(1);
    assert!(limiter.hit(&1, 1).unwrap().allowed);
}
