//! The Durable Object of one key.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::fault::Fault;
use super::policies;
use super::row::{Row, Storage};
use super::states::{Loaded, States};
use super::wire;
use crate::{Answer, Ledger, Operation};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = warn)]
    fn warn(line: &str);
}

/// One key: its states in memory, and in a row that outlives the memory.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RateLimiterObject {
    row: Row,
    /// What the row holds, once it was read, and denials that were counted since.
    states: Option<States>,
    memory: Option<Memory>,
}

/// What an earlier operation left: the policies as they were given, and the states under them.
#[derive(Debug)]
struct Memory {
    policies: String,
    counts_denied: bool,
    ledger: Ledger,
    /// Whether the row does not hold what was made of it when it was read under these policies.
    unsaved: bool,
}

#[wasm_bindgen]
impl RateLimiterObject {
    /// Takes over an object's storage; its row is not read before the first operation.
    #[wasm_bindgen(constructor)]
    pub fn new(storage: Storage) -> RateLimiterObject {
        Self { row: Row::new(storage), states: None, memory: None }
    }

    /// Does one operation under policies given as JSON: a decision comes back as eight numbers in a text, anything else as one.
    /// The caller read the time, once.
    pub fn apply(
        &mut self,
        operation: &str,
        policies: &str,
        amount: f64,
        of: Option<String>,
        now: f64,
    ) -> Result<String, Fault> {
        let now = wire::time(now)?;
        let operation = parse(operation, amount, of.as_deref())?;
        let answer = self.recall(policies, now).and_then(|()| self.perform(operation, now));
        if matches!(answer, Err(Fault::Platform(_))) {
            // What was not saved did not happen: the row is read again.
            self.forget();
        }
        answer
    }

    /// The names of the policies of the last operation.
    pub fn names(&self) -> Vec<String> {
        let memory = self.memory.as_ref();
        memory.map(|memory| memory.ledger.policies().names().map(Into::into).collect()).unwrap_or_default()
    }

    /// When the alarm rings: what had ended, to be told, as JSON; and whether nothing is left, so that everything is
    /// to be deleted. Otherwise the alarm is set again, because the key is in use.
    pub fn expire(&mut self, now: f64) -> Result<Array, Fault> {
        let now = wire::time(now)?;
        let mut states = self.states(now)?;
        let ended = states.take_ended(now);
        let empty = states.0.is_empty();
        self.forget();
        if empty {
            self.row.emptied();
        } else {
            self.row.rung();
            self.row.save(&states, now)?;
        }
        Ok(Array::of2(&ended.told().into(), &empty.into()))
    }
}

impl RateLimiterObject {
    /// Everything that is known of the key, with what is only in memory. Takes it out of its place.
    fn states(&mut self, now: u64) -> Result<States, Fault> {
        let mut states = match self.states.take() {
            Some(states) => states,
            None => self.row.load()?,
        };
        if let Some(memory) = self.memory.take() {
            states.keep(&memory.ledger, now);
        }
        Ok(states)
    }

    fn forget(&mut self) {
        (self.states, self.memory) = (None, None);
    }

    /// Puts the key's states under these policies into memory, unless they are there.
    fn recall(&mut self, policies: &str, now: u64) -> Result<(), Fault> {
        if self.memory.as_ref().is_some_and(|memory| memory.policies == policies) {
            return Ok(());
        }
        let built = policies::read(policies)?;
        let counts_denied = wire::counts_denied(&built);
        let mut ledger = Ledger::new(built)?;
        let states = self.states(now)?;
        let loaded = states.load(&mut ledger, now);
        self.states = Some(states);
        let Loaded { afresh, changed } = loaded?;
        if !afresh.is_empty() {
            warn(&serde_json::json!({ "event": "afresh", "policies": afresh }).to_string());
        }
        self.memory = Some(Memory { policies: policies.into(), counts_denied, ledger, unsaved: changed });
        Ok(())
    }

    /// Decides, and saves what must last before it is answered. A denied hit is not among it, so it costs no row.
    fn perform(&mut self, operation: Operation<'_>, now: u64) -> Result<String, Fault> {
        let Self { row, states: Some(states), memory: Some(memory) } = self else { return Ok(String::new()) };
        let ledger = &mut memory.ledger;
        let was_used = operation == Operation::Reset && ledger.expires_at(now) > 0;
        let is_hit = matches!(operation, Operation::Hit { .. });
        // A look tells a state that had to follow the clock, which must last, from a denial that was counted.
        let followed = is_hit && memory.counts_denied && ledger.apply(Operation::Hit { cost: 0 }, now)?.1;
        let (answer, changed) = ledger.apply(operation, now)?;
        let counted_denial =
            is_hit && memory.counts_denied && matches!(answer, Answer::Decision(decision) if !decision.allowed);
        if followed || memory.unsaved || changed && !counted_denial {
            states.keep(ledger, now);
            row.save(states, now)?;
            memory.unsaved = false;
        }
        Ok(match answer {
            Answer::Decision(decision) => wire::from_decision(&decision),
            Answer::Number(number) => number.to_string(),
            Answer::Done => u8::from(was_used).to_string(),
        })
    }
}

fn parse<'a>(operation: &str, amount: f64, policy: Option<&'a str>) -> Result<Operation<'a>, Fault> {
    let amount = wire::amount_of(operation, amount)?;
    Ok(match operation {
        "hit" => Operation::Hit { cost: amount },
        "peek" => Operation::Peek { cost: amount },
        "inc" => Operation::Inc { policy, cost: amount },
        "set" => Operation::Set { policy, count: amount },
        "get" => Operation::Get { policy },
        "expires_at" => Operation::ExpiresAt { policy },
        "reset" => Operation::Reset,
        _ => return Err(Fault::Coded { code: "invalid_operation", message: "there is no such operation".into() }),
    })
}
