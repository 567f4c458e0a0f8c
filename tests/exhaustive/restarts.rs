//! A limiter that is restarted from snapshots, with numbers of single calls: it forgets nothing and denies nothing for ever.

use tollgate::{Denied, Limiter, ManualClock, Options, Policies, Policy, Reserve};

use crate::oracle::{ALGORITHMS, Concurrency, Spec};

type Memory<'a> = Limiter<u8, &'a ManualClock>;

fn restarted<'a>(limiter: &Memory<'_>, own: &Policies, clock: &'a ManualClock) -> Memory<'a> {
    let json = serde_json::to_string(&limiter.snapshot().unwrap()).unwrap();
    let mut again = Limiter::new(own.clone(), clock).unwrap();
    again.restore(&serde_json::from_str(&json).unwrap()).unwrap();
    again
}

const BUCKETS: [fn(u64, u64, &str) -> Policy; 2] = [
    |capacity, rate, per| Policy::token_bucket(capacity, rate, per).unwrap(),
    |capacity, rate, per| Policy::leaky_bucket(capacity, rate, per).unwrap(),
];

/// The most is what is there at first and what comes in 90 s.
#[test]
fn restarts_every_ten_seconds_admit_no_more_than_a_capacity_and_its_rate() {
    for bucket in BUCKETS {
        for (capacity, rate) in [(10, 1), (10, 1_000), (1, 50), (5_000, 10), (5_000, 1), (1_000, 10), (100, 10)] {
            let (own, call) = (Policies::from(bucket(capacity, rate, "1s")), Policies::from(bucket(1_000, 10, "1s")));
            for cleans in [false, true] {
                let clock = ManualClock::new(1_767_225_600_000);
                let mut limiter: Memory<'_> = Limiter::new(own.clone(), &clock).unwrap();
                let mut admitted = 0;
                for tick in 0..=900 {
                    if tick % 100 == 99 {
                        limiter = restarted(&limiter, &own, &clock);
                    }
                    if cleans {
                        limiter.clean().unwrap();
                        limiter.peek(&2, 1).unwrap();
                        limiter.hit(&3, 1).unwrap();
                    }
                    while limiter.hit_with(&1, 1, &call).unwrap().allowed {
                        admitted += 1;
                    }
                    clock.advance(100);
                }
                assert_eq!(admitted, 1_900, "own capacity {capacity} at {rate}/s, cleaned: {cleans}");
            }
        }
    }
}

/// After a restore, a hit within its limit is allowed at its `retryAfter`.
#[test]
fn no_hit_is_denied_for_ever_after_a_restore() {
    for algorithm in ALGORITHMS.into_iter().filter(|&algorithm| algorithm != Concurrency) {
        for own_limit in [1, 3, 20] {
            for call_limit in [1, 3, 20] {
                for (own_rate, call_rate) in [(1, 1), (1, 7), (7, 1)] {
                    let spec =
                        |limit, rate| Spec { algorithm, limit, scale: 50, rate, counts: false, name: 0, shape: 0 };
                    let free = |spec: Spec| Policies::from(spec.policy());
                    let (own, call) = (free(spec(own_limit, own_rate)), free(spec(call_limit, call_rate)));
                    let clock = ManualClock::new(1_000_003);
                    let mut limiter: Memory<'_> = Limiter::new(own.clone(), &clock).unwrap();
                    for round in 0..40 {
                        while limiter.hit_with(&1, 1, &call).unwrap().allowed {}
                        while limiter.hit(&1, 1).unwrap().allowed {}
                        limiter = restarted(&limiter, &own, &clock);
                        let by_call = round % 2 == 0;
                        let cost = 1 + round % if by_call { call_limit } else { own_limit };
                        let hit = |limiter: &mut Memory<'_>| match by_call {
                            true => limiter.hit_with(&1, cost as u64, &call).unwrap(),
                            false => limiter.hit(&1, cost as u64).unwrap(),
                        };
                        let denied = hit(&mut limiter);
                        if denied.allowed {
                            continue;
                        }
                        let wait =
                            denied.retry_after.unwrap_or_else(|| panic!("never: {denied:?} under {own:?}, {call:?}"));
                        clock.advance(wait - 1);
                        let early = hit(&mut limiter);
                        assert!(!early.allowed, "{denied:?}, then {early:?}");
                        clock.advance(1);
                        limiter = restarted(&limiter, &own, &clock);
                        let then = hit(&mut limiter);
                        assert!(then.allowed, "{denied:?}, then {then:?} under {own:?}, {call:?}");
                    }
                }
            }
        }
    }
}

