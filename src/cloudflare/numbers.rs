//! Numbers as JavaScript gives and takes them, and decisions as lists of numbers.

use crate::{Decision, Error, MAX, Violated};

/// How `retry_after` says never.
const NEVER: f64 = -1.0;

/// A decision as an object answers it: eight numbers, in the order that `js/cloudflare/decision.ts` knows.
pub(super) fn from_decision(decision: &Decision) -> Vec<f64> {
    vec![
        f64::from(u8::from(decision.allowed)),
        decision.count as f64,
        decision.limit as f64,
        decision.remaining as f64,
        decision.retry_after.map_or(NEVER, |wait| wait as f64),
        decision.reset_after as f64,
        decision.policy as f64,
        f64::from(decision.violated.0),
    ]
}

/// The decision in such a list; nothing when it is none.
pub(super) fn to_decision(numbers: &[f64]) -> Option<Decision> {
    let &[allowed, count, limit, remaining, retry_after, reset_after, policy, violated] = numbers else { return None };
    Some(Decision {
        allowed: allowed == 1.0,
        count: count as u64,
        limit: limit as u64,
        remaining: remaining as u64,
        retry_after: (retry_after != NEVER).then_some(retry_after as u64),
        reset_after: reset_after as u64,
        policy: policy as usize,
        violated: Violated(violated as u32),
        reason: None,
    })
}

/// A cost.
pub(super) fn amount(number: f64) -> Result<u64, Error> {
    amount_of("hit", number)
}

/// What an operation takes: `set` a count, the others a cost.
pub(super) fn amount_of(operation: &str, number: f64) -> Result<u64, Error> {
    let exact = if number.fract() == 0.0 { whole(number) } else { None };
    exact.ok_or_else(|| {
        let found = in_words(number);
        if operation == "set" { Error::count(found, MAX) } else { Error::cost(found) }
    })
}

/// A time, without its fraction.
pub(super) fn time(number: f64) -> Result<u64, Error> {
    whole(number.floor()).ok_or_else(|| Error::time(in_words(number)))
}

fn whole(number: f64) -> Option<u64> {
    (0.0..=MAX as f64).contains(&number).then_some(number as u64)
}

/// Writing a fraction would be the largest thing in the wasm.
fn in_words(number: f64) -> &'static str {
    if number.is_nan() {
        "not a number"
    } else if number < 0.0 {
        "a negative number"
    } else if number > MAX as f64 {
        "a number past 9007199254740991"
    } else {
        "a fraction"
    }
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
        assert_eq!(to_decision(&[1.0]), None);
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
