//! The pure step: from policies, a stored record, an operation and a time to an answer and the record to store.

use crate::{Answer, Error, Ledger, Operation, Policies, Record};
use alloc::string::String;
use alloc::vec::Vec;

/// The result of a [`step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The answer.
    pub answer: Answer,
    /// The record to store; `None` if the key is as if it had never been used.
    pub record: Option<Record>,
    /// When the record ends, in milliseconds since the epoch; 0 if there is none.
    pub expires_at: u64,
    /// Whether the operation changed the states, so that the record must be stored.
    pub changed: bool,
    /// The names of the policies that started unused because their algorithm, `scale` or `per` changed.
    pub afresh: Vec<String>,
}

/// Performs one operation on the stored record of a key. Any store that can load, compare and save can be built on it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn a_reset_of_a_key_never_used_changes_nothing() {
        let policies = Policies::from(Policy::fix_window(5, "1m").unwrap());
        let used = step(&policies, None, Operation::Hit { cost: 3 }, 0).unwrap().record;
        for reset in [Operation::Reset, Operation::ResetAll] {
            let changes = |record, now| step(&policies, record, reset, now).unwrap().changed;
            assert!(!changes(None, 0) && changes(used.as_ref(), 59_999));
            // A window that has ended would come back if the clock stepped back.
            assert!(changes(used.as_ref(), 60_000));
        }
    }
}
