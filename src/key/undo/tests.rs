//! Tests of what an undo gives back, by algorithm, and how often.

use super::*;
use crate::{Answer, Costs, Exception, Ledger, Operation, Policies, Policy, Settlement};

fn ledger(policies: impl crate::IntoPolicies) -> Ledger {
    Ledger::new(policies).unwrap()
}

fn hit(ledger: &mut Ledger, cost: u64, now: u64) -> HitId {
    let random = now << 20 | cost;
    let answer = ledger.apply(Operation::HitUndoable { costs: Costs::All(cost), random }, now).unwrap().0;
    let Answer::Undoable { id: Some(id), .. } = answer else { panic!("{answer:?}") };
    id
}

fn undo(ledger: &mut Ledger, id: HitId, cost: u64, now: u64) -> u64 {
    let answer = ledger.apply(Operation::Undo { id, costs: Costs::All(cost) }, now).unwrap().0;
    let Answer::Number(given) = answer else { panic!("{answer:?}") };
    given
}

fn get(ledger: &mut Ledger, now: u64) -> u64 {
    let answer = ledger.apply(Operation::Get { policy: None }, now).unwrap().0;
    let Answer::Number(count) = answer else { panic!("{answer:?}") };
    count
}

fn inc(ledger: &mut Ledger, cost: i64, now: u64) {
    ledger.apply(Operation::Inc { policy: None, cost }, now).unwrap();
}

#[test]
fn a_window_gives_back_only_in_the_same_window() {
    let mut minute = ledger(Policy::fix_window(10, 60_000).unwrap());
    let (first, second) = (hit(&mut minute, 3, 59_998), hit(&mut minute, 4, 59_999));
    assert_eq!((undo(&mut minute, first, 3, 59_999), get(&mut minute, 59_999)), (3, 4));
    inc(&mut minute, 2, 60_000);
    assert_eq!((undo(&mut minute, second, 4, 60_001), get(&mut minute, 60_001)), (0, 2));
}

#[test]
fn a_sliding_counter_gives_back_in_the_window_before_as_well() {
    let mut counter = ledger(Policy::sliding_counter(10, 1_000).unwrap());
    let id = hit(&mut counter, 4, 900);
    inc(&mut counter, 6, 1_100);
    assert_eq!(get(&mut counter, 1_500), 8);
    assert_eq!((undo(&mut counter, id, 4, 1_500), get(&mut counter, 1_500)), (4, 6));
    let id = hit(&mut counter, 4, 1_600);
    assert_eq!(undo(&mut counter, id, 4, 3_000), 0);
}

#[test]
fn a_log_gives_back_the_entry_and_no_other() {
    let mut log = ledger(Policy::sliding_window(1_000, 5_000).unwrap());
    inc(&mut log, 2, 100);
    let small = hit(&mut log, 3, 200);
    inc(&mut log, 1, 200);
    // An entry of this cost takes two words.
    let id = hit(&mut log, 900, 300);
    inc(&mut log, 5, 400);
    assert_eq!((undo(&mut log, id, 900, 500), get(&mut log, 500)), (900, 11));
    assert_eq!((undo(&mut log, small, 3, 500), get(&mut log, 500)), (3, 8));
    assert_eq!([5_099, 5_100, 5_200, 5_399, 5_400].map(|now| get(&mut log, now)), [8, 6, 5, 5, 0]);
    // The entry has ended, or was dropped by a refund.
    let (ended, refunded) = (hit(&mut log, 2, 6_000), hit(&mut log, 2, 6_001));
    assert_eq!(undo(&mut log, ended, 2, 11_000), 0);
    inc(&mut log, -1, 11_000);
    assert_eq!((undo(&mut log, refunded, 2, 11_000), get(&mut log, 11_000)), (1, 0));
}

