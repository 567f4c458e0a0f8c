//! Many lists of policies on one key: each policy admits its own limit, whatever else uses the key, is in memory or is lost.

use crate::cloudflare::object::in_memory::ObjectInMemory;
use crate::cloudflare::object::simulation::random::Random;
use crate::cloudflare::protocol::wire::Reply;
use crate::{MAX_ROWS, Operation};

const HOUR: u64 = 3_600_000;
const NOW: u64 = 500_000 * HOUR;
const LIMIT: u64 = 5;

/// Returns a list of policies, by number, as JSON.
fn list(policies: &[usize]) -> String {
    let policy = |number: &usize| match number % 2 {
        0 => format!(r#"{{"name":"p{number}","algorithm":"fix_window","limit":{LIMIT},"scale":{HOUR}}}"#),
        _ => format!(
            r#"{{"name":"p{number}","algorithm":"token_bucket","capacity":{LIMIT},"refillRate":1,"per":{}}}"#,
            100 * HOUR
        ),
    };
    format!("[{}]", policies.iter().map(policy).collect::<Vec<_>>().join(","))
}

fn allowed(object: &mut ObjectInMemory, policies: &[usize], credit: bool, now: u64) -> bool {
    match object.apply(Operation::Hit { cost: 1 }, &list(policies), credit, now).unwrap() {
        Reply::Decision { decision, .. } => decision.allowed,
        reply => panic!("{reply:?}"),
    }
}

#[test]
fn each_of_many_policies_in_turn_admits_its_limit() {
    for policies in [10, 24, 40, MAX_ROWS] {
        for (credit, evicted_once_in) in [(false, 0), (false, 3), (true, 0)] {
            let mut object = ObjectInMemory::new(None);
            let mut random = Random(policies as u64);
            let mut admitted = vec![0; policies];
            for call in 0..(LIMIT as usize + 2) * policies {
                if random.once_in(evicted_once_in) {
                    object = ObjectInMemory::new(object.row().cloned());
                }
                let policy = call % policies;
                admitted[policy] += u64::from(allowed(&mut object, &[policy], credit, NOW + call as u64 / 8));
            }
            assert_eq!(admitted, vec![LIMIT; policies], "{policies} policies, credit: {credit}");
        }
    }
}

/// Lists that share policies, in any order, with evictions and alarms: never more than a limit, and without a loss exactly it.
#[test]
fn lists_that_share_policies_hold_each_limit() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let (credit, evicts) = (seed % 2 == 0, seed % 3 > 0);
        let policies = 2 + random.below(9) as usize;
        let lists: Vec<Vec<usize>> = (0..1 + random.below(12))
            .map(|_| (0..policies).filter(|_| random.below(3) == 0).take(8).collect())
            .filter(|list: &Vec<usize>| !list.is_empty())
            .collect();
        let mut object = ObjectInMemory::new(None);
        let mut admitted = vec![0; policies];
        for call in 0..40 * lists.len() {
            let now = NOW + call as u64;
            match random.below(12) {
                0 if evicts => object = ObjectInMemory::new(object.row().cloned()),
                1 => object.expire(now).unwrap(),
                _ => {}
            }
            let list = &lists[random.below(lists.len() as u64) as usize];
            let fits = list.iter().all(|&policy| admitted[policy] < LIMIT);
            let is_allowed = allowed(&mut object, list, credit, now);
            assert!(fits || !is_allowed, "seed {seed}, call {call}: {list:?} beyond {admitted:?}");
            assert!(
                is_allowed || !fits || (credit && evicts),
                "seed {seed}, call {call}: {list:?} within {admitted:?}"
            );
            if is_allowed {
                list.iter().for_each(|&policy| admitted[policy] += 1);
            }
        }
    }
}

#[test]
fn a_policy_too_many_is_an_error_that_changes_nothing() {
    let mut object = ObjectInMemory::new(None);
    for policy in 0..MAX_ROWS {
        assert!(allowed(&mut object, &[policy], false, NOW));
    }
    let row = object.row().cloned();
    assert!(object.apply(Operation::Hit { cost: 1 }, &list(&[MAX_ROWS]), false, NOW).is_err());
    assert_eq!(object.row().cloned(), row);
    // Those that have a row go on, and a peek needs none.
    assert!(allowed(&mut object, &[7], false, NOW));
    assert!(object.apply(Operation::Peek { cost: 1 }, &list(&[MAX_ROWS]), false, NOW).is_ok());
    // The windows have ended by then, and the buckets have not.
    assert!(allowed(&mut object, &[MAX_ROWS], false, NOW + HOUR));
}
