//! A limiter in memory when memory runs out: each allocation of each operation fails once, and nothing has changed.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

use tollgate::{
    Clock, Denied, Error, Exception, Limiter, ManualClock, OnFull, Options, Policies, Policy, Reserve, Snapshot,
};

/// The system's allocator, which fails on demand in the thread that asked for it.
struct Failing;

/// Which allocations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fails {
    Never,
    /// Only the one after so many.
    OnceAfter(u32),
    /// All after so many.
    After(u32),
    /// None any more: the one that was to fail has failed.
    Done,
}

thread_local! {
    static FAILS: Cell<Fails> = const { Cell::new(Fails::Never) };
}

fn fails() -> bool {
    let (fails, next) = match FAILS.get() {
        Fails::OnceAfter(0) => (true, Fails::Done),
        Fails::After(0) => (true, Fails::After(0)),
        Fails::OnceAfter(left) => (false, Fails::OnceAfter(left - 1)),
        Fails::After(left) => (false, Fails::After(left - 1)),
        done => (false, done),
    };
    FAILS.set(next);
    fails
}

// SAFETY: every call goes to the system's allocator, or returns null, which means that it failed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails() { std::ptr::null_mut() } else { unsafe { System.realloc(block, layout, size) } }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs `operation` while allocations fail, and returns whether one may have failed as well.
fn while_failing<T>(fails: Fails, operation: impl FnOnce() -> T) -> (T, bool) {
    FAILS.set(fails);
    let result = operation();
    let failed = matches!(FAILS.replace(Fails::Never), Fails::Done | Fails::After(0));
    (result, failed)
}

fn with_memory_for<T>(allocations: u32, operation: impl FnOnce() -> T) -> T {
    while_failing(Fails::After(allocations), operation).0
}

type Keyed<'a> = Limiter<u64, &'a ManualClock>;

/// One policy of each algorithm, two logs among other policies, and costs that take a log's second word.
fn all_policies() -> Vec<Policies> {
    let single = [
        Policy::fix_window(5, "1m"),
        Policy::fix_window_per_key(5, "1m"),
        Policy::sliding_window(5, "1m"),
        Policy::sliding_window(9_000, "1m"),
        Policy::sliding_counter(5, "1m"),
        Policy::token_bucket(5, 1, "1m"),
        Policy::leaky_bucket(5, 1, "1m"),
    ];
    let single = single.map(|policy| Policies::from(policy.unwrap()));
    let several = [
        Policy::sliding_window(5, "1m").unwrap().named("a").unwrap(),
        Policy::token_bucket(9, 1, "1m").unwrap(),
        Policy::sliding_window(9_000, "1h").unwrap().named("b").unwrap(),
    ];
    let free = Policy::sliding_window(5, "1m").unwrap().denied(Denied::Free).unwrap();
    single.into_iter().chain([Policies::new(several).unwrap(), free.into()]).collect()
}

