//! Denials that open reservations alone cause, what forgets violations, and single cases of waits.

use tollgate::{
    Answer, Costs, Decision, Denied, Exception, Lease, Ledger, Operation, Policies, Policy, Reason, Renewal,
    ReservationId,
};

use crate::support::decision;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;

/// Bits of a reservation, which are no lease's.
fn bits(number: u128) -> u128 {
    7 << 96 | number
}

fn ledger<const N: usize>(policies: [Policy; N]) -> Ledger {
    Ledger::new(Policies::new(policies).unwrap()).unwrap()
}

fn hit(ledger: &mut Ledger, cost: u64, now: u64) -> Decision {
    decision(ledger.apply(Operation::Hit { cost }, now).unwrap().0)
}

fn reserve(ledger: &mut Ledger, number: u128, now: u64) -> (Decision, Option<ReservationId>) {
    let operation = Operation::Reserve { costs: Costs::All(1), ttl: Some(MINUTE), random: bits(number) };
    match ledger.apply(operation, now).unwrap().0 {
        Answer::Reserved { decision, id } => (decision, id),
        other => panic!("{other:?}"),
    }
}

fn settle(ledger: &mut Ledger, id: ReservationId, used: u64, now: u64) {
    ledger.apply(Operation::Settle { id, used: Some(Costs::All(used)) }, now).unwrap();
}

fn get(ledger: &mut Ledger, policy: &str, now: u64) -> u64 {
    match ledger.apply(Operation::Get { policy: Some(policy) }, now).unwrap().0 {
        Answer::Number(number) => number,
        other => panic!("{other:?}"),
    }
}

fn except(ledger: &mut Ledger, exception: &Exception, until: u64, now: u64) {
    ledger.apply(Operation::Except { exception: Some(exception), until }, now).unwrap();
}

fn logins() -> Ledger {
    ledger([Policy::sliding_window(5, "1m").unwrap(), Policy::ban(10, "15m", "1h").unwrap()])
}

#[test]
fn logins_that_come_at_once_are_no_violations_and_failed_ones_are() {
    let mut key = logins();
    let at_once: Vec<_> = (0..20).map(|number| reserve(&mut key, number, 0)).collect();
    let (passed, denied): (Vec<_>, Vec<_>) = at_once.into_iter().partition(|(decision, _)| decision.allowed);
    assert_eq!((passed.len(), denied.len()), (5, 15));
    for (denied, _) in denied {
        // The wait is exact if nothing is settled: then all five are charged when they end.
        let expected = (Some(Reason::Reserved), Some(2 * MINUTE), 0);
        assert_eq!((denied.reason, denied.retry_after, denied.remaining), expected);
    }
    assert_eq!(get(&mut key, "ban", 0), 0);
    // Good logins free their places.
    passed.into_iter().for_each(|(_, id)| settle(&mut key, id.unwrap(), 0, 1_000));
    assert!(reserve(&mut key, 100, 1_000).0.allowed);
    // Failures do not, and what they deny counts.
    let mut key = logins();
    for number in 0..5 {
        let id = reserve(&mut key, number, 0).1.unwrap();
        settle(&mut key, id, 1, 0);
    }
    for count in 1..10 {
        assert_eq!(reserve(&mut key, 10 + u128::from(count), 0).0.reason, None);
        assert_eq!(get(&mut key, "ban", 0), count);
    }
    assert_eq!(reserve(&mut key, 30, 0).0.reason, Some(Reason::Banned));
}

#[test]
fn what_is_used_comes_before_what_is_reserved_and_a_cost_that_never_fits_is_not_reserved() {
    let mut key = ledger([
        Policy::fix_window(3, "1h").unwrap().named("hour").unwrap(),
        Policy::fix_window(2, "1d").unwrap().named("day").unwrap(),
    ]);
    hit(&mut key, 1, 0);
    reserve(&mut key, 1, 0);
    let denied = hit(&mut key, 1, 0);
    assert_eq!((denied.reason, denied.violated.iter().collect::<Vec<_>>()), (Some(Reason::Reserved), vec![1]));
    // Under the hour it never fits, whatever is open.
    assert_eq!(hit(&mut key, 4, 0).reason, None);
    // Under one policy it is reserved, under the other used.
    assert_eq!(hit(&mut key, 2, 0).reason, None);
    let mut slots = ledger([Policy::concurrency(1, "1m").unwrap()]);
    assert!(reserve(&mut slots, 1, 0).0.allowed);
    assert_eq!(reserve(&mut slots, 2, 0).0.reason, Some(Reason::Reserved));
}

