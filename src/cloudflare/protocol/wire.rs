//! The formats between the object, JavaScript and the gateway: numbers, and decisions as numbers in one string.
//!
//! One string crosses the boundaries of wasm and RPC several times as fast as a list or an object.

use serde_json::value::{RawValue, to_raw_value};

use crate::cloudflare::object::random::random_bits;
pub use crate::cloudflare::protocol::message::{Amount, Amounts, KEY, OBJECT, Question, id_and_object};
use crate::cloudflare::thrown::ThrownError;
use crate::error::wording;
use crate::lease::text::with_lease;
pub use crate::lease::text::{Certainty, from_decision, to_decision};
use crate::number::integer;
use crate::operations::OPERATIONS;
use crate::policy::exception;
use crate::policy::schema::MAX_TTL;
use crate::{
    Decision, Denied, Error, Exception, Expected, HitId, Lease, MAX, MAX_LEASE_TTL, Operation, Policies, Renewal,
    ReservationId, Settlement, Span, Value,
};

/// The result of an operation. `open` is how certain a denial is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub enum Reply {
    /// Of `hit` and `peek`.
    Decision { decision: Decision, open: Certainty },
    /// Of `inc`, `set` and `get`: the count. Of `expires_at`, `ban`, `unban` and `except`: a time. Of `exceptions`: 0.
    Number(u64),
    /// Of `get` and `exceptions` on a key with an exception: the same number, and the exception with its end.
    Excepted { number: u64, exception: Exception, until: u64 },
    /// Of `reset`: whether the key had been used.
    Reset(bool),
    /// Of a hit that can be undone; no id if it was denied, or charged nothing.
    Undoable { decision: Decision, open: Certainty, id: Option<HitId> },
    /// Of `undo`: the most that was given back under a policy.
    Undone(u64),
    /// Of `reserve`; no id if it was denied.
    Reserved { decision: Decision, open: Certainty, id: Option<ReservationId> },
    /// Of `lease`; no lease if none is open.
    Leased { decision: Decision, open: Certainty, lease: Option<Lease> },
    /// Of `settle`, `cancel` and `extend`; with the new id if it was extended.
    Settled { settlement: Settlement, id: Option<ReservationId> },
}

impl Reply {
    /// Returns a decision as nine numbers in a string, followed by the id of a hit, a reservation or a lease; any other
    /// result
    /// as one field.
    pub fn to_text(self) -> String {
        match self {
            Self::Decision { decision, open } => from_decision(&decision, open),
            Self::Number(number) => number.to_string(),
            Self::Excepted { number, exception, until } => format!("{number} {until} {}", json_text(&exception)),
            Self::Reset(was_used) => u8::from(was_used).to_string(),
            Self::Undoable { decision, open, id: None } => from_decision(&decision, open),
            Self::Undoable { decision, open, id: Some(id) } => format!("{} {id}", from_decision(&decision, open)),
            Self::Undone(given) => given.to_string(),
            Self::Reserved { decision, open, id: None } => from_decision(&decision, open),
            Self::Reserved { decision, open, id: Some(id) } => format!("{} {id}", from_decision(&decision, open)),
            Self::Leased { decision, open, lease } => with_lease(from_decision(&decision, open), lease.as_ref()),
            Self::Settled { settlement, .. } => settlement.as_str().into(),
        }
    }
}

/// Returns the operation of that name that has an amount at most; `policy` is the name of one of several policies.
pub(crate) fn counted<'a>(name: &str, amount: f64, policy: Option<&'a str>) -> Result<Operation<'a>, ThrownError> {
    let whole = || amount_of(name, amount).map(|amount| amount as u64);
    Ok(match name {
        "hit" => Operation::Hit { cost: whole()? },
        "peek" => Operation::Peek { cost: whole()? },
        "inc" => Operation::Inc { policy, cost: amount_of(name, amount)? },
        "set" => Operation::Set { policy, count: whole()? },
        "get" => Operation::Get { policy },
        "expires_at" => Operation::ExpiresAt { policy },
        "ban" => Operation::Ban { policy, length: ban(&Value::Number(amount))? },
        "unban" => Operation::Unban { policy },
        "reset" => Operation::Reset,
        _ => {
            let names: Vec<&str> = OPERATIONS.iter().map(|schema| schema.name).collect();
            let message = format!("operation: expected one of {}", names.join(", "));
            return Err(ThrownError::Coded { code: "invalid_operation", message });
        }
    })
}

/// Returns policies as JSON.
pub fn json_of(policies: &Policies) -> Result<Box<RawValue>, Error> {
    let list: Vec<_> = policies.iter().collect();
    to_raw_value(&list).map_err(|_| Error::state("policies have no JSON"))
}

/// Returns an exception as JSON, for a question.
pub fn raw_exception(exception: &Exception) -> Result<Box<RawValue>, Error> {
    to_raw_value(exception).map_err(|_| Error::state("an exception has no JSON"))
}

