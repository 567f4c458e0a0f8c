//! Many policies on one key, over a `Ledger` and a `StoreLimiter`: each admits exactly its limit, alone and in lists, and one row
//! too many is an error that changes nothing.

#![allow(clippy::panic, clippy::unwrap_used)]

use tollgate::{
    Answer, Error, Ledger, MAX_ROWS, ManualClock, Operation, Policies, Policy, Record, Store, StoreError, StoreLimiter,
};

const NOW: u64 = 1_800_000_000_000;

/// How many policies are tested on one key. The last is as many as a key may have rows.
const COUNTS: [usize; 4] = [10, 24, 40, MAX_ROWS];

fn limit(number: usize) -> u64 {
    1 + number as u64 % 3
}

/// Returns a policy of its own for each number. They last so long that nothing comes back.
fn policy(number: usize) -> Policy {
    let (limit, scale) = (limit(number), "365d");
    let policy = match number % 6 {
        0 => Policy::fix_window(limit, scale),
        1 => Policy::token_bucket(limit, 1, scale),
        2 => Policy::sliding_window(limit, scale),
        3 => Policy::fix_window_per_key(limit, scale),
        4 => Policy::leaky_bucket(limit, 1, scale),
        _ => Policy::sliding_counter(limit, scale),
    };
    policy.unwrap().named(&format!("p{number}")).unwrap()
}

fn policies(list: &[usize]) -> Policies {
    Policies::new(list.iter().copied().map(policy)).unwrap()
}

/// Decides a hit of the key under a list of policies.
type Hit<'a> = dyn FnMut(&[usize]) -> Result<bool, Error> + 'a;

/// A key in a record, which a ledger of its own loads for each call.
fn with_ledgers(record: &mut Option<Record>) -> impl FnMut(&[usize]) -> Result<bool, Error> {
    move |list| {
        let mut ledger = Ledger::new(policies(list)).unwrap();
        if let Some(record) = record.as_ref() {
            ledger.load(record, NOW).unwrap();
        }
        let (Answer::Decision(decision), changed) = ledger.apply(Operation::Hit { cost: 1 }, NOW)? else {
            panic!("no decision");
        };
        if changed {
            *record = ledger.record(NOW).unwrap();
        }
        Ok(decision.allowed)
    }
}

/// A store of one key.
struct OneKey<'a>(&'a mut Option<Record>);

impl Store for OneKey<'_> {
    type Error = String;

    fn load(&mut self, _: &str) -> Result<Option<Record>, String> {
        Ok(self.0.clone())
    }

    fn save(&mut self, _: &str, record: Option<&Record>) -> Result<(), String> {
        *self.0 = record.cloned();
        Ok(())
    }
}

/// The same key in a store, hit by a limiter for each list.
fn with_store_limiters(record: &mut Option<Record>) -> impl FnMut(&[usize]) -> Result<bool, Error> {
    move |list| {
        let mut limiter = StoreLimiter::new(policies(list), OneKey(record), ManualClock::new(NOW)).unwrap();
        match limiter.apply("key", Operation::Hit { cost: 1 }) {
            Ok(Answer::Decision(decision)) => Ok(decision.allowed),
            Err(StoreError::Tollgate(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }
}

/// Runs a test on a key of each kind.
fn on_each(test: impl Fn(&mut Hit<'_>)) {
    test(&mut with_ledgers(&mut None));
    test(&mut with_store_limiters(&mut None));
}

/// Hits under a list, and checks the decision by what is left of each policy.
fn checked(hit: &mut Hit<'_>, left: &mut [u64], list: &[usize]) {
    let expected = list.iter().all(|&number| left[number] > 0);
    assert_eq!(hit(list), Ok(expected), "{list:?}");
    if expected {
        list.iter().for_each(|&number| left[number] -= 1);
    }
}

/// Hits each policy alone, in turn, until all have denied.
fn exhaust(hit: &mut Hit<'_>, left: &mut [u64]) {
    for _ in 0..=limit(2) {
        for number in 0..left.len() {
            checked(hit, left, &[number]);
        }
    }
}

#[test]
fn each_of_many_policies_that_calls_name_one_by_one_admits_its_limit() {
    for count in COUNTS {
        on_each(|hit| exhaust(hit, &mut (0..count).map(limit).collect::<Vec<_>>()));
    }
}

#[test]
fn each_of_many_policies_that_calls_name_in_lists_admits_its_limit() {
    for count in COUNTS {
        on_each(|hit| {
            let mut left: Vec<u64> = (0..count).map(limit).collect();
            for call in 0..count {
                // 2 to 8 policies, each step beyond the last one.
                let mut list: Vec<usize> =
                    (0..2 + call % 7).map(|at| (call * 7 + at * (1 + call % 5)) % count).collect();
                list.sort_unstable();
                list.dedup();
                checked(hit, &mut left, &list);
            }
            exhaust(hit, &mut left);
        });
    }
}

#[test]
fn one_row_too_many_is_an_error_that_changes_nothing() {
    // The policies that have a row go on after it.
    on_each(|hit| {
        let mut left: Vec<u64> = (0..MAX_ROWS).map(limit).collect();
        for number in 0..MAX_ROWS {
            checked(hit, &mut left, &[number]);
        }
        for list in [&[MAX_ROWS][..], &[0, MAX_ROWS, 1]] {
            assert_eq!(hit(list).unwrap_err().code(), "full");
        }
        exhaust(hit, &mut left);
    });
}