#[test]
fn a_ban_and_an_exception_come_before_what_is_reserved() {
    let mut key = logins();
    (0..5).for_each(|number| assert!(reserve(&mut key, number, 0).0.allowed));
    assert_eq!(hit(&mut key, 1, 0).reason, Some(Reason::Reserved));
    key.apply(Operation::Ban { policy: None, length: HOUR }, 0).unwrap();
    assert_eq!(hit(&mut key, 1, 0).reason, Some(Reason::Banned));
    except(&mut key, &Exception::deny(), 1_000, 0);
    assert_eq!(hit(&mut key, 1, 0).reason, Some(Reason::Denied));
}

/// What a lease holds is hits counted in advance: a flood beside idle holders must still be banned.
#[test]
fn a_flood_beside_leases_is_banned() {
    let window = Policy::fix_window(40, "10s").unwrap().denied(Denied::Free).unwrap();
    let mut key = ledger([window, Policy::ban(5, "1m", "1h").unwrap()]);
    let lease = |key: &mut Ledger, random| -> Option<Lease> {
        let renewal = Renewal { id: None, used: 0, size: 40, ttl: 10_000, random };
        match key.apply(Operation::Lease { cost: 1, renewal }, 0).unwrap().0 {
            Answer::Leased { lease, .. } => lease,
            other => panic!("{other:?}"),
        }
    };
    let idle = lease(&mut key, 5 << 64).unwrap();
    while hit(&mut key, 1, 0).allowed {}
    // The denial above was the first.
    for count in 2..5 {
        let denied = hit(&mut key, 1, 0);
        assert_eq!((denied.reason, denied.allowed), (None, false), "beside a lease of {}", idle.amount);
        assert_eq!(get(&mut key, "ban", 0), count);
    }
    assert_eq!(hit(&mut key, 1, 0).reason, Some(Reason::Banned));
}

#[test]
fn bans_by_hand_forget_violations_and_lifted_ones_past_bans_too() {
    let window = || Policy::fix_window(1, "1d").unwrap();
    let ban = || Policy::ban(3, "1h", "1m").unwrap().growing(10, "1d").unwrap();
    let mut key = ledger([window(), ban()]);
    let _ = [(); 3].map(|()| hit(&mut key, 1, 0));
    assert_eq!(get(&mut key, "ban", 0), 2);
    key.apply(Operation::Ban { policy: None, length: 1_000 }, 0).unwrap();
    assert_eq!(get(&mut key, "ban", 0), 0);
    // After it, three more begin a ban of the first length.
    assert_eq!([(); 3].map(|()| hit(&mut key, 1, 1_000).more_after > MINUTE), [true; 3]);
    assert_eq!(hit(&mut key, 1, 1_000).reason, Some(Reason::Banned));
    let deny = |key: &mut Ledger, now| (0..3).map(|_| hit(key, 2, now)).last().unwrap().more_after;
    let mut grown = ledger([window(), ban()]);
    hit(&mut grown, 1, 0);
    let ends = |key: &mut Ledger, now| key.apply(Operation::ExpiresAt { policy: Some("ban") }, now).unwrap().0;
    deny(&mut grown, 0);
    assert_eq!(ends(&mut grown, 0), Answer::Number(2 * MINUTE));
    deny(&mut grown, MINUTE);
    assert_eq!(ends(&mut grown, MINUTE), Answer::Number(21 * MINUTE));
    grown.apply(Operation::Unban { policy: None }, MINUTE).unwrap();
    assert_eq!(get(&mut grown, "ban", MINUTE), 0);
    deny(&mut grown, MINUTE);
    assert_eq!(ends(&mut grown, MINUTE), Answer::Number(3 * MINUTE));
}

#[test]
fn the_longest_ban_is_at_least_the_first() {
    let window = || Policy::fix_window(1, "1d").unwrap();
    let growing = || Policy::ban(1, "1h", "10m").unwrap().growing(2, "40m").unwrap();
    let ban = |exception: Exception| {
        let mut key = ledger([window(), growing()]);
        except(&mut key, &exception, DAY, 0);
        hit(&mut key, 1, 0);
        let banned = hit(&mut key, 2, 0);
        assert_eq!(banned.reason, Some(Reason::Banned));
        match key.apply(Operation::Unban { policy: None }, 0).unwrap().0 {
            Answer::Number(until) => until,
            other => panic!("{other:?}"),
        }
    };
    let with = |field: &str, length: &str| Exception::new().with("ban", field, length).unwrap();
    // Raised by `for`, and never below it.
    assert_eq!(ban(with("for", "2h")), 2 * HOUR);
    assert_eq!(ban(with("most", "1m")), 10 * MINUTE);
    assert_eq!(ban(with("for", "30m").with("ban", "most", "20m").unwrap()), 30 * MINUTE);
}