/// Checks how long an exception is to last. Returns it in milliseconds.
pub fn exception_length(length: &Value) -> Result<u64, Error> {
    end_after(length, 0)
}

/// Returns the end of an exception that lasts for `length` from now.
pub(crate) fn end_after(length: &Value, now: u64) -> Result<u64, Error> {
    exception::end_after(ban(length)?.into(), now)
}

/// Returns the end of an exception; its range is checked where it is set.
pub(crate) fn end_at(until: Option<f64>) -> Result<u64, Error> {
    let until = until.map_or(Value::Null, Value::Number);
    let expected = Expected::Described(wording::EXCEPTION_END);
    let wrong = || Error::InvalidOption { option: "until".into(), found: until.found(), expected };
    until.as_integer().ok_or_else(wrong)
}

/// Returns an exception as JSON.
pub(crate) fn json_text(exception: &Exception) -> String {
    // Its keys are strings, so this cannot fail.
    serde_json::to_string(exception).unwrap_or_default()
}

/// Checks that `value` is in the range of a reservation's `ttl`. Returns it in milliseconds.
pub fn ttl(value: &Value) -> Result<u64, Error> {
    let wrong = || Error::InvalidOption { option: "ttl".into(), found: value.found(), expected: Expected::Ttl };
    value.as_duration().filter(|ttl| *ttl <= MAX_TTL).ok_or_else(wrong)
}

/// Checks how long a ban is to last. Returns it in milliseconds.
pub fn ban(length: &Value) -> Result<u64, Error> {
    let wrong = || Error::InvalidOption { option: "for".into(), found: length.found(), expected: Expected::Duration };
    length.as_duration().ok_or_else(wrong)
}

/// Checks how long a lease is to last.
pub fn lease_ttl(value: &Value) -> Result<u64, Error> {
    let wrong = || Error::InvalidOption { option: "ttl".into(), found: value.found(), expected: Expected::LeaseTtl };
    value.as_duration().filter(|ttl| *ttl <= MAX_LEASE_TTL).ok_or_else(wrong)
}

/// Parses the report of a lease's holder, one field: id (may be empty), used, size and ttl, separated by commas.
pub(crate) fn renewal(written: &str) -> Result<Renewal, ThrownError> {
    let invalid =
        || ThrownError::Coded { code: "invalid_request", message: "lease: expected id, used, size, ttl".into() };
    let parts: Vec<&str> = written.split(',').collect();
    let &[id, used, size, ttl] = parts.as_slice() else { return Err(invalid()) };
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number <= MAX).ok_or_else(invalid);
    let id = if id.is_empty() { None } else { Some(id.parse()?) };
    Ok(Renewal { id, used: number(used)?, size: number(size)?, ttl: number(ttl)?, random: random_bits()? })
}

/// Checks that `number` is a cost.
pub fn amount(number: f64) -> Result<u64, Error> {
    integer(number).ok_or_else(|| Error::InvalidCost { found: number.into() })
}

/// Checks that `number` is an amount of the operation: a count for `set`, a cost that may be negative for `inc`, a cost
/// for the others.
pub fn amount_of(operation: &str, number: f64) -> Result<i64, Error> {
    let found = || number.into();
    let (size, sign) = if operation == "inc" && number < 0.0 { (-number, -1) } else { (number, 1) };
    integer(size).map(|size| sign * size as i64).ok_or_else(|| match operation {
        "set" => Error::InvalidCount { found: found(), max: MAX },
        "inc" => Error::InvalidInc { found: found() },
        _ => Error::InvalidCost { found: found() },
    })
}

/// Checks that `number` is a time, and drops its fraction.
pub fn time(number: f64) -> Result<u64, Error> {
    integer(number.floor()).ok_or_else(|| Error::InvalidTime { found: number.into() })
}

/// Returns the milliseconds of a duration; `None` if it is invalid.
pub fn milliseconds(span: Span) -> Option<u64> {
    span.milliseconds()
}

/// Returns whether a denied hit under these policies is counted.
pub fn counts_denied(policies: &Policies) -> bool {
    policies.denied() == Denied::Count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_in_range_are_amounts() {
        assert_eq!(amount(0.0), Ok(0));
        assert_eq!(amount(MAX as f64), Ok(MAX));
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
            assert_eq!(amount(number).unwrap_err().code(), "invalid_cost");
            assert_eq!(amount_of("set", number).unwrap_err().code(), "invalid_count");
        }
        assert_eq!(amount_of("inc", -(MAX as f64)), Ok(-(MAX as i64)));
        for number in [-0.5, f64::NAN, f64::NEG_INFINITY, -(MAX as f64) - 1.0] {
            assert_eq!(amount_of("inc", number).unwrap_err().code(), "invalid_cost");
        }
        assert_eq!(time(1.9), Ok(1));
        assert!(time(-0.1).is_err());
    }
}
