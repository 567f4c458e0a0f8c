//! `retry_after` is exact: the hit is allowed then, and not a millisecond earlier, if nothing else comes.

use proptest::prelude::*;

use crate::support::*;

fn retry_after_is_exact(kind: Kind) {
    let history = prop::collection::vec((anywhere(), acts()), 0..30);
    check((specs(kind), starts(), history, anywhere(), weights()), |(spec, start, history, step, weight)| {
        let (mut ledger, now) = after(&spec, start, &history);
        let (now, cost) = (step.from(now, spec.period()), fit(weight, spec.limit));
        let decision = hit(&mut ledger, cost, now);
        match decision.retry_after {
            wait if decision.allowed => prop_assert_eq!(wait, Some(0)),
            None => prop_assert!(cost > spec.limit),
            Some(wait) => {
                prop_assert!(cost <= spec.limit && wait > 0, "{decision:?}");
                let early = hit(&mut ledger.clone(), cost, now + wait - 1);
                prop_assert!(!early.allowed, "too early by a millisecond: {decision:?}, then {early:?}");
                let then = hit(&mut ledger.clone(), cost, now + wait);
                prop_assert!(then.allowed, "not yet: {decision:?}, then {then:?}");
            }
        }
        Ok(())
    });
}

/// `remaining` says how many hits of cost 1 fit: that many do, and no more.
fn remaining_is_exact(kind: Kind) {
    let history = prop::collection::vec((anywhere(), acts()), 0..30);
    check((specs(kind), starts(), history, anywhere()), |(spec, start, history, step)| {
        let (mut ledger, now) = after(&spec, start, &history);
        let now = step.from(now, spec.period());
        for left in (0..peek(&mut ledger, 0, now).remaining).rev() {
            let decision = hit(&mut ledger, 1, now);
            prop_assert!(decision.allowed && decision.remaining == left, "{decision:?}");
        }
        prop_assert!(!hit(&mut ledger, 1, now).allowed);
        Ok(())
    });
}

each_algorithm!(retry_after_is_exact remaining_is_exact);
