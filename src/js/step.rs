//! One operation on what was stored of a key, for stores that load, decide and save.

use alloc::vec::Vec;
use wasm_bindgen::prelude::*;

use super::convert::{self, joined, made_by_from, states_from, states_to};
use super::desk::{cleared, desk};
use super::{BAD_COST, BAD_TIME, FAILED, or_status};
use crate::{Answer, Error, Ledger, Operation, Record};

/// Does an operation, by its number (`js/step.ts` knows the same), on what was stored, if its version is not negative:
/// the text is what the states were made by, the numbers are the states. The text is then the names of the policies
/// that started afresh, and the numbers are whether anything changed, when it all ends, and the states.
#[wasm_bindgen]
pub fn step(policies: usize, version: f64, operation: u32, amount: f64, now: f64, position: usize) -> i32 {
    desk(|desk| {
        let now = or_status!(convert::time(now), BAD_TIME);
        let policies = or_status!(desk.policies.get(policies), FAILED);
        let policy = None;
        let operation = match (operation, convert::cost(amount)) {
            (0, Some(cost)) => Operation::Hit { cost },
            (1, Some(cost)) => Operation::Peek { cost },
            (2, Some(cost)) => Operation::Inc { policy, cost },
            (3, count) => Operation::Set { policy, count: count.unwrap_or(u64::MAX) },
            (4, _) => Operation::Get { policy },
            (5, _) => Operation::ExpiresAt { policy },
            (6, _) => Operation::Reset,
            _ => return BAD_COST,
        };
        let stored = || {
            let version = convert::cost(version).ok_or(Error::state("it has no version"))?;
            let states = states_from(&desk.numbers)?;
            Ok(Record { version, policies: made_by_from(desk.text()), states })
        };
        let stepped = || {
            let mut ledger = Ledger::new(policies.clone())?;
            let (mut afresh, mut converted) = (Vec::new(), false);
            if version >= 0.0 || version.is_nan() {
                let record = stored()?;
                afresh = ledger.load(&record, now)?;
                converted = !record.is_made_by(policies);
            }
            let (answer, changed) = ledger.apply_at(operation, position, now)?;
            Ok((answer, changed || converted, ledger, afresh))
        };
        let (answer, changed, ledger, afresh) = match stepped() {
            Ok(stepped) => stepped,
            Err(error) => return desk.fail(&error),
        };
        let mut numbers = cleared(&mut desk.numbers);
        numbers.push(f64::from(changed));
        numbers.push(ledger.expires_at(now) as f64);
        states_to(&ledger.states(), &mut numbers);
        desk.answer_numbers(numbers);
        desk.answer(joined(&afresh));
        match answer {
            Answer::Decision(decision) => desk.area.decide(&decision),
            Answer::Number(number) => desk.area.number(number),
            Answer::Done => 0,
        }
    })
}
