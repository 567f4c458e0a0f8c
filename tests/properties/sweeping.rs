//! Sweeping and eviction: a state with time left stays while there is room; dropped states are counted or reported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tollgate::{Cleaned, Denied, IntoPolicies, Limiter, ManualClock, OnFull, Options, Policy, Reason};

use crate::support::*;

/// The keys that are held with time left, and when each ends.
fn live(limiter: &Limiter<u8, &ManualClock>, keys: u8) -> BTreeMap<u8, u64> {
    let ends = (0..keys).map(|key| (key, limiter.expires_at(&key).unwrap()));
    ends.filter(|&(_, ends_at)| ends_at > 0).collect()
}

/// Returns which of the keys a hit would be denied for, and when each ends: the order in which they are evicted.
fn in_order(limiter: &Limiter<u8, &ManualClock>, live: &BTreeMap<u8, u64>) -> BTreeMap<u8, (bool, u64)> {
    live.iter().map(|(&key, &ends_at)| (key, (!limiter.peek(&key, 1).unwrap().allowed, ends_at))).collect()
}

/// So few slots that all of them are looked at when one is needed.
fn eviction_takes_the_soonest_to_expire_that_is_not_denied_and_only_when_it_must(kind: Kind) {
    let calls = prop::collection::vec((forward(), 0..8_u8, acts()), 1..60);
    check((specs(kind), starts(), 1..=5_u64, 1..=3_000_u64, calls), |(spec, start, max_keys, period, calls)| {
        let clock = ManualClock::new(start);
        let options = Options::new().max_keys(max_keys).unwrap().clean_period(period).unwrap();
        let mut limiter = limiter(&spec, &clock, options);
        let mut now = start;
        for (step, key, act) in calls {
            now = step.from(now, spec.period());
            clock.set(now);
            let (before, evicted, len) = (live(&limiter, 8), limiter.evicted(), limiter.len());
            let before = in_order(&limiter, &before);
            match act {
                Act::Hit(weight) => drop(limiter.hit(&key, fit(weight, spec.limit)).unwrap()),
                Act::Inc(weight) => drop(limiter.inc(&key, fit(weight, spec.limit) as i64).unwrap()),
                Act::Refund(weight) => drop(limiter.inc(&key, -(fit(weight, spec.limit) as i64)).unwrap()),
                Act::Set(weight) => drop(limiter.set(&key, fit(weight, spec.limit).min(spec.limit)).unwrap()),
            }
            prop_assert!(u64::from(limiter.len()) <= max_keys);
            let after = live(&limiter, 8);
            let gone: Vec<_> =
                before.iter().filter(|(other, _)| **other != key && !after.contains_key(other)).collect();
            prop_assert_eq!(limiter.evicted() - evicted, gone.len() as u64);
            if let [(_, place)] = gone[..] {
                prop_assert_eq!(u64::from(len), max_keys);
                prop_assert_eq!(before.len() as u64, max_keys, "something had expired");
                prop_assert_eq!(before.values().min(), Some(place));
            }
            prop_assert!(gone.len() <= 1);
        }
        Ok(())
    });
}

