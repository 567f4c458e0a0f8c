//! What an operation changes, what it touches, and in which order it checks its arguments.

#![allow(clippy::unwrap_used)]

use tollgate::{
    Answer, Clock, Error, Exception, Ledger, Limiter, ManualClock, Operation, Options, Policies, Policy, Reservation,
    Reserve, Settlement,
};

type Keyed<'a> = Limiter<u64, &'a ManualClock>;

/// How long a key may be unchanged.
const OLD: u64 = 70_000;

fn forgetful<'a>(policies: impl Into<Policies>, clock: &'a ManualClock) -> Keyed<'a> {
    Limiter::with_options(policies.into(), clock, Options::new().key_older_than(OLD).unwrap()).unwrap()
}

fn by_hour() -> Policy {
    Policy::fix_window_per_key(9, "1h").unwrap()
}

fn reserve(limiter: &mut Keyed<'_>, random: u128, ttl: u64) -> Reservation<u64> {
    limiter.reserve(&1, Reserve::new(random).ttl(ttl)).unwrap().reservation.unwrap()
}

/// Returns whether the key is still there when it was unchanged for `OLD` since time 0, and `operation` ran before.
fn is_touched(operation: impl FnOnce(&mut Keyed<'_>)) -> bool {
    let clock = ManualClock::new(0);
    let mut limiter = forgetful(Policies::new([by_hour(), Policy::ban(9, "1h", "1h").unwrap()]).unwrap(), &clock);
    limiter.hit(&1, 3).unwrap();
    clock.set(OLD - 1);
    operation(&mut limiter);
    clock.set(OLD);
    limiter.get_policy(&1, Some("fix_window_per_key")).unwrap() > 0
}

#[test]
fn an_operation_that_uses_a_key_makes_it_younger() {
    let name = Some("fix_window_per_key");
    assert!(is_touched(|limiter| assert!(limiter.hit(&1, 1).is_ok())));
    assert!(is_touched(|limiter| assert!(limiter.inc_policy(&1, 1, name).is_ok())));
    assert!(is_touched(|limiter| assert!(limiter.inc_policy(&1, -1, name).is_ok())));
    assert!(is_touched(|limiter| assert!(limiter.set_policy(&1, 1, name).is_ok())));
    assert!(is_touched(|limiter| assert!(limiter.ban(&1, "1h").is_ok())));
    assert!(is_touched(|limiter| assert!(limiter.unban(&1).is_ok())));
    assert!(is_touched(|limiter| {
        let reservation = reserve(limiter, 7, 1_000);
        limiter.cancel(reservation).unwrap();
    }));
}

#[test]
fn an_exception_and_what_reads_make_no_key_younger() {
    assert!(!is_touched(|_| {}));
    assert!(!is_touched(|limiter| assert!(limiter.peek(&1, 1).is_ok())));
    assert!(!is_touched(|limiter| assert!(limiter.inc_policy(&1, 0, Some("fix_window_per_key")).is_ok())));
    let more = Exception::new().with("fix_window_per_key", "limit", 50_u64).unwrap();
    assert!(!is_touched(|limiter| assert!(limiter.except_for(&1, &more, "1h").is_ok())));
    assert!(!is_touched(|limiter| {
        limiter.except_for(&1, &more, "1h").unwrap();
        assert!(limiter.lift_exception(&1).unwrap());
    }));
}

/// A limiter whose key has a reservation that ends after the key is old, and is not used after time 0.
fn with_a_long_reservation(clock: &ManualClock) -> Keyed<'_> {
    let mut limiter = forgetful(by_hour(), clock);
    let _ = reserve(&mut limiter, 7, OLD + 30_000);
    limiter
}

#[test]
fn a_reset_makes_no_key_younger() {
    let clock = ManualClock::new(0);
    let mut limiter = with_a_long_reservation(&clock);
    clock.set(50_000);
    assert!(limiter.reset(&1).unwrap());
    clock.set(OLD + 30_000);
    assert_eq!((limiter.get(&1).unwrap(), limiter.clean().unwrap()), (1, 1));
}

