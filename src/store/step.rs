//! The pure step: policies, what was stored, an operation and a time in; an answer and what to store out.

use crate::{Answer, Error, Ledger, Operation, Policies, Record};
use alloc::string::String;
use alloc::vec::Vec;

/// What a [`step`] comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The answer.
    pub answer: Answer,
    /// What is to be stored now; nothing when the key is as if it had never been used.
    pub record: Option<Record>,
    /// When that ends, in milliseconds since the epoch; 0 when there is nothing to store.
    pub expires_at: u64,
    /// Whether that differs from what was stored.
    pub changed: bool,
    /// The names of the policies that started unused because their algorithm, `scale` or `per` changed.
    pub afresh: Vec<String>,
}

/// Does one operation on what was stored of a key. Any store that can load, compare and save can be built on it.
///
/// ```
/// use tollgate::{Answer, Operation, Policies, Policy, step};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::from(Policy::fix_window(1, "1m")?);
/// let first = step(&policies, None, Operation::Hit { cost: 1 }, 0)?;
/// let second = step(&policies, first.record.as_ref(), Operation::Hit { cost: 1 }, 15_000)?;
/// let Answer::Decision(decision) = second.answer else { unreachable!() };
/// assert_eq!((decision.allowed, decision.retry_after), (false, Some(45_000)));
/// # Ok(())
/// # }
/// ```
pub fn step(policies: &Policies, record: Option<&Record>, operation: Operation<'_>, now: u64) -> Result<Step, Error> {
    let mut ledger = Ledger::new(policies.clone())?;
    let afresh = match record {
        Some(record) => ledger.load(record, now)?,
        None => Vec::new(),
    };
    let (answer, changed) = ledger.apply(operation, now)?;
    Ok(Step { answer, record: ledger.record(now)?, expires_at: ledger.expires_at(now)?, changed, afresh })
}