/// The last policy's name where there are several.
fn last(limiter: &Keyed<'_>) -> Option<&'static str> {
    (limiter.policies().len() > 1).then_some("b")
}

/// Does `operation` while its first allocation fails, then while its second does, and so on until none did. Whenever it
/// returns an error, the limiter must be as one that nothing was asked of. Returns how often it did.
fn fail_each_allocation<'a, T: PartialEq + std::fmt::Debug>(
    clock: &'a ManualClock,
    make: &dyn Fn(&'a ManualClock) -> Keyed<'a>,
    operation: &dyn Fn(&mut Keyed<'a>) -> Result<T, Error>,
) -> u32 {
    let mut expected = make(clock);
    let untouched = (expected.snapshot().unwrap(), expected.evicted());
    let result = operation(&mut expected).unwrap();
    let mut errors = 0;
    for fails in [Fails::After, Fails::OnceAfter] {
        for allocation in 0.. {
            let mut limiter = make(clock);
            let (mut found, failed) = while_failing(fails(allocation), || operation(&mut limiter));
            if let Err(error) = &found {
                assert_eq!((error.code(), failed), ("out_of_memory", true));
                assert_eq!((limiter.snapshot().unwrap(), limiter.evicted()), untouched, "allocation {allocation}");
                errors += 1;
                // Once there is memory, it works as if nothing had happened.
                found = operation(&mut limiter);
            }
            assert_eq!(found.as_ref(), Ok(&result));
            assert_eq!(limiter.snapshot().unwrap(), expected.snapshot().unwrap(), "allocation {allocation}");
            if !failed {
                break;
            }
        }
    }
    errors
}

type Operation<'a> = Box<dyn Fn(&mut Keyed<'a>) -> Result<u64, Error>>;

/// Every operation that may grow something, and a number that it returns.
fn operations<'a>() -> Vec<(&'static str, Operation<'a>)> {
    fn hit(limiter: &mut Keyed<'_>, key: u64, cost: u64) -> Result<u64, Error> {
        limiter.hit(&key, cost).map(|decision| decision.count + u64::from(decision.allowed))
    }
    // Made while there is memory.
    let other = |key: u64| -> Operation<'a> {
        let [only, among] = ["", "b"].map(|name| Exception::new().with(name, "limit", 9_u64).unwrap());
        Box::new(move |limiter| {
            let exception = if limiter.policies().len() > 1 { &among } else { &only };
            limiter.except(&key, exception, 1_000_000_000)
        })
    };
    vec![
        ("except an old key", other(1)),
        ("except a new key", other(1_000)),
        ("hit an old key", Box::new(|limiter| hit(limiter, 1, 1))),
        ("hit a new key", Box::new(|limiter| hit(limiter, 1_000, 1))),
        ("hit an old key at a large cost", Box::new(|limiter| hit(limiter, 1, 5_000))),
        ("hit a new key at a large cost", Box::new(|limiter| hit(limiter, 1_000, 5_000))),
        (
            "hit with a policy",
            Box::new(|limiter| {
                let policies = limiter.policies().clone();
                limiter.hit_with(&1_000, 1, &policies).map(|decision| decision.remaining)
            }),
        ),
        ("inc an old key", Box::new(|limiter| limiter.inc_policy(&1, 7_000, last(limiter)))),
        ("inc a new key", Box::new(|limiter| limiter.inc_policy(&1_000, 7_000, last(limiter)))),
        ("set an old key", Box::new(|limiter| limiter.set_policy(&1, 3, last(limiter)))),
        ("set a new key", Box::new(|limiter| limiter.set_policy(&1_000, 3, last(limiter)))),
        ("clean", Box::new(|limiter| limiter.clean().map(u64::from))),
    ]
}

/// A limiter in which the next new key and the next hit of key 1 have to grow everything there is.
fn about_to_grow<'a>(policies: &Policies, keys: u64, clock: &'a ManualClock) -> Keyed<'a> {
    let mut limiter = Limiter::new(policies.clone(), clock).unwrap();
    clock.set(0);
    for key in 0..keys {
        limiter.hit(&key, 1).unwrap();
    }
    for now in 1..4 {
        clock.set(now);
        limiter.hit(&1, 1).unwrap();
    }
    clock.set(4);
    limiter
}

#[test]
fn an_operation_without_memory_changes_nothing() {
    let clock = ManualClock::new(0);
    for policies in all_policies() {
        // Without other keys, and at the sizes where chunks and the hash table grow.
        for keys in [0, 3, 28, 255, 256, 448] {
            for (name, operation) in operations() {
                let make = |clock| about_to_grow(&policies, keys, clock);
                let errors = fail_each_allocation(&clock, &make, &operation);
                assert!(errors > 1 || name != "hit a new key" || keys != 256, "{name} allocates nothing");
            }
        }
        let make = |clock| about_to_grow(&policies, 28, clock);
        let count = |limiter: &mut Keyed<'_>| limiter.snapshot().map(|snapshot| snapshot.len());
        assert!(fail_each_allocation(&clock, &make, &count) > 28);
    }
}

