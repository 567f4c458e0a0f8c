//! The Durable Object of one key.

use wasm_bindgen::prelude::*;
use worker::worker_sys::DurableObjectState;
use worker::{State, console_log};

use super::fault::Fault;
use super::message::{self, DecisionMessage};
use super::row::Row;
use crate::{Answer, Decision, Ledger, Operation};

/// One key: its states in memory, and in a row that outlives the memory.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RateLimiterObject {
    row: Row,
    memory: Option<Memory>,
}

/// What an earlier operation left: the policies as they were given, and the states under them.
#[derive(Debug)]
struct Memory {
    policies: String,
    ledger: Ledger,
}

#[wasm_bindgen]
impl RateLimiterObject {
    /// Takes over an object's storage; its row is not read before the first operation.
    #[wasm_bindgen(constructor)]
    pub fn new(context: DurableObjectState) -> Result<RateLimiterObject, Fault> {
        let sql = State::from(context).storage().sql();
        Ok(Self { row: Row::open(sql)?, memory: None })
    }

    /// Decides a hit: policies as JSON in, the decision as JSON out. The caller read the time, once.
    pub fn hit(&mut self, policies: &str, cost: f64, now: f64) -> Result<String, Fault> {
        let (cost, now) = (message::cost(cost)?, message::time(now)?);
        // Out of its place while it is used: a failure leaves no memory, and the row is read again.
        let mut memory = match self.memory.take() {
            Some(memory) if memory.policies == policies => memory,
            _ => self.recall(policies, now)?,
        };
        let decision = self.decide(&mut memory.ledger, cost, now)?;
        let message = DecisionMessage::new(&decision, memory.ledger.policies());
        self.memory = Some(memory);
        Ok(serde_json::to_string(&message)?)
    }
}

impl RateLimiterObject {
    /// The states as they were last saved, under these policies.
    fn recall(&self, policies: &str, now: u64) -> Result<Memory, Fault> {
        let mut ledger = Ledger::new(message::policies(policies)?)?;
        if let Some(record) = self.row.load()? {
            for name in ledger.load(&record, now)? {
                console_log!("the algorithm of policy {name} changed: its state starts afresh");
            }
        }
        Ok(Memory { policies: policies.into(), ledger })
    }

    /// An allowed hit is saved before it is answered; a denied one costs no row.
    fn decide(&self, ledger: &mut Ledger, cost: u64, now: u64) -> Result<Decision, Fault> {
        let (answer, changed) = ledger.apply(Operation::Hit { cost }, now)?;
        let Answer::Decision(decision) = answer else {
            return Err(Fault::new("a hit was not answered with a decision"));
        };
        if changed && decision.allowed {
            self.row.save(ledger.record(now).as_ref())?;
        }
        Ok(decision)
    }
}
