//! A restored snapshot continues as if nothing had happened, and changed policies take over what they can.

use proptest::prelude::*;
use tollgate::{Clock, Denied, Limiter, ManualClock, OnFull, Options, Policies, Policy, Reserve, Snapshot};

use crate::support::*;

fn through_json(limiter: &Limiter<u8, &ManualClock>) -> Snapshot<u8> {
    let json = serde_json::to_string(&limiter.snapshot().unwrap()).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// A limiter over the same clock that took over what another held.
fn restored<'a>(
    limiter: &Limiter<u8, &ManualClock>,
    policies: impl tollgate::IntoPolicies,
    clock: &'a ManualClock,
) -> (Limiter<u8, &'a ManualClock>, Vec<String>) {
    let mut again = Limiter::new(policies, clock).unwrap();
    let afresh = again.restore(&through_json(limiter)).unwrap();
    (again, afresh)
}

/// Uses a key as time goes on, and once more at the end: a bucket's content is of the time it was last used.
fn use_key(limiter: &mut Limiter<u8, &ManualClock>, spec: &Spec, clock: &ManualClock, hits: Vec<(Move, u64)>) {
    for (step, weight) in hits {
        clock.set(step.from(clock.now(), spec.period()));
        take(limiter, spec, fit(weight, spec.limit));
    }
    take(limiter, spec, 1);
}

fn take(limiter: &mut Limiter<u8, &ManualClock>, spec: &Spec, cost: u64) {
    match spec.kind {
        Concurrency => assert!(limiter.reserve(&1, Reserve::new(next_random()).cost(cost)).is_ok()),
        _ => drop(limiter.inc(&1, cost as i64).unwrap()),
    }
}

fn act(limiter: &mut Limiter<u8, &ManualClock>, spec: &Spec, key: u8, act: Act) -> String {
    match act {
        Act::Hit(weight) | Act::Inc(weight) if spec.kind == Concurrency => {
            let reserve = Reserve::new(next_random()).cost(fit(weight, spec.limit));
            format!("{:?}", limiter.reserve(&key, reserve).unwrap().decision)
        }
        Act::Refund(_) | Act::Set(_) if spec.kind == Concurrency => format!("{:?}", limiter.get(&key).unwrap()),
        Act::Hit(weight) => format!("{:?}", limiter.hit(&key, fit(weight, spec.limit)).unwrap()),
        Act::Inc(weight) => format!("{:?}", limiter.inc(&key, fit(weight, spec.limit) as i64).unwrap()),
        Act::Refund(weight) => format!("{:?}", limiter.inc(&key, -(fit(weight, spec.limit) as i64)).unwrap()),
        Act::Set(weight) => format!("{:?}", limiter.set(&key, fit(weight, spec.limit).min(spec.limit)).unwrap()),
    }
}

fn a_restored_snapshot_continues_as_if_nothing_happened(kind: Kind) {
    let before = prop::collection::vec((anywhere(), 0..4_u8, acts()), 0..30);
    let after = prop::collection::vec((forward(), 0..4_u8, acts()), 0..30);
    check((specs(kind), starts(), before, after), |(spec, start, before, after)| {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(&spec, &clock, Options::new());
        let mut now = start;
        for (step, key, it) in before {
            // An end that the clock fell behind moves along with the clock, until an operation stores it.
            let step = if kind == Concurrency { step.not_back() } else { step };
            now = step.from(now, spec.period());
            clock.set(now);
            act(&mut limiter, &spec, key, it);
        }
        let (mut again, afresh) = restored(&limiter, spec.policy(), &clock);
        prop_assert!(afresh.is_empty());
        // A slot that is due but was not asked for is only in the first.
        prop_assert!(kind == Concurrency || again.snapshot().unwrap() == limiter.snapshot().unwrap());
        for (step, key, it) in after {
            prop_assert_eq!(again.expires_at(&key).unwrap(), limiter.expires_at(&key).unwrap());
            prop_assert_eq!(act(&mut again, &spec, key, it), act(&mut limiter, &spec, key, it));
            now = step.from(now, spec.period());
            clock.set(now);
        }
        Ok(())
    });
}

/// Another limit or rate: what is there stays, and the new numbers apply to it.
fn another_limit_or_rate_keeps_the_content(kind: Kind) {
    let hits = prop::collection::vec((forward(), weights()), 1..20);
    check((specs(kind), starts(), hits, 1..=300_u64, 1..=50_u64), |(spec, start, hits, limit, rate)| {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(&spec, &clock, Options::new());
        use_key(&mut limiter, &spec, &clock, hits);
        let held = limiter.get(&1).unwrap();
        let (again, afresh) = restored(&limiter, Spec { limit, rate, ..spec.clone() }.policy(), &clock);
        prop_assert!(afresh.is_empty());
        let counted = again.get(&1).unwrap();
        match kind {
            // How large a debt is, is not shown.
            TokenBucket if held == 0 => prop_assert!(counted <= limit.saturating_sub(spec.limit)),
            TokenBucket => prop_assert_eq!(counted, limit.saturating_sub(spec.limit - held)),
            _ => prop_assert_eq!(counted, held),
        }
        Ok(())
    });
}

each_algorithm!(
    a_restored_snapshot_continues_as_if_nothing_happened
    another_limit_or_rate_keeps_the_content
);