/// A limiter that must evict a key for the next new one, and reports what it removes.
fn full<'a>(policies: &Policies, clock: &'a ManualClock) -> Keyed<'a> {
    let options = Options::new().max_keys(3).unwrap().on_full(OnFull::Evict);
    let mut limiter = Limiter::with_options(policies.clone(), clock, options).unwrap().before_clean(|_, _| {});
    for key in 0..3 {
        limiter.hit(&key, 1).unwrap();
    }
    limiter
}

#[test]
fn a_full_limiter_without_memory_evicts_nothing() {
    let clock = ManualClock::new(0);
    for policies in all_policies() {
        let make = |clock| full(&policies, clock);
        for (_, operation) in operations() {
            fail_each_allocation(&clock, &make, &operation);
        }
        let hit = |limiter: &mut Keyed<'_>| limiter.hit(&9, 1);
        assert!(fail_each_allocation(&clock, &make, &hit) > 0);
    }
}

/// A snapshot is taken over whole or not at all.
#[test]
fn a_restore_without_memory_changes_nothing() {
    let clock = ManualClock::new(0);
    for policies in all_policies() {
        for keys in [3, 300] {
            let snapshot: Snapshot<u64> = about_to_grow(&policies, keys, &clock).snapshot().unwrap();
            for own in [0, 2, 256] {
                let make = |clock| about_to_grow(&policies, own, clock);
                let restore = |limiter: &mut Keyed<'_>| limiter.restore(&snapshot);
                assert!(fail_each_allocation(&clock, &make, &restore) > 3);
            }
        }
    }
}

/// States of another scale are kept beside the converted ones, and need memory of their own.
#[test]
fn a_converted_limiter_without_memory_changes_nothing() {
    let clock = ManualClock::new(0);
    let make_policy = |algorithm: &str, scale: &str| match algorithm {
        "fix_window" => Policy::fix_window(9, scale).unwrap(),
        "fix_window_per_key" => Policy::fix_window_per_key(9, scale).unwrap(),
        "sliding_window" => Policy::sliding_window(9, scale).unwrap(),
        _ => Policy::sliding_counter(9, scale).unwrap(),
    };
    for algorithm in ["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"] {
        let [hour, minute] = ["1h", "1m"].map(|scale| Policies::from(make_policy(algorithm, scale)));
        let snapshot: Snapshot<u64> = about_to_grow(&hour, 3, &clock).snapshot().unwrap();
        let make = |clock| {
            let mut limiter = about_to_grow(&minute, 0, clock);
            limiter.restore(&snapshot).unwrap();
            clock.set(5);
            limiter
        };
        assert_eq!(make(&clock).snapshot().unwrap().policies(), Ok(minute.clone()));
        for (_, operation) in operations() {
            fail_each_allocation(&clock, &make, &operation);
        }
        let restore = |limiter: &mut Keyed<'_>| limiter.restore(&snapshot);
        assert!(fail_each_allocation(&clock, &make, &restore) > 3);
    }
}

/// Hits of old keys that need no memory succeed without any, and so does cleaning that reports to nobody.
#[test]
fn a_limiter_without_memory_works_on() {
    let clock = ManualClock::new(0);
    for policies in all_policies() {
        let mut limiter = about_to_grow(&policies, 100, &clock);
        let has_log = policies.iter().any(|policy| policy.algorithm() == "sliding_window");
        for key in 0..100 {
            let hit = with_memory_for(0, || limiter.hit(&key, 1));
            assert!(has_log || hit.is_ok());
            with_memory_for(0, || limiter.peek(&key, 1)).unwrap();
        }
        for key in 0..50 {
            with_memory_for(0, || assert!(limiter.reset(&key).unwrap()));
        }
        // What was given back is used again, without new memory but for the first entry of each log.
        for key in 1_000..1_050 {
            let logs = policies.iter().filter(|policy| policy.algorithm() == "sliding_window").count();
            with_memory_for(logs as u32, || limiter.hit(&key, 1)).unwrap();
            with_memory_for(0, || assert!(limiter.reset(&key).unwrap()));
        }
        assert_eq!(limiter.len(), 50);
    }
}