fn a_full_limiter_that_denies_holds_what_it_has(kind: Kind) {
    let calls = prop::collection::vec((forward(), 0..8_u8, weights()), 1..60);
    let older = prop_oneof![2 => Just(None), 1 => (1..=3_000_u64).prop_map(Some)];
    check((specs(kind), starts(), 1..=5_u64, older, calls), |(spec, start, max_keys, older, calls)| {
        let clock = ManualClock::new(start);
        let mut options = Options::new().max_keys(max_keys).unwrap().on_full(OnFull::Deny);
        if let Some(older) = older {
            options = options.key_older_than(older).unwrap();
        }
        let mut limiter = limiter(&spec, &clock, options);
        let mut now = start;
        for (step, key, weight) in calls {
            now = step.from(now, spec.period());
            clock.set(now);
            let cost = fit(weight, spec.limit);
            let before = live(&limiter, 8);
            let full = before.len() as u64 == max_keys && !before.contains_key(&key);
            let peeked = limiter.peek(&key, cost).unwrap();
            let decision = limiter.hit(&key, cost).unwrap();
            prop_assert_eq!(peeked, decision);
            let needs_room = cost > 0 && (cost <= spec.limit || spec.denied == Denied::Count);
            if full && needs_room {
                prop_assert_eq!((decision.allowed, decision.reason), (false, Some(Reason::Full)));
                prop_assert!(decision.violated.is_empty() && decision.remaining == 0);
                prop_assert_eq!(live(&limiter, 8), before);
                prop_assert_eq!(limiter.inc(&key, 1).unwrap_err().code(), "full");
                prop_assert_eq!(limiter.set(&key, 1).unwrap_err().code(), "full");
                // It tells when there is room, if nothing else comes.
                match decision.retry_after {
                    None => prop_assert!(cost > spec.limit),
                    Some(wait) => {
                        clock.set(now + wait - 1);
                        prop_assert!(!limiter.peek(&key, cost).unwrap().allowed, "{decision:?}");
                        clock.set(now + wait);
                        prop_assert!(limiter.peek(&key, cost).unwrap().allowed, "{decision:?}");
                        clock.set(now);
                    }
                }
            } else {
                prop_assert_eq!(decision.reason, None);
            }
            prop_assert_eq!(limiter.evicted(), 0);
        }
        Ok(())
    });
}