#[test]
fn a_bucket_gives_back_what_has_not_flowed() {
    // One in ten milliseconds.
    let mut bucket = ledger(Policy::leaky_bucket(50, 100, "1s").unwrap());
    let id = hit(&mut bucket, 5, 0);
    // 2.1 of it flowed.
    assert_eq!((undo(&mut bucket, id, 5, 21), get(&mut bucket, 21)), (3, 0));
    let id = hit(&mut bucket, 5, 100);
    inc(&mut bucket, 1, 121);
    assert_eq!((undo(&mut bucket, id, 5, 121), get(&mut bucket, 121), get(&mut bucket, 130)), (3, 1, 1));
    assert_eq!(get(&mut bucket, 131), 0);
    let mut bucket = ledger(Policy::leaky_bucket(50, 100, "1s").unwrap());
    inc(&mut bucket, 20, 0);
    let id = hit(&mut bucket, 5, 0);
    // What flowed was the others'.
    assert_eq!((undo(&mut bucket, id, 5, 200), get(&mut bucket, 200)), (5, 0));
    inc(&mut bucket, 20, 201);
    let id = hit(&mut bucket, 5, 201);
    inc(&mut bucket, 7, 431);
    assert_eq!((undo(&mut bucket, id, 5, 431), get(&mut bucket, 431)), (2, 7));
    // However slowly a bucket flows, a denied client costs it no more than what flows in a round trip.
    let mut slow = ledger(Policy::token_bucket(10, 1, "1d").unwrap());
    for now in (1_000..1_050).map(|number| 50 * number) {
        let id = hit(&mut slow, 1, now);
        assert_eq!(undo(&mut slow, id, 1, now + 20), 1);
    }
    assert_eq!(get(&mut slow, 60_000), 10);
}

#[test]
fn all_policies_of_a_key_give_back_what_they_were_charged() {
    let policies = [
        Policy::fix_window(10, "1h").unwrap().named("requests").unwrap(),
        Policy::token_bucket(1_000, 1, "1s").unwrap().named("tokens").unwrap(),
        Policy::ban(2, "1m", "1h").unwrap(),
    ];
    let mut ledger = ledger(Policies::new(policies).unwrap());
    let costs = Costs::ByPolicy(&[("tokens", 700)]);
    let Answer::Undoable { id: Some(id), .. } = ledger.apply(Operation::HitUndoable { costs, random: 1 }, 0).unwrap().0
    else {
        panic!("no id")
    };
    let count = |ledger: &mut Ledger, policy| ledger.apply(Operation::Get { policy: Some(policy) }, 0).unwrap().0;
    assert_eq!(count(&mut ledger, "tokens"), Answer::Number(300));
    assert_eq!(ledger.apply(Operation::Undo { id, costs }, 0).unwrap(), (Answer::Number(700), true));
    assert_eq!(ledger.apply(Operation::Undo { id, costs }, 0).unwrap(), (Answer::Number(0), false));
    assert_eq!(count(&mut ledger, "requests"), Answer::Number(0));
    assert_eq!(count(&mut ledger, "tokens"), Answer::Number(1_000));
    // Neither the hit nor its undo is a violation.
    assert_eq!(count(&mut ledger, "ban"), Answer::Number(0));
}

#[test]
fn a_hit_that_charged_nothing_has_no_id() {
    let mut ledger = ledger(Policy::fix_window(2, "1m").unwrap());
    let id = |ledger: &mut Ledger, cost| {
        let answer = ledger.apply(Operation::HitUndoable { costs: Costs::All(cost), random: 1 }, 0).unwrap().0;
        let Answer::Undoable { id, .. } = answer else { panic!("{answer:?}") };
        id
    };
    assert_eq!([id(&mut ledger, 0), id(&mut ledger, 3)], [None, None]);
    ledger.apply(Operation::Except { exception: Some(&Exception::allow()), until: 1_000 }, 0).unwrap();
    assert_eq!(id(&mut ledger, 1), None);
}

