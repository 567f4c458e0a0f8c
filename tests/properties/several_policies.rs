//! Several policies are one decision: all take, or none does.

use proptest::prelude::*;
use tollgate::{Answer, Denied, Ledger, Operation, Policies};

use crate::support::*;

/// Two to four policies of any algorithms, each with a name.
pub(crate) fn sets() -> impl Strategy<Value = Vec<Spec>> {
    prop::collection::vec(any_spec(), 2..=4).prop_map(|mut specs| {
        specs.iter_mut().for_each(|spec| spec.denied = Denied::Free);
        specs
    })
}

fn together(specs: &[Spec]) -> Policies {
    let named = specs.iter().enumerate().map(|(position, spec)| spec.policy().named(&position.to_string()).unwrap());
    Policies::new(named).unwrap()
}

#[test]
fn a_hit_is_all_or_nothing_and_says_which_denied() {
    let hits = prop::collection::vec((anywhere(), weights()), 1..40);
    check_cases(768, (sets(), starts(), hits), |(specs, mut now, hits)| {
        let mut all = Ledger::new(together(&specs)).unwrap();
        let mut alone: Vec<Ledger> = specs.iter().map(Spec::ledger).collect();
        let period = specs.iter().map(Spec::period).min().unwrap();
        for (step, weight) in hits {
            now = step.from(now, period);
            let cost = fit(weight, specs[0].limit);
            let each: Vec<_> = alone.iter_mut().map(|ledger| peek(ledger, cost, now)).collect();
            let before = all.record(now).unwrap();
            let peeked = peek(&mut all, cost, now);
            prop_assert_eq!(all.record(now).unwrap(), before.clone());
            let (answer, changed) = all.apply(Operation::Hit { cost }, now).unwrap();
            let decision = decision(answer);
            prop_assert_eq!(decision, peeked);

            let denied: Vec<usize> = (0..each.len()).filter(|&position| !each[position].allowed).collect();
            prop_assert_eq!(decision.allowed, denied.is_empty());
            prop_assert_eq!(decision.violated.iter().collect::<Vec<_>>(), denied.clone());
            // The tightest numbers: the least remaining, or the longest wait of those that denied.
            let tightest = match decision.allowed {
                true => each.iter().map(|decision| decision.remaining).min().unwrap(),
                false => {
                    let wait = |position: &usize| each[*position].retry_after.unwrap_or(u64::MAX);
                    prop_assert_eq!(decision.retry_after.unwrap_or(u64::MAX), denied.iter().map(wait).max().unwrap());
                    decision.remaining
                }
            };
            // More remains when more does under each policy, or all of a limit that is no more.
            let more_after = match decision.allowed {
                true => {
                    let least = each.iter().filter(|decision| decision.remaining == tightest);
                    least.map(|decision| decision.more_after).max().unwrap()
                }
                false => {
                    let more = |(spec, ledger): (&Spec, &mut Ledger)| {
                        peek(ledger, (decision.remaining + 1).min(spec.limit), now).retry_after.unwrap()
                    };
                    specs.iter().zip(&mut alone).map(more).max().unwrap()
                }
            };
            prop_assert_eq!(decision.more_after, more_after);
            let binding = each[decision.policy];
            prop_assert_eq!(decision.remaining, tightest);
            prop_assert_eq!(
                (decision.count, decision.limit, decision.remaining, decision.retry_after),
                (binding.count, binding.limit, binding.remaining, binding.retry_after)
            );
            let charged = if decision.allowed { cost } else { 0 };
            let resets = alone.iter_mut().map(|ledger| peek(ledger, charged, now).reset_after);
            prop_assert_eq!(decision.reset_after, resets.max().unwrap());
            for ledger in &mut alone {
                // A hit of nothing takes nothing, but lets a state follow a clock that fell far back.
                hit(ledger, if decision.allowed { cost } else { 0 }, now);
            }
            if !changed {
                prop_assert_eq!(all.record(now).unwrap(), before);
            }
            for (position, ledger) in alone.iter_mut().enumerate() {
                let count = ledger.apply(Operation::Get { policy: None }, now).unwrap().0;
                let name = position.to_string();
                prop_assert_eq!(all.apply(Operation::Get { policy: Some(&name) }, now).unwrap().0, count);
            }
        }
        Ok(())
    });
}

#[test]
fn the_wait_of_several_is_exact() {
    let hits = prop::collection::vec((forward(), weights()), 1..30);
    check_cases(768, (sets(), starts(), hits, weights()), |(specs, mut now, hits, weight)| {
        let mut all = Ledger::new(together(&specs)).unwrap();
        let period = specs.iter().map(Spec::period).min().unwrap();
        for (step, weight) in hits {
            now = step.from(now, period);
            hit(&mut all, fit(weight, specs[0].limit), now);
        }
        let cost = fit(weight, specs[0].limit);
        let decision = hit(&mut all, cost, now);
        match decision.retry_after {
            _ if decision.allowed => {}
            None => prop_assert!(specs.iter().any(|spec| cost > spec.limit)),
            Some(wait) => {
                prop_assert!(!peek(&mut all, cost, now + wait - 1).allowed);
                prop_assert!(peek(&mut all, cost, now + wait).allowed);
            }
        }
        Ok(())
    });
}

/// `inc`, `set`, `get` and `expires_at` reach the policy of the name given, and no other.
#[test]
fn a_name_reaches_its_own_policy_only() {
    check((sets(), starts(), 0..4_usize, 1..=3_u64), |(specs, now, position, cost)| {
        let position = position % specs.len();
        let mut all = Ledger::new(together(&specs)).unwrap();
        let name = position.to_string();
        let mut alone = specs[position].ledger();
        let inc = |policy| Operation::Inc { policy, cost: cost as i64 };
        prop_assert_eq!(all.apply(inc(Some(&name)), now).unwrap(), alone.apply(inc(None), now).unwrap());
        for (other, spec) in specs.iter().enumerate() {
            let name = other.to_string();
            let ends = all.apply(Operation::ExpiresAt { policy: Some(&name) }, now).unwrap().0;
            let mut expected = if other == position { alone.clone() } else { spec.ledger() };
            prop_assert_eq!(ends, expected.apply(Operation::ExpiresAt { policy: None }, now).unwrap().0);
            prop_assert!(other == position || ends == Answer::Number(0));
        }
        prop_assert_eq!(all.apply(inc(None), now).unwrap_err().code(), "unknown_policy");
        Ok(())
    });
}
