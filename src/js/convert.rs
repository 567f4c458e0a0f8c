//! Between what crosses the border, numbers and texts, and the core's own types.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::number::MAX;
use crate::policy::Value;
use crate::record::MadeBy;
use crate::text::{digits, push};
use crate::{Error, OnFull, Options, Policies, PolicyDraft, Span};

/// Stands between the fields of a text; JavaScript lets it into none of them.
pub(super) const BETWEEN: &str = "\u{1f}";
/// Stands between the policies of a text.
const BETWEEN_POLICIES: char = '\u{1e}';

/// A cost or count that JavaScript gave, if it is one.
#[inline]
pub(super) fn cost(cost: f64) -> Option<u64> {
    // A negative number, a fraction and not-a-number all come back as something else.
    let whole = cost as u64;
    (whole as f64 == cost && whole <= MAX).then_some(whole)
}

/// A time that JavaScript gave, if it is one. A fraction is floored.
#[inline]
pub(super) fn time(now: f64) -> Option<u64> {
    (now >= 0.0 && now <= MAX as f64).then_some(now as u64)
}

/// Policies from a text: names and values in turn. One policy alone is written without an end.
pub(super) fn policies_from(written: &str) -> Result<Policies, Error> {
    let mut policies = Vec::new();
    for policy in written.split_terminator(BETWEEN_POLICIES) {
        let mut draft = PolicyDraft::default();
        each_field(policy, |name, value| draft.push(name.into(), value));
        policies.push(draft.build()?);
    }
    Policies::new(policies)
}

/// Options from a text: names and values in turn.
pub(super) fn options_from(written: &str) -> Result<Options, Error> {
    let mut options = Ok(Options::new());
    each_field(written, |name, value| {
        if let Ok(so_far) = options.clone() {
            options = with_option(so_far, name, value);
        }
    });
    options
}

fn with_option(options: Options, name: &str, value: Value) -> Result<Options, Error> {
    let refused = |option, accepts| Err(Error::InvalidOption { option, found: value.shown(), accepts });
    let span = match &value {
        Value::Whole(milliseconds) => Some(Span::from(*milliseconds)),
        Value::Text(text) => Some(Span::from(text.as_str())),
        Value::Other(_) => None,
    };
    match (name, &value, span) {
        // A JavaScript Map holds no more.
        ("maxKeys", Value::Whole(keys @ 1..=16_000_000), _) => options.max_keys(*keys),
        ("maxKeys", ..) => refused("maxKeys", "a whole number from 1 to 16000000"),
        ("onFull", Value::Text(text), _) if text == "evict" => Ok(options.on_full(OnFull::Evict)),
        ("onFull", Value::Text(text), _) if text == "deny" => Ok(options.on_full(OnFull::Deny)),
        ("onFull", ..) => refused("onFull", "\"evict\" or \"deny\""),
        ("cleanPeriod", _, Some(span)) if span.is_valid() => options.clean_period(span),
        ("cleanPeriod", ..) => refused("cleanPeriod", crate::duration::ACCEPTS),
        ("keyOlderThan", _, Some(span)) if span.is_valid() => options.key_older_than(span),
        _ => refused("keyOlderThan", crate::duration::ACCEPTS),
    }
}

/// Reads names and values in turn. The first letter of a value says what it is.
fn each_field(written: &str, mut with: impl FnMut(&str, Value)) {
    let mut parts = written.split_terminator(BETWEEN);
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        let value = match (value.get(..1), value.get(1..)) {
            (Some("n"), Some(digits)) => digits.parse().map_or(Value::Text(digits.into()), Value::Whole),
            (Some("t"), Some(text)) => Value::Text(text.into()),
            (_, Some(words)) => Value::Other(words.to_owned().into()),
            _ => Value::Other("nothing".into()),
        };
        with(name, value);
    }
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

/// States as numbers: for each, how many there are, then they.
pub(super) fn states_to(states: &[Vec<i64>], flat: &mut Vec<f64>) {
    for state in states {
        flat.push(state.len() as f64);
        flat.extend(state.iter().map(|&number| number as f64));
    }
}

/// States from numbers, which may be anything at all.
pub(super) fn states_from(mut flat: &[f64]) -> Result<Vec<Vec<i64>>, Error> {
    let mut states = Vec::new();
    while let Some((&len, rest)) = flat.split_first() {
        let (numbers, rest) = rest.split_at_checked(len as usize).ok_or_else(|| Error::state("it is cut short"))?;
        let whole = |&number: &f64| {
            let whole = number as i64;
            (whole as f64 == number && whole.unsigned_abs() <= MAX).then_some(whole)
        };
        let numbers: Option<Vec<i64>> = numbers.iter().map(whole).collect();
        states.push(numbers.ok_or_else(|| Error::state("it holds something that is no whole number"))?);
        flat = rest;
    }
    Ok(states)
}

/// What states were made by, from a text: name, algorithm and scale in turn.
pub(super) fn made_by_from(written: &str) -> Vec<MadeBy> {
    let mut parts = written.split_terminator(BETWEEN);
    let mut made_by = Vec::new();
    while let (Some(name), Some(algorithm), Some(scale)) = (parts.next(), parts.next(), parts.next()) {
        // A scale that is none is out of range, and is told as such where it matters.
        let scale = scale.parse().unwrap_or(0);
        made_by.push(MadeBy { name: name.into(), algorithm: algorithm.into(), scale });
    }
    made_by
}