#[test]
fn an_undo_is_accepted_for_a_time_and_once() {
    let mut ledger = ledger(Policy::fix_window(100, "1h").unwrap());
    let (early, late) = (hit(&mut ledger, 1, 1_000), hit(&mut ledger, 2, 1_000));
    assert_eq!(undo(&mut ledger, early, 1, 999), 0);
    assert_eq!(undo(&mut ledger, late, 2, 1_000 + MAX_UNDO + 1), 0);
    assert_eq!(undo(&mut ledger, early, 1, 1_000 + MAX_UNDO), 1);
    // A stored key remembers it as well, and no longer than it has to.
    let record = ledger.record(1_000 + MAX_UNDO).unwrap().unwrap();
    let mut again = Ledger::new(Policy::fix_window(100, "1h").unwrap()).unwrap();
    again.load(&record, 1_000 + MAX_UNDO).unwrap();
    for now in [1_000 + MAX_UNDO, 1_000 + 2 * MAX_UNDO] {
        assert_eq!((undo(&mut again, early, 1, now), get(&mut again, now)), (0, 2));
    }
    assert!(again.states.extra.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "has too many reservations for Miri, which is a thousand times slower")]
fn marks_take_no_room_of_reservations_and_leave_denials_certain() {
    let mut ledger = ledger(Policy::fix_window(5_000, "1h").unwrap());
    for now in 0..200 {
        let id = hit(&mut ledger, 1, now);
        assert_eq!(undo(&mut ledger, id, 1, now), 1);
    }
    assert!(!ledger.has_open() && !ledger.states.extra.open.is_empty());
    for random in 0..crate::MAX_STORED_RESERVATIONS as u128 {
        let reserve = Operation::Reserve { costs: Costs::All(1), ttl: Some(60_000), random };
        let (answer, _) = ledger.apply(reserve, 200).unwrap();
        assert!(matches!(answer, Answer::Reserved { id: Some(_), .. }), "{answer:?}");
    }
    let reserve = Operation::Reserve { costs: Costs::All(0), ttl: None, random: 9_999 };
    let Answer::Reserved { decision, id: None } = ledger.apply(reserve, 201).unwrap().0 else { panic!("reserved") };
    assert_eq!((decision.reason, decision.retry_after), (Some(crate::Reason::Full), Some(59_999)));
    let id = "00000000000000000000000000000001.zzz.a".parse().unwrap();
    assert_eq!(
        ledger.apply(Operation::Settle { id, used: None }, 202).unwrap().0,
        Answer::Settled(Settlement::Settled)
    );
}

#[test]
#[cfg_attr(miri, ignore = "has too many hits for Miri, which is a thousand times slower")]
fn a_flood_of_undone_hits_costs_the_late_ones() {
    let mut ledger = ledger(Policy::fix_window(100, "1h").unwrap());
    let late = hit(&mut ledger, 3, 10);
    let ids: Vec<HitId> = (11..1_011)
        .map(|now| {
            let id = hit(&mut ledger, 1, now);
            assert_eq!(undo(&mut ledger, id, 1, now + 1), 1);
            id
        })
        .collect();
    assert_eq!(ledger.states.extra.open.len(), MAX_MARKS + 1);
    // No undo is performed twice, although not all are remembered.
    for id in ids {
        assert_eq!(undo(&mut ledger, id, 1, 1_100), 0);
    }
    assert_eq!((undo(&mut ledger, late, 3, 1_100), get(&mut ledger, 1_100)), (0, 3));
    // After their time, nothing is left of it.
    let id = hit(&mut ledger, 1, 1_100 + MAX_UNDO);
    assert_eq!(undo(&mut ledger, id, 1, 1_100 + MAX_UNDO), 1);
    assert_eq!(ledger.states.extra.open.len(), 1);
}

#[test]
fn an_id_is_read_as_it_was_written() {
    for (random, at, beside) in [(0, 0, 0), (u64::MAX, MAX, MAX), (42, 1_800_000_000_000, 35)] {
        let id = HitId::new(random, at, beside).unwrap();
        assert_eq!(id.to_string().parse(), Ok(id), "{id}");
        assert_eq!((id.at(), id.beside()), (at, beside));
    }
    let long = "000000000000002a.gggggggggggg.0";
    for text in ["", "2a.lw.3", "000000000000002A.lw.3", "000000000000002a.lw", "000000000000002a.LW.3", long] {
        assert!(text.parse::<HitId>().is_err(), "{text}");
    }
}
