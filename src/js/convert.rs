//! Between what crosses the border, numbers and texts, and the core's own types.

use alloc::string::String;
use alloc::vec::Vec;

use crate::duration::ACCEPTS;
use crate::number::{MAX, from_digits};
use crate::policy::{Draft, Value};
use crate::record::MadeBy;
use crate::text::{digits, push};
use crate::{Error, OnFull, Options, Policies, Span};

/// Ends each field of a text; JavaScript lets it into none of them.
pub(super) const BETWEEN: &str = "\u{1f}";
const END: u8 = 0x1f;
/// Ends each policy of a text.
const BETWEEN_POLICIES: u8 = 0x1e;

/// A cost or count that JavaScript gave, if it is one.
#[inline(always)]
pub(super) fn cost(cost: f64) -> Option<u64> {
    // A fraction and not-a-number come back as something else. Machines convert signed numbers in fewer steps.
    let whole = cost as i64;
    (whole as f64 == cost && whole as u64 <= MAX).then_some(whole as u64)
}

/// A time that JavaScript gave, if it is one. A fraction is floored.
#[inline(always)]
pub(super) fn time(now: f64) -> Option<u64> {
    (now >= 0.0 && now <= MAX as f64).then_some(now as i64 as u64)
}

/// Policies from a text: names and values in turn. Each policy has an end.
pub(super) fn policies_from(mut written: &str) -> Result<Policies, Error> {
    let mut policies = Vec::new();
    while let Some(mut policy) = part(&mut written, BETWEEN_POLICIES) {
        let mut draft = Draft::default();
        while let Some((name, value)) = field(&mut policy) {
            draft.push(name, value);
        }
        policies.push(draft.build()?);
    }
    Policies::new(policies)
}

/// Options from a text: names and values in turn.
pub(super) fn options_from(mut written: &str) -> Result<Options, Error> {
    let mut options = Options::new();
    while let Some((name, value)) = field(&mut written) {
        let (option, accepts) = match (name, &value) {
            // A JavaScript Map holds no more.
            ("maxKeys", Value::Whole(keys @ 1..=16_000_000)) => {
                options.max_keys = *keys as u32;
                continue;
            }
            ("maxKeys", _) => ("maxKeys", "a whole number from 1 to 16000000"),
            ("onFull", Value::Text(text @ ("evict" | "deny"))) => {
                options.on_full = if *text == "deny" { OnFull::Deny } else { OnFull::Evict };
                continue;
            }
            ("onFull", _) => ("onFull", "\"evict\" or \"deny\""),
            (name, value) => {
                let span = match value {
                    Value::Whole(milliseconds) => Span::from(*milliseconds).checked().ok(),
                    Value::Text(text) => Span::from(*text).checked().ok(),
                    Value::Other(_) => None,
                };
                match (name, span) {
                    ("cleanPeriod", Some(span)) => {
                        options.clean_period = span;
                        continue;
                    }
                    ("cleanPeriod", None) => ("cleanPeriod", ACCEPTS),
                    (_, None) => ("keyOlderThan", ACCEPTS),
                    _ => {
                        options.key_older_than = span;
                        continue;
                    }
                }
            }
        };
        return Err(Error::option(option, &value.shown(), accepts));
    }
    Ok(options)
}

/// Takes the part of a text that comes before the next end.
fn part<'a>(written: &mut &'a str, end: u8) -> Option<&'a str> {
    let at = written.bytes().position(|byte| byte == end)?;
    let part = written.get(..at)?;
    *written = written.get(at + 1..)?;
    Some(part)
}

/// Takes a name and a value. The first letter of a value says what it is.
fn field<'a>(written: &mut &'a str) -> Option<(&'a str, Value<&'a str>)> {
    let (name, value) = (part(written, END)?, part(written, END)?);
    let (kind, rest) = (value.as_bytes().first(), value.get(1..).unwrap_or_default());
    let value = match (kind, from_digits(rest)) {
        (Some(b'n'), Some(number)) => Value::Whole(number),
        (Some(b't'), _) => Value::Text(rest),
        _ => Value::Other(rest),
    };
    Some((name, value))
}

/// What states are made by: for each policy its name, its algorithm and its scale, in turn.
pub(super) fn origins_to(policies: &Policies) -> String {
    let mut written = String::new();
    for (name, policy) in policies.names().zip(policies.iter()) {
        push(&mut written, &[name, BETWEEN, policy.algorithm(), BETWEEN, &digits(policy.scale()), BETWEEN]);
    }
    written
}

/// Names, each with its end.
pub(super) fn joined(names: &[String]) -> String {
    let mut written = String::new();
    for name in names {
        push(&mut written, &[name, BETWEEN]);
    }
    written
}

/// Whole numbers from any numbers at all.
pub(super) fn whole_from(numbers: &[f64]) -> Result<Vec<i64>, Error> {
    let mut list = Vec::with_capacity(numbers.len());
    for &number in numbers {
        let whole = number as i64;
        if whole as f64 != number || whole.unsigned_abs() > MAX {
            return Err(Error::state("it holds something that is no whole number"));
        }
        list.push(whole);
    }
    Ok(list)
}

/// States from how they lie one after the other: for each, how many numbers there are, then they.
pub(super) fn states_from(mut flat: &[i64]) -> Result<Vec<&[i64]>, Error> {
    let mut states = Vec::new();
    while let Some((&len, rest)) = flat.split_first() {
        let state;
        (state, flat) = rest.split_at_checked(len as usize).ok_or_else(|| Error::state("it is cut short"))?;
        states.push(state);
    }
    Ok(states)
}

/// What states were made by, from a text: name, algorithm and scale in turn.
pub(super) fn made_by_from(mut written: &str) -> Vec<MadeBy<&str>> {
    let mut made_by = Vec::new();
    while let (Some(name), Some(algorithm), Some(scale)) =
        (part(&mut written, END), part(&mut written, END), part(&mut written, END))
    {
        // A scale that is none is out of range, and is told as such where it matters.
        let scale = from_digits(scale).unwrap_or(0);
        made_by.push(MadeBy { name, algorithm, scale });
    }
    made_by
}