/// A denied hit that changes nothing allocates nothing.
#[test]
fn a_denied_hit_does_not_grow_a_log() {
    let clock = ManualClock::new(0);
    let policy = Policy::sliding_window(4, "1m").unwrap().denied(Denied::Free).unwrap();
    let mut limiter: Keyed<'_> = Limiter::new(policy, &clock).unwrap();
    for now in 0..4 {
        clock.set(now);
        assert!(limiter.hit(&1, 1).unwrap().allowed);
    }
    clock.set(4);
    assert!(!with_memory_for(0, || limiter.hit(&1, 1)).unwrap().allowed);
    // Hits of one millisecond are one entry.
    let mut other: Keyed<'_> = Limiter::new(Policy::sliding_window(9, "1m").unwrap(), &clock).unwrap();
    other.hit(&1, 1).unwrap();
    assert!(with_memory_for(0, || other.hit(&1, 1)).unwrap().allowed);
}

/// A sweep that cannot report an expired key leaves it for later.
#[test]
fn expired_keys_are_reported_once_there_is_memory() {
    let clock = ManualClock::new(0);
    let reported = Arc::new(Mutex::new(Vec::with_capacity(1_000)));
    let seen = Arc::clone(&reported);
    let policies = Policies::new([Policy::fix_window(9, "1s").unwrap(), Policy::fix_window(9, "2s").unwrap()]);
    let mut limiter: Keyed<'_> = Limiter::new(policies.unwrap(), &clock).unwrap().before_clean(move |_, cleaned| {
        seen.lock().unwrap().extend(cleaned.iter().map(|cleaned| cleaned.key));
    });
    for key in 0..200 {
        limiter.hit(&key, 1).unwrap();
    }
    clock.set(60_000);
    assert_eq!(with_memory_for(0, || limiter.clean()).unwrap_err().code(), "out_of_memory");
    for _ in 0..100 {
        with_memory_for(0, || limiter.hit(&0, 1)).unwrap();
    }
    assert_eq!((limiter.len(), reported.lock().unwrap().len()), (200, 0));
    assert_eq!(limiter.clean().unwrap(), 199);
    let mut keys = reported.lock().unwrap().clone();
    keys.sort_unstable();
    assert_eq!(keys, (1..200).flat_map(|key| [key, key]).collect::<Vec<u64>>());
}

/// The memory of a cleaning does not grow with the number of keys.
#[test]
fn a_cleaning_reports_in_bounded_memory() {
    let clock = ManualClock::new(0);
    let policies = (0..32).map(|number| Policy::fix_window(9, 1 + number).unwrap());
    let limiter = Limiter::new(Policies::new(policies).unwrap(), &clock).unwrap();
    let largest = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&largest);
    let mut limiter: Keyed<'_> = limiter.before_clean(move |_, cleaned| {
        let mut seen = seen.lock().unwrap();
        *seen = (seen.0.max(cleaned.len()), seen.1 + cleaned.len());
    });
    for key in 0..5_000 {
        limiter.hit(&key, 1).unwrap();
    }
    clock.set(clock.now() + 1_000);
    // The lists of what is reported grow to their bound in a few allocations.
    assert_eq!(with_memory_for(12, || limiter.clean()), Ok(5_000));
    assert_eq!(*largest.lock().unwrap(), (64, 32 * 5_000));
}

/// The keys of a limiter of which some are swept by its next operation, and the first of them are among `SWEPT`.
const SWEPT_KEYS: u64 = 40;
const SWEPT: [u64; 4] = [0, 2, 3, 4];

