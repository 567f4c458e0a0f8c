//! Numbers as JavaScript gives and takes them, and decisions as numbers in a text: no other value crosses so fast.

use crate::number::{in_words, whole};
use crate::text::digits;
use crate::{Decision, Error, MAX, Violated};

/// How `retry_after` says never.
const NEVER: &str = "-1";

/// A decision as an object answers it: eight numbers, in the order that `js/cloudflare/decision.ts` knows.
pub(super) fn from_decision(decision: &Decision) -> String {
    let numbers = [
        decision.allowed.into(),
        decision.count,
        decision.limit,
        decision.remaining,
        decision.retry_after.unwrap_or_default(),
        decision.reset_after,
        decision.policy as u64,
        decision.violated.0.into(),
    ];
    let mut written = String::with_capacity(64);
    for (position, number) in numbers.into_iter().enumerate() {
        if position > 0 {
            written.push(' ');
        }
        let never = position == 4 && decision.retry_after.is_none();
        written.push_str(&if never { NEVER.into() } else { digits(number) });
    }
    written
}

/// The decision in such a text; nothing when it is none.
pub(super) fn to_decision(written: &str) -> Option<Decision> {
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
pub(super) fn amount(number: f64) -> Result<u64, Error> {
    amount_of("hit", number)
}

/// What an operation takes: `set` a count, the others a cost.
pub(super) fn amount_of(operation: &str, number: f64) -> Result<u64, Error> {
    whole(number).ok_or_else(|| {
        let found = in_words(number);
        if operation == "set" { Error::count(found, MAX) } else { Error::cost(found) }
    })
}

/// A time, without its fraction.
pub(super) fn time(number: f64) -> Result<u64, Error> {
    whole(number.floor()).ok_or_else(|| Error::time(in_words(number)))
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