#[test]
fn another_shape_starts_unused_and_is_named() {
    let clock = ManualClock::new(1_000);
    let spec = |kind| Spec { kind, limit: 3, scale: 1_000, rate: 1, denied: Denied::Free };
    for old in KINDS {
        for new in KINDS {
            let only = |kind| spec(kind).policy().named("only").unwrap();
            let mut limiter = Limiter::<u8, _>::new(only(old), &clock).unwrap();
            take(&mut limiter, &spec(old), 3);
            let (again, afresh) = restored(&limiter, only(new), &clock);
            let same = old == new;
            assert_eq!(afresh, if same { vec![] } else { vec!["only"] });
            assert_eq!(again.peek(&1, 3).unwrap().allowed, !same, "{old:?} to {new:?}");
        }
    }
}

/// Of several, each finds its own again by name, whatever the order; what is new starts unused.
#[test]
fn several_policies_find_their_states_by_name() {
    let clock = ManualClock::new(1_000);
    let named = |name: &str, limit| Policy::fix_window(limit, "1m").unwrap().named(name).unwrap();
    let mut limiter = Limiter::<u8, _>::new([named("a", 9), named("b", 9)], &clock).unwrap();
    limiter.inc_policy(&1, 1, Some("a")).unwrap();
    limiter.inc_policy(&1, 2, Some("b")).unwrap();
    let (again, afresh) = restored(&limiter, [named("c", 9), named("b", 5), named("a", 9)], &clock);
    assert_eq!(afresh, Vec::<String>::new());
    let count = |name| again.get_policy(&1, Some(name)).unwrap();
    assert_eq!((count("a"), count("b"), count("c")), (1, 2, 0));
}

/// A snapshot says what it was made by.
#[test]
fn a_snapshot_carries_its_policies() {
    let clock = ManualClock::new(0);
    let policies = Policies::new([
        Policy::token_bucket(5, 7, "3s").unwrap().named("burst").unwrap(),
        Policy::sliding_window(9, "1m").unwrap().denied(Denied::Free).unwrap(),
    ]);
    let limiter = Limiter::<u8, _>::new(policies.clone().unwrap(), &clock).unwrap();
    assert_eq!(through_json(&limiter).policies(), policies);
}

/// All states are taken over, or on an error none.
#[test]
fn a_snapshot_that_does_not_fit_changes_nothing() {
    let clock = ManualClock::new(0);
    let policy = Policy::fix_window(9, "1m").unwrap();
    let mut large = Limiter::<u8, _>::new(policy.clone(), &clock).unwrap();
    for key in 0..5 {
        large.hit(&key, 1).unwrap();
    }
    let options = || Options::new().max_keys(4).unwrap().on_full(OnFull::Deny);
    let mut small = Limiter::<u8, _>::with_options(policy.clone(), &clock, options()).unwrap();
    small.hit(&4, 7).unwrap();
    let before = small.snapshot().unwrap();
    assert_eq!(small.restore(&large.snapshot().unwrap()).unwrap_err().code(), "full");
    assert_eq!(small.snapshot().unwrap(), before);

    // With one key less it fits, since one of them is there already; so do expired ones make room.
    large.reset(&0).unwrap();
    small.restore(&large.snapshot().unwrap()).unwrap();
    assert_eq!((small.len(), small.get(&4)), (4, Ok(1)));
    let mut full = Limiter::<u8, _>::with_options(policy, &clock, options()).unwrap();
    for key in 10..14 {
        full.hit(&key, 1).unwrap();
    }
    clock.set(60_000);
    large.hit(&1, 1).unwrap();
    large.hit(&2, 1).unwrap();
    full.restore(&large.snapshot().unwrap()).unwrap();
    assert_eq!((full.get(&1), full.evicted()), (Ok(1), 0));
}

/// A limit that is lowered and raised again admits no more, also where it is higher than that of stored logs.
#[test]
fn a_lower_limit_leaves_the_hits_of_a_higher_one() {
    let clock = ManualClock::new(0);
    for limit in [1_000, 1_001, 1_500, 5_000] {
        let limiter = |limit| Limiter::<u8, _>::new(Policy::sliding_window(limit, "1m").unwrap(), &clock).unwrap();
        let (mut high, mut low, mut again) = (limiter(limit), limiter(10), limiter(limit));
        for _ in 0..limit {
            assert!(high.hit(&0, 1).unwrap().allowed);
        }
        low.restore(&high.snapshot().unwrap()).unwrap();
        for _ in 0..20 {
            clock.advance(1);
            assert!(!low.hit(&0, 1).unwrap().allowed);
        }
        again.restore(&low.snapshot().unwrap()).unwrap();
        assert!(!again.hit(&0, 1).unwrap().allowed, "{limit}");
        clock.advance(120_000);
    }
}

/// A log keeps its hits when a reservation of a higher limit is settled under a lower one.
#[test]
fn a_settlement_under_a_lower_limit_leaves_the_hits_of_a_higher_one() {
    let clock = ManualClock::new(0);
    for scales in [["1m"; 2], ["1m", "1s"]] {
        let limiter =
            |limit, scale| Limiter::<u8, _>::new(Policy::sliding_window(limit, scale).unwrap(), &clock).unwrap();
        let mut high = limiter(5_000, scales[0]);
        assert!(high.hit(&0, 1_500).unwrap().allowed);
        let reservation = high.reserve(&0, Reserve::new(1).cost(3_000)).unwrap().reservation.unwrap();
        let mut low = limiter(10, scales[1]);
        low.restore(&high.snapshot().unwrap()).unwrap();
        clock.advance(1);
        low.settle(reservation, None).unwrap();
        let mut again = limiter(5_000, scales[0]);
        again.restore(&low.snapshot().unwrap()).unwrap();
        assert_eq!(again.get(&0), Ok(4_500));
        assert!(!again.hit(&0, 501).unwrap().allowed);
        clock.advance(120_000);
    }
}
