//! Every recorded trace, through the limiter in memory and through the pure step over serialised records.
//!
//! The same files are the law for every target, so this runs natively and as wasm.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use serde::Deserialize;
use tollgate::{Answer, Limiter, ManualClock, Operation, Policies, Policy, Record, step};

#[derive(Deserialize)]
struct Trace {
    policy: Policy,
    ops: Vec<Op>,
}

#[derive(Deserialize)]
struct Op {
    at: u64,
    op: String,
    key: String,
    cost: Option<u64>,
    count: Option<u64>,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Allow(u64),
    Deny(Wait),
    Value(u64),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Wait {
    Exactly(u64),
    Word(String),
}

impl Op {
    fn operation(&self) -> Operation<'static> {
        let policy = None;
        match self.op.as_str() {
            "hit" => Operation::Hit { cost: self.cost.expect("a hit has a cost") },
            "inc" => Operation::Inc { policy, cost: self.cost.expect("an inc has a cost") },
            "set" => Operation::Set { policy, count: self.count.expect("a set has a count") },
            "get" => Operation::Get { policy },
            "expires_at" => Operation::ExpiresAt { policy },
            other => panic!("a trace has an unknown operation: {other}"),
        }
    }

    fn check(&self, answer: Answer, context: &str) {
        match (&self.expect, answer) {
            (Expect::Value(value), Answer::Number(number)) => assert_eq!(number, *value, "{context}"),
            (Expect::Allow(count), Answer::Decision(decision)) => {
                assert!(decision.allowed, "{context}: {decision:?}");
                assert_eq!((decision.count, decision.retry_after), (*count, Some(0)), "{context}");
            }
            (Expect::Deny(wait), Answer::Decision(decision)) => {
                assert!(!decision.allowed, "{context}: {decision:?}");
                match wait {
                    Wait::Exactly(wait) => assert_eq!(decision.retry_after, Some(*wait), "{context}"),
                    Wait::Word(word) if word == "never" => assert_eq!(decision.retry_after, None, "{context}"),
                    Wait::Word(word) => {
                        assert_eq!(word, "any", "{context}");
                        assert!(decision.retry_after.is_some_and(|wait| wait > 0), "{context}: {decision:?}");
                    }
                }
            }
            (expect, answer) => panic!("{context}: expected {expect:?}, got {answer:?}"),
        }
    }
}

/// Runs a file's traces, with a new subject for each.
fn run(file: &str, mut subject: impl FnMut(Policy) -> Box<dyn FnMut(&Op) -> Answer>) {
    let traces: Vec<Trace> = serde_json::from_str(file).expect("a file of traces");
    assert_eq!(traces.len(), 24);
    for (number, trace) in traces.into_iter().enumerate() {
        let mut answer = subject(trace.policy);
        for (position, op) in trace.ops.iter().enumerate() {
            op.check(answer(op), &format!("trace {number}, operation {position} ({} at {})", op.op, op.at));
        }
    }
}

fn in_memory(policy: Policy) -> Box<dyn FnMut(&Op) -> Answer> {
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

fn by_step(policy: Policy) -> Box<dyn FnMut(&Op) -> Answer> {
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
            use super::run;
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