type Told = Arc<Mutex<Vec<(&'static str, Vec<Cleaned<u8>>)>>>;

/// A limiter, and what it tells before it cleans.
fn telling(policies: impl IntoPolicies, clock: &ManualClock, options: Options) -> (Limiter<u8, &ManualClock>, Told) {
    let told = Told::default();
    let log = Arc::clone(&told);
    let limiter = Limiter::with_options(policies, clock, options).unwrap();
    (limiter.before_clean(move |algorithm, entries| log.lock().unwrap().push((algorithm, entries.to_vec()))), told)
}

/// Each expired state is told once, with what it held, and nothing else is told.
fn before_clean_is_told_of_every_expired_state(kind: Kind) {
    let calls = prop::collection::vec((forward(), 0..6_u8, 1..=3_u64), 1..60);
    check((specs(kind), starts(), 1..=2_000_u64, calls), |(spec, start, period, calls)| {
        let clock = ManualClock::new(start);
        let (mut limiter, told) = telling(spec.policy(), &clock, Options::new().clean_period(period).unwrap());
        let mut now = start;
        // What each key held when it was last used, and when that ends.
        let mut held: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
        let check_told = |held: &mut BTreeMap<u8, (u64, u64)>, now| {
            for (algorithm, entries) in told.lock().unwrap().drain(..) {
                prop_assert_eq!(algorithm, spec.policy().algorithm());
                for entry in entries {
                    let (value, ends_at) = held.remove(&entry.key).expect("a state that was held, told once");
                    prop_assert!(ends_at <= now);
                    prop_assert_eq!((&*entry.policy, entry.expired_at), (algorithm, ends_at));
                    // A counter does not know when within its window it was last used.
                    prop_assert!(kind == SlidingCounter || entry.value == value, "{entry:?}, not {value}");
                }
            }
            Ok(())
        };
        for (step, key, cost) in calls {
            now = step.from(now, spec.period());
            clock.set(now);
            if held.get(&key).is_some_and(|&(_, ends_at)| ends_at <= now) {
                // Or it might be used again before it is swept.
                limiter.clean().unwrap();
                prop_assert_eq!(limiter.expires_at(&key).unwrap(), 0);
                check_told(&mut held, now)?;
            }
            let value = limiter.inc(&key, cost as i64).unwrap();
            held.insert(key, (value, limiter.expires_at(&key).unwrap()));
            check_told(&mut held, now)?;
        }
        now += 1_000 * spec.period();
        clock.set(now);
        prop_assert_eq!(limiter.clean().unwrap() as usize, held.len());
        check_told(&mut held, now)?;
        prop_assert!(held.is_empty() && limiter.is_empty());
        Ok(())
    });
}

each_counting_algorithm!(
    eviction_takes_the_soonest_to_expire_that_is_not_denied_and_only_when_it_must
    a_full_limiter_that_denies_holds_what_it_has
    before_clean_is_told_of_every_expired_state
);

#[test]
fn before_clean_is_not_told_of_evictions_nor_of_resets() {
    let clock = ManualClock::new(0);
    let options = Options::new().max_keys(2).unwrap();
    let (mut limiter, told) = telling(Policy::fix_window(9, "1s").unwrap(), &clock, options);
    for key in 0..4 {
        limiter.hit(&key, 1).unwrap();
    }
    assert_eq!(limiter.evicted(), 2);
    limiter.reset(&3).unwrap();
    clock.advance(5_000);
    assert_eq!(limiter.clean(), Ok(1));
    let told: Vec<_> = told.lock().unwrap().drain(..).flat_map(|(_, entries)| entries).collect();
    assert_eq!(told.len(), 1);
}

#[test]
fn before_clean_is_not_told_of_a_policy_that_was_never_used() {
    let clock = ManualClock::new(5_000);
    for kind in 0..6 {
        let policies = [
            Policy::fix_window_per_key(9, "1s").unwrap().named("used").unwrap(),
            match kind {
                0 => Policy::fix_window(9, "1s"),
                1 => Policy::fix_window_per_key(9, "1s"),
                2 => Policy::sliding_window(9, "1s"),
                3 => Policy::sliding_counter(9, "1s"),
                4 => Policy::token_bucket(9, 1, "1s"),
                _ => Policy::leaky_bucket(9, 1, "1s"),
            }
            .unwrap(),
        ];
        let (mut limiter, told) = telling(policies, &clock, Options::new());
        limiter.inc_policy(&1, 3, Some("used")).unwrap();
        clock.advance(60_000);
        assert_eq!(limiter.clean(), Ok(1));
        let told: Vec<_> = told.lock().unwrap().drain(..).flat_map(|(_, entries)| entries).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((&*told[0].policy, told[0].value), ("used", 3));
    }
}

#[test]
fn a_key_untouched_for_too_long_is_gone_when_read_and_when_swept() {
    let clock = ManualClock::new(0);
    let options = Options::new().key_older_than("1s").unwrap();
    let (mut limiter, told) = telling(Policy::fix_window(1, "1h").unwrap(), &clock, options);
    limiter.hit(&1, 1).unwrap();
    clock.set(999);
    assert_eq!((limiter.get(&1), limiter.peek(&1, 1).unwrap().allowed), (Ok(1), false));
    assert_eq!((limiter.expires_at(&1), limiter.clean()), (Ok(1_000), Ok(0)));
    clock.set(1_000);
    assert_eq!((limiter.get(&1), limiter.expires_at(&1)), (Ok(0), Ok(0)));
    assert!(limiter.peek(&1, 1).unwrap().allowed);
    assert!(limiter.snapshot().unwrap().is_empty());
    assert_eq!(limiter.clean(), Ok(1));
    assert_eq!(told.lock().unwrap()[0].1[0].expired_at, 1_000);
}

/// More keys than one sweep looks at, all in use: none is lost, and the expired ones are gone in time.
#[test]
fn sweeping_many_keys_drops_only_what_has_expired() {
    let clock = ManualClock::new(0);
    let options = Options::new().clean_period(100).unwrap();
    let policy = Policy::fix_window_per_key(5, 1_000).unwrap();
    let mut limiter = Limiter::<u64, _>::with_options(policy, &clock, options).unwrap();
    for key in 0..1_000 {
        limiter.hit(&key, 1).unwrap();
    }
    clock.set(990);
    for key in 0..2_000 {
        limiter.hit(&key, 1).unwrap();
    }
    assert_eq!(limiter.len(), 2_000);
    clock.set(1_500);
    // Every hit of the one key sweeps a little.
    for _ in 0..1_000 {
        limiter.hit(&1_999, 1).unwrap();
    }
    assert_eq!((limiter.len(), limiter.evicted()), (1_000, 0));
    for key in 0..1_999 {
        assert_eq!(limiter.get(&key), Ok(u64::from(key >= 1_000)));
    }
}
