//! A limiter that threads share is exact for each key, and returns what a limiter of one thread returns.
#![cfg(feature = "sync")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Barrier;
use std::thread;

use tollgate::{Error, Limiter, ManualClock, OnFull, Options, Policy, Reason, Reserve, Settlement, SharedLimiter};

const THREADS: usize = 4;

/// Runs the same work in all threads at once, and returns the sum.
fn in_threads(work: impl Fn(usize) -> u64 + Sync) -> u64 {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let work = &work;
        let barrier = &barrier;
        let run = move |thread| {
            barrier.wait();
            work(thread)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn threads_that_hit_the_same_keys_are_allowed_the_limit_together() {
    let keys = 50;
    let policies = [
        Policy::fix_window(100, "1m").unwrap(),
        Policy::sliding_window(100, "1m").unwrap(),
        Policy::sliding_counter(100, "1m").unwrap(),
        Policy::token_bucket(100, 1, "1m").unwrap(),
        Policy::leaky_bucket(100, 1, "1m").unwrap(),
    ];
    for policy in policies {
        let clock = ManualClock::new(0);
        let limiter = SharedLimiter::<u64, _>::new(policy.clone(), &clock).unwrap();
        let allowed = in_threads(|thread| {
            let hits = (0..60 * keys).map(|turn| (turn + thread as u64) % keys);
            hits.filter(|key| limiter.hit(key, 1).unwrap().allowed).count() as u64
        });
        assert_eq!(allowed, 100 * keys, "{policy:?}");
        assert_eq!(u64::from(limiter.len()), keys);
    }
}

#[test]
fn threads_that_reserve_and_settle_never_hold_more_than_the_limit() {
    let clock = ManualClock::new(0);
    let limiter = SharedLimiter::<String, _>::new(Policy::token_bucket(1_000, 1, "1d").unwrap(), &clock).unwrap();
    let used = in_threads(|thread| {
        let mut used = 0;
        for turn in 0..1_000 {
            let id = (thread * 1_000 + turn) as u128;
            if let Some(reservation) = limiter.reserve("all", Reserve::new(id).cost(5)).unwrap().reservation {
                assert_eq!(limiter.settle(reservation, Some(3.into())).unwrap(), Settlement::Settled);
                used += 3;
            }
        }
        used
    });
    // The last reservations do not fit any more, although their settlements would.
    assert!((990..=999).contains(&used), "{used}");
    assert_eq!(limiter.get("all").unwrap(), 1_000 - used);
}

#[test]
fn the_methods_are_those_of_the_limiter() {
    let clock = ManualClock::new(1_000);
    let policies = || [Policy::sliding_window(9, "1m").unwrap(), Policy::token_bucket(20, 1, "1s").unwrap()];
    let shared = SharedLimiter::<String, _>::new(policies(), &clock).unwrap();
    let mut alone = Limiter::<String, _>::new(policies(), &clock).unwrap();
    for turn in 0..500_u64 {
        let key = format!("user:{}", turn * 7 % 13);
        let key = key.as_str();
        match turn % 9 {
            0 => assert_eq!(
                shared.inc_policy(key, 2, Some("token_bucket")),
                alone.inc_policy(key, 2, Some("token_bucket"))
            ),
            1 => assert_eq!(
                shared.get_policy(key, Some("sliding_window")),
                alone.get_policy(key, Some("sliding_window"))
            ),
            2 => assert_eq!(shared.expires_at(key), alone.expires_at(key)),
            3 => assert_eq!(shared.peek(key, 2), alone.peek(key, 2)),
            // Whether there was a state depends on what was swept.
            4 if turn % 5 == 0 => assert_eq!(shared.reset(key).is_ok(), alone.reset(key).is_ok()),
            5 if turn % 7 == 0 => {
                assert_eq!((shared.clean().is_ok(), shared.len()), (alone.clean().is_ok(), alone.len()))
            }
            6 if turn % 11 == 0 => {
                shared.reset_all(key);
                alone.reset_all(key);
            }
            _ => assert_eq!(shared.hit(key, turn % 4), alone.hit(key, turn % 4)),
        }
        clock.advance(turn * 311 % 9_000);
    }
}

#[test]
fn reservations_are_extended_cancelled_and_settled_by_id() {
    let clock = ManualClock::new(0);
    let limiter = SharedLimiter::<String, _>::new(Policy::fix_window(9, "1d").unwrap(), &clock).unwrap();
    let mut first = limiter.reserve("a", Reserve::new(1).cost(2)).unwrap().reservation.unwrap();
    assert_eq!(limiter.extend(&mut first, "2m").unwrap(), Settlement::Extended);
    clock.advance(90_000);
    assert_eq!(limiter.settle_by_id("a", &first.id, None).unwrap(), Settlement::Settled);
    let second = limiter.reserve("a", Reserve::new(2).cost(3)).unwrap().reservation.unwrap();
    assert_eq!(limiter.cancel(second).unwrap(), Settlement::Settled);
    assert_eq!(limiter.get("a").unwrap(), 2);
}

#[test]
fn a_full_shard_keeps_to_its_part_of_the_keys() {
    let clock = ManualClock::new(0);
    let options = Options::new().max_keys(4_096).unwrap().on_full(OnFull::Deny);
    let limiter = SharedLimiter::<u64, _>::with_options(Policy::fix_window(9, "1m").unwrap(), &clock, options).unwrap();
    let full = (0..20_000).filter(|key| limiter.hit(key, 1).unwrap().reason == Some(Reason::Full)).count();
    assert_eq!((limiter.len(), full), (4_096, 20_000 - 4_096));
    assert_eq!(limiter.evicted(), 0);
}

#[test]
fn a_limiter_of_few_keys_has_one_shard() {
    let clock = ManualClock::new(0);
    let options = Options::new().max_keys(3).unwrap();
    let limiter = SharedLimiter::<u64, _>::with_options(Policy::fix_window(9, "1m").unwrap(), &clock, options).unwrap();
    for key in 0..5 {
        limiter.hit(&key, 1).unwrap();
    }
    assert_eq!((limiter.len(), limiter.evicted()), (3, 2));
}

#[test]
fn invalid_policies_and_costs_are_the_errors_of_the_limiter() {
    let clock = ManualClock::new(0);
    let limiter = SharedLimiter::<u64, _>::new(Policy::fix_window(9, "1m").unwrap(), &clock).unwrap();
    assert_eq!(limiter.hit(&1, u64::MAX).unwrap_err().code(), "invalid_cost");
    let once = || Policy::fix_window(1, "1s").unwrap().named("once").unwrap();
    let twice = [once(), once()];
    let error: Error = SharedLimiter::<u64, _>::new(twice, &clock).unwrap_err();
    assert_eq!(error.code(), "invalid_policy");
}