/// A changed capacity applies as a changed limit does.
#[test]
fn a_lower_capacity_leaves_what_was_spent() {
    let clock = ManualClock::new(0);
    for bucket in BUCKETS {
        let of = |capacity| Policies::from(bucket(capacity, 1, "1h"));
        let mut limiter: Memory<'_> = Limiter::new(of(160), &clock).unwrap();
        assert!(limiter.hit(&1, 74).unwrap().allowed);
        let mut lower: Memory<'_> = Limiter::new(of(80), &clock).unwrap();
        lower.restore(&limiter.snapshot().unwrap()).unwrap();
        assert_eq!(lower.peek(&1, 0).unwrap().remaining, 6);
        assert!(!lower.hit(&1, 7).unwrap().allowed);
        assert!(lower.hit(&1, 6).unwrap().allowed);
        let mut again: Memory<'_> = Limiter::new(of(160), &clock).unwrap();
        again.restore(&lower.snapshot().unwrap()).unwrap();
        assert_eq!(again.peek(&1, 0).unwrap().remaining, 80);
    }
}

/// A reservation that another key let expire is that key's alone, also after a restore.
#[test]
fn an_expired_reservation_stays_with_its_key() {
    for algorithm in ALGORITHMS.into_iter().filter(|&algorithm| algorithm != Concurrency) {
        let spec = Spec { algorithm, limit: 9, scale: 500, rate: 2, counts: false, name: 0, shape: 0 };
        let (own, clock) = (Policies::from(spec.policy()), ManualClock::new(1_000_000));
        let mut limiter: Memory<'_> = Limiter::new(own.clone(), &clock).unwrap();
        limiter.hit(&0, 3).unwrap();
        let _ = limiter.reserve(&4, Reserve::new(1).ttl(3).policies(&own)).unwrap();
        limiter.hit(&0, 1).unwrap();
        // What the other reserved was charged and has flowed away, where it flows.
        clock.advance(260);
        let snapshot = limiter.snapshot().unwrap();
        let options = Options::new().clean_period(1).unwrap();
        let mut again: Memory<'_> = Limiter::with_options(own.clone(), &clock, options).unwrap();
        again.restore(&snapshot).unwrap();
        // The hit sweeps other keys.
        assert_eq!(again.hit(&0, 1).unwrap(), limiter.hit(&0, 1).unwrap(), "{algorithm:?}");
    }
}

/// Denied hits are free, unless a policy says otherwise.
#[test]
fn denied_hits_are_free_by_default() {
    let windows = [
        Policy::fix_window(1, "1m"),
        Policy::fix_window_per_key(1, "1m"),
        Policy::sliding_window(1, "1m"),
        Policy::sliding_counter(1, "1m"),
    ];
    for policy in windows.map(Result::unwrap) {
        let clock = ManualClock::new(0);
        let counting = policy.clone().denied(Denied::Count).unwrap();
        for (policy, count) in [(policy, 1), (counting, 2)] {
            let mut limiter: Memory<'_> = Limiter::new(policy, &clock).unwrap();
            assert!(limiter.hit(&1, 1).unwrap().allowed);
            assert!(!limiter.hit(&1, 1).unwrap().allowed);
            assert_eq!(limiter.get(&1), Ok(count));
        }
    }
}
