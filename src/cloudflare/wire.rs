//! What crosses between the object, JavaScript and the gateway: numbers, and decisions as numbers in one text.
//!
//! One text crosses wasm's boundary and RPC several times as fast as a list or an object.

use super::fault::Fault;
use crate::number::integer;
use crate::{Decision, Denied, Error, MAX, Operation, Policies, Policy, Span, Violated};

/// What an operation comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To `hit` and `peek`.
    Decision(Decision),
    /// To `inc`, `set` and `get`: the count. To `expires_at`: a time.
    Number(u64),
    /// To `reset`: whether the key had been used.
    Reset(bool),
}

impl Reply {
    /// Returns a decision as eight numbers in a text, anything else as one.
    pub fn to_text(self) -> String {
        match self {
            Self::Decision(decision) => from_decision(&decision),
            Self::Number(number) => number.to_string(),
            Self::Reset(was_used) => u8::from(was_used).to_string(),
        }
    }
}

/// Returns the operation of that name.
pub(super) fn operation<'a>(name: &str, amount: u64, policy: Option<&'a str>) -> Result<Operation<'a>, Fault> {
    Ok(match name {
        "hit" => Operation::Hit { cost: amount },
        "peek" => Operation::Peek { cost: amount },
        "inc" => Operation::Inc { policy, cost: amount as i64 },
        "set" => Operation::Set { policy, count: amount },
        "get" => Operation::Get { policy },
        "expires_at" => Operation::ExpiresAt { policy },
        "reset" => Operation::Reset,
        _ => {
            let message = "operation: expected one of hit, peek, inc, set, get, expires_at, reset".into();
            return Err(Fault::Coded { code: "invalid_operation", message });
        }
    })
}

/// How `retry_after` says never.
const NEVER: &str = "-1";

/// Returns a decision as eight numbers, in the order that `js/cloudflare/decision.ts` knows.
pub fn from_decision(decision: &Decision) -> String {
    let never = || NEVER.to_string();
    format!(
        "{} {} {} {} {} {} {} {}",
        u8::from(decision.allowed),
        decision.count,
        decision.limit,
        decision.remaining,
        decision.retry_after.map_or_else(never, |wait| wait.to_string()),
        decision.reset_after,
        decision.policy,
        decision.violated.0,
    )
}

/// Parses such a text; `None` if it is not a decision.
pub fn to_decision(written: &str) -> Option<Decision> {
    let mut numbers = written.split(' ');
    let mut next = || numbers.next()?.parse::<i64>().ok();
    let decision = Decision {
        allowed: next()? == 1,
        count: next()? as u64,
        limit: next()? as u64,
        remaining: next()? as u64,
        retry_after: u64::try_from(next()?).ok(),
        reset_after: next()? as u64,
        policy: next()? as usize,
        violated: Violated(next()? as u32),
        reason: None,
    };
    numbers.next().is_none().then_some(decision)
}

/// A cost.
pub fn amount(number: f64) -> Result<u64, Error> {
    amount_of("hit", number)
}

/// What an operation takes: `set` a count, the others a cost.
pub fn amount_of(operation: &str, number: f64) -> Result<u64, Error> {
    integer(number).ok_or_else(|| match operation {
        "set" => Error::InvalidCount { found: number.into(), max: MAX },
        _ => Error::InvalidCost { found: number.into() },
    })
}

/// A time, without its fraction.
pub fn time(number: f64) -> Result<u64, Error> {
    integer(number.floor()).ok_or_else(|| Error::InvalidTime { found: number.into() })
}

/// Returns a decision as it is some milliseconds later: its waits are shorter.
pub fn later(mut decision: Decision, elapsed: u64) -> Decision {
    decision.retry_after = decision.retry_after.map(|wait| wait.saturating_sub(elapsed));
    decision.reset_after = decision.reset_after.saturating_sub(elapsed);
    decision
}

/// Returns the milliseconds of a duration; `None` if it is invalid.
pub fn milliseconds(span: Span) -> Option<u64> {
    span.milliseconds()
}

/// Returns a policy as an object takes it: denied hits are free unless it says otherwise, since counting one would
/// cost a row.
pub fn free_by_default(policy: Policy) -> Result<Policy, Error> {
    if policy.denied.is_none() { policy.denied(Denied::Free) } else { Ok(policy) }
}

/// Returns whether a denied hit under these policies is counted.
pub fn counts_denied(policies: &Policies) -> bool {
    policies.denied() == Denied::Count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_cross_and_come_back() {
        let denied = Decision { retry_after: Some(7), violated: Violated(0b101), policy: 2, ..Decision::NOTHING };
        for decision in
            [denied, Decision { retry_after: None, ..denied }, Decision { allowed: true, count: MAX, ..denied }]
        {
            assert_eq!(to_decision(&from_decision(&decision)), Some(decision));
        }
        assert_eq!(from_decision(&Decision { retry_after: None, ..denied }), "0 0 0 0 -1 0 2 5");
        for wrong in ["", "1", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 a", "1  3 4 5 6 7 8"] {
            assert_eq!(to_decision(wrong), None);
        }
    }

    #[test]
    fn only_whole_numbers_in_range_are_amounts() {
        assert_eq!(amount(0.0), Ok(0));
        assert_eq!(amount(MAX as f64), Ok(MAX));
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
            assert_eq!(amount(number).unwrap_err().code(), "invalid_cost");
            assert_eq!(amount_of("set", number).unwrap_err().code(), "invalid_count");
        }
        assert_eq!(time(1.9), Ok(1));
        assert!(time(-0.1).is_err());
    }
}
