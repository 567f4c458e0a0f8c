//! One key's states outside a slab, for stores that load, decide and save.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use wasm_bindgen::prelude::*;

use super::area::Area;
use super::convert::{self, BETWEEN, complain, made_by_from, states_from, states_to};
use super::policies::PolicySet;
use super::{BAD_COST, BAD_TIME, FAILED, number_or};
use crate::{Answer, Error, Ledger, Operation, Record};

/// One key's states, and the area its answers lie in.
#[wasm_bindgen]
pub struct Account {
    ledger: Ledger,
    area: Box<Area>,
    changed: bool,
}

#[wasm_bindgen]
impl Account {
    /// A key that was never used.
    pub fn make(policies: &PolicySet) -> Option<Account> {
        let ledger = complain(Ledger::new(policies.0.clone()))?;
        Some(Self { ledger, area: Box::default(), changed: false })
    }

    /// Where the area lies in the memory.
    pub fn area(&self) -> u32 {
        self.area.address()
    }

    /// Reads what was stored. Answers the names of the policies that start afresh.
    pub fn load(&mut self, version: f64, made_by: &str, states: &[f64], now: f64) -> Option<String> {
        let now = complain(convert::checked_time(now))?;
        let version = complain(convert::cost(version).ok_or(Error::state("it has no version")))?;
        let record = Record { version, policies: made_by_from(made_by), states: complain(states_from(states))? };
        Some(complain(self.ledger.load(&record, now))?.join(BETWEEN))
    }

    /// Does one operation, by its number: `js/step.ts` knows the same.
    pub fn apply(&mut self, operation: u32, amount: f64, now: f64, policy: Option<String>) -> i32 {
        let policy = policy.as_deref();
        let now = number_or!(convert::time(now), BAD_TIME);
        let amount = convert::cost(amount);
        let operation = match (operation, amount) {
            (0, Some(cost)) => Operation::Hit { cost },
            (1, Some(cost)) => Operation::Peek { cost },
            (2, Some(cost)) => Operation::Inc { policy, cost },
            (3, count) => Operation::Set { policy, count: count.unwrap_or(u64::MAX) },
            (4, _) => Operation::Get { policy },
            (5, _) => Operation::ExpiresAt { policy },
            (6, _) => Operation::Reset,
            _ => return BAD_COST,
        };
        let (answer, changed) = number_or!(complain(self.ledger.apply(operation, now)), FAILED);
        self.changed = changed;
        match answer {
            Answer::Decision(decision) => self.area.decide(&decision),
            Answer::Number(number) => self.area.number(number),
            Answer::Done => 0,
        }
    }

    /// Whether the last operation changed the states.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// When the last of the states ends; 0 when there is nothing to store.
    pub fn expires_at(&self, now: f64) -> f64 {
        convert::time(now).map_or(0.0, |now| self.ledger.expires_at(now) as f64)
    }

    /// The states as plain numbers.
    pub fn export(&self) -> Vec<f64> {
        states_to(&self.ledger.states())
    }
}
