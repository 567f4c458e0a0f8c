//! A clock that steps back: a little gains a client nothing, and a lot freezes no key.

use proptest::prelude::*;
use tollgate::{Answer, Operation};

use crate::support::*;

fn get(ledger: &mut tollgate::Ledger, now: u64) -> u64 {
    match ledger.apply(Operation::Get { policy: None }, now).unwrap().0 {
        Answer::Number(count) => count,
        other => panic!("{other:?} is not a count"),
    }
}

fn a_step_back_of_up_to_a_period_gains_nothing(kind: Kind) {
    let history = prop::collection::vec((forward(), acts()), 0..30);
    check((specs(kind), starts(), history, 1..=1_000_u64, weights()), |(spec, start, history, back, weight)| {
        let (mut ledger, now) = after(&spec, start, &history);
        let cost = fit(weight, spec.limit).max(1);
        // Something is taken now, so that this is the time the key knows of.
        hit(&mut ledger, 1, now);
        let earlier = Move::Back(back).from(now, spec.period());
        let (now_says, then_says) = (peek(&mut ledger, cost, now), peek(&mut ledger, cost, earlier));
        prop_assert!(now_says.allowed || !then_says.allowed, "{now_says:?} but {then_says:?}");
        prop_assert!(peek(&mut ledger, 0, now).remaining >= peek(&mut ledger, 0, earlier).remaining);
        // Waits are given from the clock's own reading: to the same moment, unless it has to wait for less now.
        if let (Some(wait), Some(longer)) = (now_says.retry_after, then_says.retry_after) {
            let same = earlier + longer == now + wait;
            // A slot ends at the latest a ttl from the clock's reading.
            let sooner = kind == Concurrency && earlier + longer <= now + wait;
            prop_assert!(now_says.allowed || same || sooner, "{now_says:?} but {then_says:?}");
        }
        Ok(())
    });
}

fn a_longer_step_back_keeps_the_content_and_frees_the_key_in_time(kind: Kind) {
    let history = prop::collection::vec((a_little_back(), weights()), 0..30);
    check((specs(kind), starts(), history, 1..=9_000_u64), |(spec, start, history, back)| {
        let history: Vec<_> = history.into_iter().map(|(step, weight)| (step, Act::Hit(weight))).collect();
        let (mut ledger, now) = after(&spec, start + 20 * spec.period(), &history);
        if !hit(&mut ledger, 1, now).allowed {
            ledger.apply(Operation::ResetAll, now).unwrap();
            hit(&mut ledger, spec.limit, now);
        }
        let held = get(&mut ledger, now);
        // More than a period before the window that now is in.
        let earlier = Move::FarBack(1_000 + back).from(now, spec.period()) - 1;

        // The weight of a counter's last window depends on how much of this one is over.
        if kind != SlidingCounter {
            prop_assert_eq!(get(&mut ledger, earlier), held);
        }
        hit(&mut ledger, 1, earlier);
        let full_periods = if kind == SlidingCounter { 2 } else { 1 };
        let decision = peek(&mut ledger, spec.limit, earlier + full_periods * spec.period());
        prop_assert!(decision.allowed, "frozen: {decision:?}");
        Ok(())
    });
}

each_algorithm!(
    a_step_back_of_up_to_a_period_gains_nothing
    a_longer_step_back_keeps_the_content_and_frees_the_key_in_time
);