#[test]
fn costs_by_policy_without_any_name_are_an_error_and_settle_what_was_reserved() {
    let mut key = ledger([
        Policy::fix_window(3, "1h").unwrap().named("a").unwrap(),
        Policy::fix_window(9, "1h").unwrap().named("b").unwrap(),
    ]);
    let none = Costs::ByPolicy(&[]);
    let reserve = |costs| Operation::Reserve { costs, ttl: None, random: bits(1) };
    for operation in [Operation::HitCosts { costs: none }, Operation::PeekCosts { costs: none }, reserve(none)] {
        assert_eq!(key.apply(operation, 0).unwrap_err().code(), "invalid_cost");
    }
    assert_eq!((get(&mut key, "a", 0), get(&mut key, "b", 0)), (0, 0));
    let costs = Costs::ByPolicy(&[("a", 2)]);
    let Answer::Reserved { id: Some(id), .. } = key.apply(reserve(costs), 0).unwrap().0 else { panic!("denied") };
    key.apply(Operation::Settle { id, used: Some(none) }, 0).unwrap();
    assert_eq!((get(&mut key, "a", 0), get(&mut key, "b", 0)), (2, 1));
}

/// A reservation under a policy that the call does not name takes no part in its decision.
#[test]
fn a_reset_does_not_wait_for_reservations_under_other_policies() {
    let mut before = ledger([Policy::fix_window(3, "1h").unwrap().named("a").unwrap()]);
    let operation = Operation::Reserve { costs: Costs::All(3), ttl: Some(2 * HOUR), random: bits(1) };
    before.apply(operation, 0).unwrap();
    let mut after = ledger([Policy::fix_window(3, "1m").unwrap().named("b").unwrap()]);
    after.load(&before.record(0).unwrap().unwrap(), 0).unwrap();
    let decided = hit(&mut after, 1, 0);
    assert_eq!((decided.remaining, decided.reset_after, decided.more_after), (2, MINUTE, MINUTE));
}

#[test]
fn waits_know_when_an_exception_ends() {
    let numbers = |field, number: u64| Exception::new().with("p", field, number).unwrap();
    let window = |limit| Policy::fix_window(limit, "1h").unwrap().named("p").unwrap();
    // Under less, until it ends in a minute: then it fits.
    let mut key = ledger([window(10)]);
    except(&mut key, &numbers("limit", 1), MINUTE, 0);
    hit(&mut key, 1, 0);
    assert_eq!(hit(&mut key, 1, 0).retry_after, Some(MINUTE));
    // A cost that never fits under it.
    assert_eq!(hit(&mut key, 5, 0).retry_after, Some(MINUTE));
    assert_eq!(hit(&mut key, 11, 0).retry_after, None);
    // Under more, a cost that only fits before it ends, which is too early.
    let mut key = ledger([window(10)]);
    except(&mut key, &numbers("limit", 20), MINUTE, 0);
    hit(&mut key, 20, 0);
    assert_eq!(hit(&mut key, 11, 0).retry_after, None);
    // A fast rate ends before it has let enough flow.
    let bucket = Policy::leaky_bucket(100, 1, "10s").unwrap().named("p").unwrap();
    let mut key = ledger([bucket]);
    hit(&mut key, 100, 0);
    except(&mut key, &numbers("leakRate", 100), 5_000, 0);
    let denied = hit(&mut key, 100, 0);
    assert_eq!((denied.retry_after, denied.reset_after), (Some(1_000_000), 1_000_000));
}

#[test]
fn a_ban_that_begins_takes_the_place_of_the_violations_that_were_counted() {
    let mut key = ledger([Policy::fix_window(1, 5).unwrap(), Policy::ban(2, "1h", 10).unwrap()]);
    hit(&mut key, 2, 0);
    let banned = hit(&mut key, 2, 0);
    assert_eq!((banned.reason, banned.reset_after), (Some(Reason::Banned), 10));
}

#[test]
fn more_is_allowed_when_the_last_policy_that_binds_allows_it() {
    let mut key = ledger([
        Policy::fix_window(2, "1s").unwrap().named("second").unwrap(),
        Policy::fix_window(2, "1d").unwrap().named("day").unwrap(),
    ]);
    let decided = hit(&mut key, 1, 0);
    assert_eq!((decided.remaining, decided.more_after), (1, DAY));
    // Beside a ban, the later of both.
    let window = || Policy::fix_window(1, "1d").unwrap();
    for (length, more_after) in [("1h", DAY), ("2d", 2 * DAY)] {
        let mut key = ledger([window(), Policy::ban(1, "1h", length).unwrap()]);
        hit(&mut key, 1, 0);
        let banned = hit(&mut key, 1, 0);
        assert_eq!((banned.reason, banned.more_after), (Some(Reason::Banned), more_after));
    }
}