/// A limiter whose keys have ended but for key 1, and are swept by the next operations. Key 1 has a reservation that has
/// ended and one that is open, and its log is full, so that charging the one that has ended allocates.
fn about_to_sweep(clock: &ManualClock) -> (Keyed<'_>, tollgate::Reservation<u64>) {
    clock.set(0);
    let policies = [Policy::sliding_window(5, "1m").unwrap(), Policy::ban(1_000, "1m", "1m").unwrap()];
    let mut limiter: Keyed<'_> = Limiter::new(Policies::new(policies).unwrap(), clock).unwrap();
    let mut reservation = None;
    for key in 0..SWEPT_KEYS {
        if key == 1 {
            limiter.reserve(&1, Reserve::new(7).ttl("1m")).unwrap();
            reservation = limiter.reserve(&1, Reserve::new(8).ttl("1h")).unwrap().reservation;
        } else {
            limiter.hit(&key, 1).unwrap();
        }
    }
    for now in 1..5 {
        clock.set(now);
        limiter.inc_policy(&1, 1, Some("sliding_window")).unwrap();
    }
    clock.set(60_000);
    (limiter, reservation.unwrap())
}

type Sweeping<'a> = Box<dyn Fn(&mut Keyed<'a>, &mut tollgate::Reservation<u64>) -> Result<(), Error>>;

/// Every operation that may change a key.
fn sweeping<'a>() -> Vec<(&'static str, Sweeping<'a>)> {
    let log = Some("sliding_window");
    let exception = Exception::new().with("sliding_window", "limit", 9_u64).unwrap();
    let other = exception.clone();
    vec![
        ("hit", Box::new(|limiter, _| limiter.hit(&1, 1).map(drop))),
        ("hit a new key", Box::new(|limiter, _| limiter.hit(&99, 1).map(drop))),
        ("reserve", Box::new(|limiter, _| limiter.reserve(&5, Reserve::new(9)).map(drop))),
        ("reserve more", Box::new(|limiter, _| limiter.reserve(&1, Reserve::new(9)).map(drop))),
        ("reserve a new key", Box::new(|limiter, _| limiter.reserve(&99, Reserve::new(9)).map(drop))),
        ("settle", Box::new(|limiter, own| limiter.settle_by_id(&own.key, &own.id, None).map(drop))),
        ("extend", Box::new(|limiter, own| limiter.extend(own, "2h").map(drop))),
        ("inc", Box::new(move |limiter, _| limiter.inc_policy(&1, 9, log).map(drop))),
        ("inc a new key", Box::new(move |limiter, _| limiter.inc_policy(&99, 9, log).map(drop))),
        ("set", Box::new(move |limiter, _| limiter.set_policy(&1, 9, log).map(drop))),
        ("ban", Box::new(|limiter, _| limiter.ban(&1, "1h").map(drop))),
        ("unban", Box::new(|limiter, _| limiter.unban(&1).map(drop))),
        ("except", Box::new(move |limiter, _| limiter.except_for(&5, &exception, "1h").map(drop))),
        ("except a new key", Box::new(move |limiter, _| limiter.except_for(&99, &other, "1h").map(drop))),
        ("lift an exception", Box::new(|limiter, _| limiter.lift_exception(&1).map(drop))),
        ("reset", Box::new(|limiter, _| limiter.reset(&1).map(drop))),
    ]
}

/// Does `operation` while allocation after allocation fails. Returns how often it returned an error.
fn sweep_and_fail<'a>(clock: &'a ManualClock, name: &str, operation: &Sweeping<'a>, victim: u64) -> u32 {
    let mut errors = 0;
    for allocation in 0.. {
        let (mut limiter, mut reservation) = about_to_sweep(clock);
        let (result, failed) =
            while_failing(Fails::OnceAfter(allocation), || operation(&mut limiter, &mut reservation));
        errors += u32::from(result.is_err());
        let admitted = (0..9).filter(|_| limiter.hit(&victim, 1).unwrap().allowed).count();
        assert_eq!(admitted, 5, "{name}, allocation {allocation}, key {victim}");
        if !failed {
            break;
        }
    }
    errors
}

/// A key that an operation frees is counted from its next hit on, whether the operation then failed or not.
#[test]
fn a_key_that_is_swept_before_memory_runs_out_is_counted() {
    let clock = ManualClock::new(0);
    for (name, operation) in sweeping() {
        let errors: u32 = SWEPT.into_iter().map(|victim| sweep_and_fail(&clock, name, &operation, victim)).sum();
        assert!(errors > 0 || ["ban", "unban", "lift an exception"].contains(&name), "{name} never failed");
    }
}
