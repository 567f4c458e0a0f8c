//! Every recorded trace, through the limiter in memory and through the pure step over serialised records.
//!
//! The same files are the law for every target, so this runs natively and as wasm.

#![allow(clippy::expect_used)]

mod traces;

use std::collections::HashMap;

use tollgate::{Answer, Limiter, ManualClock, Operation, Policies, Policy, Record, step};
use traces::Subject;

fn in_memory(policy: Policy) -> Subject {
    let clock = std::rc::Rc::new(ManualClock::new(0));
    let mut limiter = Limiter::<String, _>::new(policy, clock.clone()).expect("a limiter");
    Box::new(move |op| {
        clock.set(op.at);
        let key = op.key.as_str();
        match op.operation() {
            Operation::Hit { cost } => {
                let peeked = limiter.peek(key, cost).expect("a peek");
                let decision = limiter.hit(key, cost).expect("a hit");
                assert_eq!(peeked, decision);
                Answer::Decision(decision)
            }
            Operation::Inc { cost, .. } => Answer::Number(limiter.inc(key, cost).expect("an inc")),
            Operation::Set { count, .. } => Answer::Number(limiter.set(key, count).expect("a set")),
            Operation::Get { .. } => Answer::Number(limiter.get(key).expect("a get")),
            _ => Answer::Number(limiter.expires_at(key).expect("an expires_at")),
        }
    })
}

fn by_step(policy: Policy) -> Subject {
    let policies = Policies::from(policy);
    let mut records: HashMap<String, String> = HashMap::new();
    Box::new(move |op| {
        let record = records.get(&op.key).map(|json| serde_json::from_str::<Record>(json).expect("a record"));
        let step = step(&policies, record.as_ref(), op.operation(), op.at).expect("a step");
        match step.record {
            Some(record) => records.insert(op.key.clone(), serde_json::to_string(&record).expect("json")),
            None => records.remove(&op.key),
        };
        step.answer
    })
}

macro_rules! conformance {
    ($($algorithm:ident)+) => { $(
        mod $algorithm {
            use super::traces::run;
            #[cfg(target_arch = "wasm32")]
            use wasm_bindgen_test::wasm_bindgen_test as test;

            const FILE: &str = include_str!(concat!("vectors/", stringify!($algorithm), ".json"));

            #[test]
            fn in_memory() {
                run(FILE, super::in_memory);
            }

            #[test]
            fn by_step() {
                run(FILE, super::by_step);
            }
        }
    )+ };
}

conformance!(fix_window fix_window_per_key sliding_window token_bucket leaky_bucket);
