//! `reset_after` is exact: then, and not a millisecond earlier, the key is as if it had never been used.

use proptest::prelude::*;
use tollgate::{Answer, Operation};

use crate::support::*;

fn reset_after_is_exact(kind: Kind) {
    let history = prop::collection::vec((anywhere(), acts()), 0..30);
    let future = prop::collection::vec((forward(), acts()), 0..10);
    let weight = 1..=3_u64;
    check(
        (specs(kind), starts(), history, anywhere(), weight, future),
        |(spec, start, history, step, cost, future)| {
            let (mut ledger, now) = after(&spec, start, &history);
            let now = step.from(now, spec.period());
            let decision = hit(&mut ledger, cost, now);
            let reset_at = now + decision.reset_after;
            let expires_at = ledger.expires_at(now).unwrap();
            if decision.reset_after > 0 {
                prop_assert_eq!(expires_at, reset_at);
                prop_assert!(ledger.record(reset_at - 1).unwrap().is_some());
                prop_assert_eq!(ledger.expires_at(reset_at - 1).unwrap(), reset_at);
            } else if kind.is_fix_window() {
                // Set to 0, its window is still there, but it is no different from any other.
                prop_assert!(expires_at == 0 || decision.count == 0);
            } else {
                prop_assert_eq!(expires_at, 0);
            }
            let at_end = reset_at.max(expires_at);
            prop_assert_eq!(ledger.expires_at(at_end).unwrap(), 0);
            prop_assert_eq!(ledger.record(at_end).unwrap(), None);

            // A bucket that was set to full, or to empty, may still be a little ahead of the clock.
            if decision.reset_after == 0 {
                return Ok(());
            }
            let (mut unused, mut now) = (spec.ledger(), reset_at);
            for (step, act) in future {
                let operation = act.operation_or_reserve(&spec);
                prop_assert_eq!(ledger.apply(operation, now).unwrap().0, unused.apply(operation, now).unwrap().0);
                now = step.from(now, spec.period());
            }
            Ok(())
        },
    );
}

/// A reset key is a key never used, also to what is stored of it.
fn a_reset_forgets_everything(kind: Kind) {
    let history = prop::collection::vec((anywhere(), acts()), 0..10);
    check((specs(kind), starts(), history, weights()), |(spec, start, history, weight)| {
        let (mut ledger, now) = after(&spec, start, &history);
        let is_used = ledger.record(now).unwrap().is_some();
        let (answer, changed) = ledger.apply(Operation::ResetAll, now).unwrap();
        prop_assert!(answer == Answer::Done && (changed || !is_used));
        prop_assert_eq!(ledger.apply(Operation::ResetAll, now).unwrap(), (Answer::Done, false));
        prop_assert_eq!(ledger.record(now).unwrap(), None);
        let cost = fit(weight, spec.limit);
        prop_assert_eq!(hit(&mut ledger, cost, now), hit(&mut spec.ledger(), cost, now));
        Ok(())
    });
}

each_algorithm!(reset_after_is_exact a_reset_forgets_everything);