#[test]
fn a_settlement_makes_a_key_younger_if_the_reservation_was_open() {
    let clock = ManualClock::new(0);
    for is_open in [true, false] {
        clock.set(0);
        let mut limiter = with_a_long_reservation(&clock);
        let other = reserve(&mut limiter, 8, if is_open { 1_000_000 } else { 1 });
        clock.set(OLD + 30_000);
        // It also expires the other reservation, which alone makes no key younger.
        let expected = if is_open { Settlement::Settled } else { Settlement::Expired };
        assert_eq!(limiter.settle(other, None).unwrap(), expected);
        assert_eq!(limiter.clean().unwrap(), u32::from(!is_open));
    }
}

#[test]
fn what_gives_back_makes_no_key() {
    let clock = ManualClock::new(0);
    let policies = Policies::new([by_hour(), Policy::ban(9, "1h", "1h").unwrap()]).unwrap();
    let mut limiter: Keyed<'_> = Limiter::new(policies.clone(), &clock).unwrap();
    let name = Some("fix_window_per_key");
    assert_eq!(limiter.inc_policy(&1, -5, name), Ok(0));
    assert_eq!(limiter.inc_policy(&1, 0, name), Ok(0));
    assert_eq!(limiter.unban(&1), Ok(false));
    assert_eq!(limiter.lift_exception(&1), Ok(false));
    assert_eq!((limiter.reset(&1), limiter.reset_all(&1)), (Ok(false), false));
    assert!(limiter.is_empty());
    assert_eq!(limiter.set_policy(&1, 0, name), Ok(0));
    assert_eq!(limiter.len(), 1);

    let mut ledger = Ledger::new(policies).unwrap();
    for operation in [
        Operation::Inc { policy: name, cost: -5 },
        Operation::Inc { policy: name, cost: 0 },
        Operation::Unban { policy: None },
        Operation::Except { exception: None, until: 0 },
        Operation::Reset,
        Operation::ResetAll,
    ] {
        let changed = ledger.apply(operation, 0).unwrap().1;
        assert!(ledger.record(0).unwrap().is_none(), "{operation:?}");
        // The key of a store is written as often as before, and no state of it is.
        assert!(!changed || matches!(operation, Operation::Inc { .. } | Operation::Unban { .. }), "{operation:?}");
    }
}

#[test]
fn a_ledger_has_changed_if_a_reservation_expired() {
    let mut ledger = Ledger::new(by_hour()).unwrap();
    let mut reserve =
        |random, ttl| match ledger.apply(Operation::Reserve { costs: 1.into(), ttl: Some(ttl), random }, 0) {
            Ok((Answer::Reserved { id, .. }, true)) => id.unwrap(),
            other => panic!("{other:?} is no reservation"),
        };
    let (_, short) = (reserve(7, 1_000), reserve(8, 1));
    let settle = |ledger: &mut Ledger, now| ledger.apply(Operation::Settle { id: short, used: None }, now).unwrap();
    assert_eq!(settle(&mut ledger, 10), (Answer::Settled(Settlement::Expired), true));
    assert_eq!(settle(&mut ledger, 20), (Answer::Settled(Settlement::Expired), false));
    assert_eq!(settle(&mut ledger, 1_000), (Answer::Settled(Settlement::Expired), true));
}

/// A limiter with a key whose states are old, but which has a reservation under a shape of before.
fn with_a_reservation_elsewhere(clock: &ManualClock) -> (Keyed<'_>, Reservation<u64>) {
    clock.set(0);
    let mut before: Keyed<'_> = Limiter::new(by_hour(), clock).unwrap();
    let reservation = reserve(&mut before, 7, 1_000_000);
    let mut limiter = forgetful(Policy::fix_window_per_key(9, "2h").unwrap(), clock);
    limiter.restore(&before.snapshot().unwrap()).unwrap();
    clock.set(OLD + 1);
    (limiter, reservation)
}

#[test]
fn a_reservation_of_an_old_key_under_a_former_shape_is_settled_and_extended() {
    let clock = ManualClock::new(0);
    let (mut limiter, reservation) = with_a_reservation_elsewhere(&clock);
    assert_eq!(limiter.settle(reservation, None), Ok(Settlement::Settled));

    let (mut limiter, mut reservation) = with_a_reservation_elsewhere(&clock);
    assert_eq!(limiter.extend(&mut reservation, "1h"), Ok(Settlement::Extended));
    assert_eq!(limiter.settle(reservation, None), Ok(Settlement::Settled));

    let (mut limiter, reservation) = with_a_reservation_elsewhere(&clock);
    assert_eq!(limiter.reset(&1), Ok(true));
    assert_eq!(limiter.settle(reservation, None), Ok(Settlement::Settled));
}

