//! The Durable Object of one key.

use wasm_bindgen::prelude::*;

use super::fault::Fault;
use super::policies::{draft, free_by_default};
use super::row::{Row, Saved, Storage};
use super::tree::Tree;
use super::{from_js, numbers};
use crate::text::listed;
use crate::{Answer, Ledger, Operation, Policies};

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
    memory: Option<Memory>,
}

/// What an earlier operation left: the policies as they were given, and the states under them.
#[derive(Debug)]
struct Memory {
    policies: String,
    counts_denied: bool,
    ledger: Ledger,
}

#[wasm_bindgen]
impl RateLimiterObject {
    /// Takes over an object's storage; its row is not read before the first operation.
    #[wasm_bindgen(constructor)]
    pub fn new(storage: Storage) -> RateLimiterObject {
        Self { row: Row::new(storage), memory: None }
    }

    /// Does one operation under policies given as JSON: a decision comes back as eight numbers, anything else as one.
    /// The caller read the time, once.
    pub fn apply(
        &mut self,
        operation: &str,
        policies: &str,
        amount: f64,
        of: Option<String>,
        now: f64,
    ) -> Result<Vec<f64>, Fault> {
        let (amount, now) = (numbers::amount(amount)?, numbers::time(now)?);
        let operation = parse(operation, amount, of.as_deref())?;
        // Out of its place while it is used: a failure leaves no memory, and the row is read again.
        let mut memory = match self.memory.take() {
            Some(memory) if memory.policies == policies => memory,
            _ => self.recall(policies, now)?,
        };
        let was_used = operation == Operation::Reset && memory.ledger.expires_at(now) > 0;
        let answer = self.perform(&mut memory, operation, now)?;
        self.memory = Some(memory);
        Ok(match answer {
            Answer::Decision(decision) => numbers::from_decision(&decision),
            Answer::Number(number) => vec![number as f64],
            Answer::Done => vec![f64::from(u8::from(was_used))],
        })
    }

    /// The names of the policies of the last operation.
    pub fn names(&self) -> Vec<String> {
        let memory = self.memory.as_ref();
        memory.map(|memory| memory.ledger.policies().names().map(Into::into).collect()).unwrap_or_default()
    }

    /// When the alarm rings: what had expired, to be told before everything is deleted; or nothing, and the alarm is
    /// set again because the key is in use. An object that holds nothing has expired too.
    pub fn expire(&mut self, now: f64) -> Result<Option<String>, Fault> {
        let now = numbers::time(now)?;
        let saved = self.row.load()?;
        if let Some(saved) = &saved
            && saved.expires > now
        {
            self.row.rearm(saved.expires, now)?;
            return Ok(None);
        }
        self.memory = None;
        self.row.emptied();
        Ok(Some(saved.map(|saved| told(&saved)).unwrap_or_default()))
    }
}

impl RateLimiterObject {
    /// The states as they were last saved, under these policies.
    fn recall(&mut self, policies: &str, now: u64) -> Result<Memory, Fault> {
        let built = read(policies)?;
        let counts_denied = built.denied() == crate::Denied::Count;
        let mut ledger = Ledger::new(built)?;
        if let Some(saved) = self.row.load()? {
            let afresh = ledger.load(&saved.record, now)?;
            if !afresh.is_empty() {
                warn(&["{\"event\":\"afresh\",\"policies\":\"", &listed(&afresh), "\"}"].concat());
            }
        }
        Ok(Memory { policies: policies.into(), counts_denied, ledger })
    }

    /// Decides, and saves what must last before it is answered. A denied hit is not among it, so it costs no row.
    fn perform(&mut self, memory: &mut Memory, operation: Operation<'_>, now: u64) -> Result<Answer, Fault> {
        let ledger = &mut memory.ledger;
        let is_hit = matches!(operation, Operation::Hit { .. });
        // A look tells a state that had to follow the clock, which must last, from a denial that was counted.
        let followed = is_hit && memory.counts_denied && ledger.apply(Operation::Hit { cost: 0 }, now)?.1;
        let (answer, changed) = ledger.apply(operation, now)?;
        let counted_denial =
            is_hit && memory.counts_denied && matches!(answer, Answer::Decision(decision) if !decision.allowed);
        if followed || changed && !counted_denial {
            self.row.save(ledger.record(now).as_ref(), ledger.expires_at(now), now)?;
        }
        Ok(answer)
    }
}

fn parse<'a>(operation: &str, amount: u64, policy: Option<&'a str>) -> Result<Operation<'a>, Fault> {
    Ok(match operation {
        "hit" => Operation::Hit { cost: amount },
        "peek" => Operation::Peek { cost: amount },
        "inc" => Operation::Inc { policy, cost: amount },
        "set" => Operation::Set { policy, count: amount },
        "get" => Operation::Get { policy },
        "expires_at" => Operation::ExpiresAt { policy },
        "reset" => Operation::Reset,
        _ => return Err(Fault::Mistake { code: "invalid_operation", message: "there is no such operation".into() }),
    })
}

/// Policies from JSON: one, or a list.
fn read(json: &str) -> Result<Policies, Fault> {
    let trees = match from_js::read(&js_sys::JSON::parse(json)?) {
        Some(Tree::List(list)) => list,
        one => one.into_iter().collect(),
    };
    let mut policies = Vec::new();
    for tree in &trees {
        let draft = draft(tree).ok_or_else(|| Fault::Mistake {
            code: "invalid_policy",
            message: "policies: give a policy, or a list of them".into(),
        })?;
        let policy = draft.build()?;
        policies.push(if trees.len() > 1 { policy } else { free_by_default(policy)? });
    }
    Ok(Policies::new(policies)?)
}

/// What had expired, in JSON.
fn told(saved: &Saved) -> String {
    use crate::text::{digits, quoted, text};
    let states = saved.record.policies.iter().zip(&saved.record.states).map(|(made_by, state)| {
        let numbers: Vec<String> = state
            .iter()
            .map(|number| text(&[if *number < 0 { "-" } else { "" }, &digits(number.unsigned_abs())]))
            .collect();
        let (name, algorithm) = (quoted(&made_by.name), quoted(&made_by.algorithm));
        text(&["{\"policy\":", &name, ",\"algorithm\":", &algorithm, ",\"state\":[", &listed(&numbers), "]}"])
    });
    let states: Vec<String> = states.collect();
    text(&["{\"expiredAt\":", &digits(saved.expires), ",\"states\":[", &listed(&states), "]}"])
}
