//! A limiter over a store decides as a limiter in memory does, and a store that fails lets nothing through.

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate::{
    Answer, Costs, Denied, Ledger, ManualClock, Operation, Policies, Policy, Record, Settlement, Store, StoreError,
    StoreLimiter, step,
};

use crate::support::*;

/// A store that fails when it is told to.
#[derive(Default)]
struct Shelf {
    records: HashMap<String, Record>,
    saves: u32,
    load_fails: bool,
    save_fails: bool,
}

impl Store for &mut Shelf {
    type Error = &'static str;

    fn load(&mut self, key: &str) -> Result<Option<Record>, &'static str> {
        if self.load_fails { Err("no load") } else { Ok(self.records.get(key).cloned()) }
    }

    fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), &'static str> {
        if self.save_fails {
            return Err("no save");
        }
        self.saves += 1;
        match record {
            Some(record) => drop(self.records.insert(key.into(), record.clone())),
            None => drop(self.records.remove(key)),
        }
        Ok(())
    }
}

fn a_store_that_fails_to_save_lets_nothing_through(kind: Kind) {
    let calls = prop::collection::vec((forward(), acts(), any::<bool>()), 1..40);
    check((specs(kind), starts(), calls), |(spec, start, calls)| {
        let clock = ManualClock::new(start);
        let (mut shelf, mut expected, mut now) = (Shelf::default(), spec.ledger(), start);
        for (step, act, fails) in calls {
            now = step.from(now, spec.period());
            clock.set(now);
            let operation = act.operation_or_reserve(&spec);
            (shelf.save_fails, shelf.load_fails) = (fails, false);
            let saves = shelf.saves;
            let answer = StoreLimiter::new(spec.policy(), &mut shelf, &clock).unwrap().apply("key", operation);
            let mut after = expected.clone();
            let (would, changed) = after.apply(operation, now).unwrap();
            match answer {
                // Only what leaves nothing behind is answered without the store.
                Ok(answer) => {
                    prop_assert_eq!(answer, would);
                    prop_assert!(!fails || !changed);
                    prop_assert_eq!(shelf.saves - saves, u32::from(changed));
                    expected = after;
                }
                Err(error) => prop_assert!(fails && changed && error == StoreError::Store("no save"), "{error}"),
            }
            shelf.load_fails = true;
            let answer = StoreLimiter::new(spec.policy(), &mut shelf, &clock).unwrap().apply("key", operation);
            prop_assert_eq!(answer, Err(StoreError::Store("no load")));
        }
        Ok(())
    });
}

/// A policy whose `scale` changed: what the first answer says stays true, also when that answer was a denial.
fn a_converted_state_is_stored_even_by_a_denial(kind: Kind) {
    let scale = 1..=3_000_u64;
    check((specs(kind), starts(), scale, 0..=900_u64), |(mut spec, start, scale, later)| {
        spec.denied = Denied::Free;
        let clock = ManualClock::new(start);
        let mut shelf = Shelf::default();
        let operation = Operation::Inc { policy: None, cost: spec.limit as i64 };
        StoreLimiter::new(spec.policy(), &mut shelf, &clock).unwrap().apply("key", operation).unwrap();
        let new = Spec { scale, ..spec.clone() };
        let now = Move::Forward(later).from(start, spec.period());
        clock.set(now);
        let hit = Operation::Hit { cost: spec.limit };
        let first = decision(StoreLimiter::new(new.policy(), &mut shelf, &clock).unwrap().apply("key", hit).unwrap());
        if let Some(wait @ 1..) = first.retry_after {
            let record = shelf.records.get("key");
            let at = |now| decision(step(&new.policy().into(), record, hit, now).unwrap().answer).allowed;
            prop_assert!(!at(now + wait - 1) && at(now + wait), "{first:?}");
        }
        Ok(())
    });
}

each_algorithm!(a_store_that_fails_to_save_lets_nothing_through);
each_counting_algorithm!(a_converted_state_is_stored_even_by_a_denial);

/// The limiter in memory is a store too, and as one it loses nothing.
#[test]
fn a_limiter_in_memory_is_a_store() {
    let calls = prop::collection::vec((forward(), acts()), 1..30);
    check((any_spec(), starts(), calls), |(spec, start, calls)| {
        let clock = ManualClock::new(start);
        let slots = tollgate::Limiter::<String, _>::new(spec.policy(), &clock).unwrap();
        let mut limiter = StoreLimiter::new(spec.policy(), slots, &clock).unwrap();
        let (mut ledger, mut now): (Ledger, u64) = (spec.ledger(), start);
        for (step, act) in calls {
            now = step.from(now, spec.period());
            clock.set(now);
            let operation = act.operation(&spec);
            let answer: Answer = limiter.apply("key", operation).unwrap();
            prop_assert_eq!(answer, ledger.apply(operation, now).unwrap().0);
            prop_assert_eq!(limiter.store().expires_at("key").unwrap(), ledger.expires_at(now).unwrap());
        }
        Ok(())
    });
}

/// A store may delete a record at the end that it was told. A reservation of 0 may be settled for more until its own end.
#[test]
fn a_record_does_not_end_before_a_reservation_of_nothing() {
    let policies = Policies::from(Policy::token_bucket(10, 10, "1ms").unwrap());
    let reserve = Operation::Reserve { costs: Costs::All(0), ttl: Some(5_000), random: 7 };
    let reserved = step(&policies, None, reserve, 1_000).unwrap();
    assert_eq!(reserved.expires_at, 6_000);
    let Answer::Reserved { id: Some(id), .. } = reserved.answer else { panic!("{:?}", reserved.answer) };
    let settle = Operation::Settle { id, used: Some(Costs::All(10)) };
    let settled = step(&policies, reserved.record.as_ref(), settle, 5_999).unwrap();
    assert_eq!(settled.answer, Answer::Settled(Settlement::Settled));
    let hit = step(&policies, settled.record.as_ref(), Operation::Hit { cost: 1 }, 5_999).unwrap();
    assert!(matches!(hit.answer, Answer::Decision(decision) if !decision.allowed));
}