/// The codes of the error that a limiter and a ledger return for `inc` and `set`.
fn codes(policies: &Policies, policy: Option<&str>, cost: i64) -> [&'static str; 4] {
    let clock = ManualClock::new(0);
    let mut limiter: Keyed<'_> = Limiter::new(policies.clone(), &clock).unwrap();
    let mut ledger = Ledger::new(policies.clone()).unwrap();
    let mut apply = |operation| ledger.apply(operation, clock.now()).map(drop);
    let count = cost as u64;
    let results: [Result<(), Error>; 4] = [
        limiter.inc_policy(&1, cost, policy).map(drop),
        apply(Operation::Inc { policy, cost }),
        limiter.set_policy(&1, count, policy).map(drop),
        apply(Operation::Set { policy, count }),
    ];
    results.map(|result| result.map_or_else(|error| error.code(), |()| "ok"))
}

#[test]
fn a_name_is_checked_before_what_it_counts_and_that_before_the_cost() {
    let running = Policy::concurrency(9, "1m").unwrap().named("running").unwrap();
    let policies = Policies::new([by_hour().named("hits").unwrap(), running]).unwrap();
    let [fits, too_large] = [1, i64::MAX];
    let inc_and_set = |inc, set| [inc, inc, set, set];
    assert_eq!(codes(&policies, Some("hits"), fits), ["ok"; 4]);
    assert_eq!(codes(&policies, Some("hits"), too_large), inc_and_set("invalid_cost", "invalid_count"));
    for cost in [fits, too_large] {
        assert_eq!(codes(&policies, Some("nobody"), cost), ["unknown_policy"; 4]);
        assert_eq!(codes(&policies, Some("running"), cost), ["reserve_only"; 4]);
    }
}

#[test]
fn a_hit_under_a_policy_that_counts_no_hits_is_rejected_before_its_cost() {
    let clock = ManualClock::new(0);
    let policies = Policies::from(Policy::concurrency(9, "1m").unwrap());
    let mut limiter: Keyed<'_> = Limiter::new(policies.clone(), &clock).unwrap();
    let mut ledger = Ledger::new(policies.clone()).unwrap();
    let codes = [
        limiter.hit(&1, u64::MAX).unwrap_err(),
        limiter.hit_costs(&1, u64::MAX.into()).unwrap_err(),
        limiter.hit_with(&1, u64::MAX, &policies).unwrap_err(),
        ledger.apply(Operation::Hit { cost: u64::MAX }, 0).unwrap_err(),
        ledger.apply(Operation::HitCosts { costs: u64::MAX.into() }, 0).unwrap_err(),
    ];
    assert_eq!(codes.map(|error| error.code()), ["reserve_only"; 5]);
}

/// A clock that jumps ends states. What was swept meanwhile does not come back with the clock: the limit may be used once
/// more. What was not swept is there again.
#[test]
fn a_clock_that_jumps_forward_and_back_gives_the_limit_back_once_at_the_most() {
    let admitted = |limiter: &mut Keyed<'_>, key| (0..9).filter(|_| limiter.hit(&key, 1).unwrap().allowed).count();
    for policy in [Policy::fix_window(5, "1m"), Policy::sliding_window(5, "1m")] {
        let clock = ManualClock::new(3_600_000);
        let mut limiter: Keyed<'_> = Limiter::new(policy.unwrap(), &clock).unwrap();
        for key in 0..12 {
            assert_eq!(admitted(&mut limiter, key), 5);
        }
        clock.set(36_000_000);
        limiter.set(&100, 1).unwrap();
        // Four slots are swept by each operation.
        assert_eq!(limiter.len(), 9);
        clock.set(3_600_000);
        let again: Vec<usize> = (0..12).map(|key| admitted(&mut limiter, key)).collect();
        assert_eq!(again.iter().filter(|&&count| count == 5).count(), 4, "{again:?}");
        assert!((0..12).all(|key| admitted(&mut limiter, key) == 0));
    }
}
