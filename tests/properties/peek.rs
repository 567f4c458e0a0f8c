//! Reads change nothing: `peek`, `get`, `expires_at`, a hit of cost 0, and a denied hit that is free.

use proptest::prelude::*;
use tollgate::{Denied, ManualClock, Operation, Options};

use crate::support::*;

fn peek_says_what_a_hit_then_answers(kind: Kind) {
    let history = prop::collection::vec((anywhere(), acts()), 0..30);
    check((specs(kind), starts(), history, anywhere(), weights()), |(spec, start, history, step, weight)| {
        let (mut ledger, now) = after(&spec, start, &history);
        let (now, cost) = (step.from(now, spec.period()), fit(weight, spec.limit));
        let record = ledger.record(now).unwrap();
        let peeked = peek(&mut ledger, cost, now);
        for operation in [Operation::Get { policy: None }, Operation::ExpiresAt { policy: None }] {
            prop_assert!(!ledger.apply(operation, now).unwrap().1);
        }
        prop_assert_eq!(ledger.record(now).unwrap(), record);
        prop_assert_eq!(hit(&mut ledger, cost, now), peeked);
        Ok(())
    });
}

/// Only a clock that fell back by more than a period may leave a trace: the state follows it.
fn a_free_denial_and_a_cost_of_nothing_change_nothing(kind: Kind) {
    let history = prop::collection::vec((forward(), acts()), 0..30);
    check((specs(kind), starts(), history, a_little_back(), weights()), |(mut spec, start, history, step, weight)| {
        spec.denied = Denied::Free;
        let (mut ledger, now) = after(&spec, start, &history);
        let (now, cost) = (step.from(now, spec.period()), fit(weight, spec.limit));
        let record = ledger.record(now).unwrap();
        let (_, changed) = ledger.apply(Operation::Hit { cost: 0 }, now).unwrap();
        prop_assert!(!changed);
        prop_assert_eq!(ledger.record(now).unwrap(), record.clone());
        let (answer, changed) = ledger.apply(Operation::Hit { cost }, now).unwrap();
        prop_assert_eq!(changed, cost > 0 && decision(answer).allowed);
        if !changed {
            prop_assert_eq!(ledger.record(now).unwrap(), record);
        }
        Ok(())
    });
}

/// The same in a limiter, where it must not keep a key from growing too old either.
fn a_free_denial_does_not_touch_a_key(kind: Kind) {
    check((specs(kind), starts(), 1..=3_u64), |(mut spec, start, weight)| {
        spec.denied = Denied::Free;
        let clock = ManualClock::new(start);
        let age = 100;
        let options = Options::new().key_older_than(age).unwrap();
        let mut limiter = limiter(&spec, &clock, options);
        limiter.inc(&1, (spec.limit * weight) as i64).unwrap();
        let unused = limiter.peek(&2, 1).unwrap();
        clock.advance(age - 1);
        let snapshot = limiter.snapshot().unwrap();
        limiter.hit(&1, spec.limit + 1).unwrap();
        limiter.hit(&1, 0).unwrap();
        prop_assert_eq!(limiter.snapshot().unwrap(), snapshot);
        clock.advance(1);
        prop_assert_eq!(limiter.peek(&1, 1).unwrap().allowed, unused.allowed);
        prop_assert_eq!(limiter.expires_at(&1).unwrap(), 0);
        Ok(())
    });
}

each_algorithm!(peek_says_what_a_hit_then_answers);
each_counting_algorithm!(
    a_free_denial_and_a_cost_of_nothing_change_nothing
    a_free_denial_does_not_touch_a_key
);
