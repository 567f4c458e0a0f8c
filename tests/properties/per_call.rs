//! Numbers for one call: never more than the larger policy would admit, however keys are swept in between.

use proptest::prelude::*;
use tollgate::{Denied, Limiter, ManualClock, Options, Policies};

use crate::admission::Past;
use crate::model::{Model, Verdict};
use crate::support::*;

/// Another policy of the same algorithm and `scale`, as a call may bring it.
fn other_numbers(spec: Spec) -> impl Strategy<Value = (Spec, Spec)> {
    (1..=300_u64, 1..=50_u64).prop_map(move |(limit, rate)| (spec.clone(), Spec { limit, rate, ..spec.clone() }))
}

fn per_call_numbers_admit_no_more_than_the_larger_policy(kind: Kind) {
    let specs = specs(kind).prop_flat_map(other_numbers);
    let hits = prop::collection::vec((forward(), any::<bool>(), weights()), 1..60);
    check((specs, starts(), 1..=100_u64, hits), |((own, call), start, period, hits)| {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(&own, &clock, Options::new().clean_period(period).unwrap());
        let policies = Policies::from(call.policy());
        let larger = Spec { limit: own.limit.max(call.limit), rate: own.rate.max(call.rate), ..own.clone() };
        // Under a lower limit, denied hits that count are kept up to that limit.
        if kind == SlidingWindow && own.denied == Denied::Count && call.limit > own.limit {
            return Ok(());
        }
        let (mut past, mut now) = (Past::new(larger), start);
        for (step, by_call, weight) in hits {
            now = step.from(now, own.period());
            clock.set(now);
            // Another key's hits do the sweeping.
            for _ in 0..3 {
                limiter.hit(&1, 1).unwrap();
            }
            let cost = fit(weight, call.limit);
            let decision = match by_call {
                true => limiter.hit_with(&0, cost, &policies).unwrap(),
                false => limiter.hit(&0, cost).unwrap(),
            };
            past.note(cost, now, decision.allowed);
        }
        past.check()
    });
}

/// A key is decided by whichever numbers a call brings, also when it is swept whenever it may be.
fn per_call_numbers_decide_by_the_same_state(kind: Kind) {
    let specs = specs(kind).prop_flat_map(other_numbers);
    let hits = prop::collection::vec((forward(), any::<bool>(), weights()), 1..60);
    check((specs, starts(), 1..=100_u64, hits), |((own, call), start, period, hits)| {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(&own, &clock, Options::new().clean_period(period).unwrap());
        let policies = Policies::from(call.policy());
        let (mut model, mut now) = (Model::new(own.clone()), start);
        for (step, by_call, weight) in hits {
            now = step.from(now, own.period());
            clock.set(now);
            limiter.hit(&1, 1).unwrap();
            limiter.clean().unwrap();
            let cost = fit(weight, call.limit);
            let limit = if by_call { call.limit } else { own.limit };
            model.spec = if by_call { call.clone() } else { own.clone() };
            model.keep = own.limit.max(limit);
            let expected = model.hit(cost, now);
            let decision = match by_call {
                true => limiter.hit_with(&0, cost, &policies).unwrap(),
                false => limiter.hit(&0, cost).unwrap(),
            };
            prop_assert_eq!(decision.limit, limit);
            prop_assert_eq!(Verdict::from(decision), expected);
        }
        Ok(())
    });
}

each_counting_algorithm!(
    per_call_numbers_admit_no_more_than_the_larger_policy
    per_call_numbers_decide_by_the_same_state
);

/// The numbers of one call are for that call: the others answer as if it had been made with their own.
#[test]
fn the_next_call_has_the_limiters_own_numbers_again() {
    let clock = ManualClock::new(0);
    for kind in COUNTING_KINDS {
        let own = Spec { kind, limit: 5, scale: 1_000, rate: 5, denied: Denied::Free };
        let call = Policies::from(Spec { limit: 2, rate: 1, ..own.clone() }.policy());
        let mut limiter: Limiter<u8, _> = limiter(&own, &clock, Options::new());
        assert!(!limiter.hit_with(&0, 3, &call).unwrap().allowed, "{kind:?}");
        assert!(limiter.hit(&0, 3).unwrap().allowed, "{kind:?}");
        assert_eq!(limiter.hit(&0, 1).unwrap().limit, 5, "{kind:?}");
    }
}

/// A larger bucket starts full for a new key, and what it spent counts for the limiter's own as well, also after a restore.
#[test]
fn a_larger_bucket_is_full_once() {
    let clock = ManualClock::new(0);
    let own = Spec { kind: TokenBucket, limit: 10, scale: 1_000, rate: 1, denied: Denied::Free };
    let larger = Policies::from(Spec { limit: 100, ..own.clone() }.policy());
    let mut first: Limiter<u8, _> = limiter(&own, &clock, Options::new());
    assert!(first.hit_with(&0, 60, &larger).unwrap().allowed);
    assert!(!first.hit_with(&0, 60, &larger).unwrap().allowed);

    let mut second: Limiter<u8, _> = limiter(&own, &clock, Options::new());
    second.restore(&first.snapshot().unwrap()).unwrap();
    assert!(!second.hit_with(&0, 60, &larger).unwrap().allowed);
    assert!(!second.hit(&0, 1).unwrap().allowed);
}
