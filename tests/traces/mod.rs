//! The traces recorded from Hammer.

#![allow(clippy::expect_used, clippy::panic, unreachable_pub)]

use std::collections::HashMap;

use serde::Deserialize;
use tollgate::{Answer, Denied, Operation, Policy};

/// Answers the operations of one trace.
pub type Subject = Box<dyn FnMut(&Op) -> Answer>;

/// A policy, and the operations on it.
#[derive(Deserialize)]
pub struct Trace {
    policy: Policy,
    ops: Vec<Op>,
}

/// An operation, and the answer that Hammer gave.
#[derive(Deserialize)]
pub struct Op {
    pub at: u64,
    op: String,
    pub key: String,
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

/// Why waits are not those of Hammer, by the word in their place and by algorithm.
const LOOSE_WAITS: &str = include_str!("../vectors/loose_waits.json");

impl Op {
    pub fn operation(&self) -> Operation<'static> {
        let policy = None;
        match self.op.as_str() {
            "hit" => Operation::Hit { cost: self.cost.expect("a hit has a cost") },
            "inc" => Operation::Inc { policy, cost: self.cost.expect("an inc has a cost") as i64 },
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
pub fn run(file: &str, mut subject: impl FnMut(Policy) -> Subject) {
    let traces: Vec<Trace> = serde_json::from_str(file).expect("a file of traces");
    assert_eq!(traces.len(), 24);
    let reasons: HashMap<&str, HashMap<&str, &str>> = serde_json::from_str(LOOSE_WAITS).expect("a file of reasons");
    for (number, trace) in traces.into_iter().enumerate() {
        for op in &trace.ops {
            if let Expect::Deny(Wait::Word(word)) = &op.expect {
                let algorithm = trace.policy.algorithm();
                let reason = reasons.get(word.as_str()).and_then(|reasons| reasons.get(algorithm));
                assert!(reason.is_some(), "{algorithm} has waits {word:?} without a reason in loose_waits.json");
            }
        }
        // Hammer counts denied hits; buckets have no such choice.
        let counting = trace.policy.clone().denied(Denied::Count).unwrap_or(trace.policy);
        let mut answer = subject(counting);
        for (position, op) in trace.ops.iter().enumerate() {
            op.check(answer(op), &format!("trace {number}, operation {position} ({} at {})", op.op, op.at));
        }
    }
}
