//! A policy as it is written down, before it is known to be right: every mistake gets its own name.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{ALGORITHMS, Denied, Fields, PRINTABLE, Policy, WHOLE};
use crate::algorithm::bucket::Kind;
use crate::algorithm::rule::Rule;
use crate::duration::{self, Span};
use crate::number::{in_words, whole};
use crate::text::{LEFT_OUT, digits, listed, shown, text};
use crate::{Error, ErrorKind};

/// What a policy is written with: any map of names to plain values. [`PolicyDraft::build`] checks it.
///
/// Reading a [`Policy`] through serde gives the same message, but as the format's own error; reading
/// a draft first keeps the typed one.
///
/// ```
/// use tollgate::PolicyDraft;
///
/// let draft: PolicyDraft = serde_json::from_str(r#"{ "algorithm": "fix_window", "limit": 1.5, "scale": "1m" }"#).unwrap();
/// let error = draft.build().unwrap_err();
/// assert_eq!(error.code(), "invalid_policy");
/// assert_eq!(error.to_string(), "limit: a fraction is not accepted; give a whole number from 1 to 9007199254740991");
/// ```
#[derive(Clone, Debug, Default)]
pub struct PolicyDraft {
    fields: Vec<(String, Value)>,
}

/// A plain value, as much of it as an error message needs.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Text(String),
    /// Anything else, in words.
    Other(String),
}

impl PolicyDraft {
    /// Adds a field.
    pub(crate) fn push(&mut self, name: String, value: Value) {
        self.fields.push((name, value));
    }

    /// The policy, or what is wrong with it.
    pub fn build(&self) -> Result<Policy, Error> {
        let written = self.get("algorithm")?;
        let algorithm = match written {
            Some(Value::Text(name)) => ALGORITHMS.iter().position(|known| *known == name),
            _ => None,
        };
        let Some(algorithm) = algorithm else { return Err(unknown(&found(written))) };
        let fields = Fields::of(algorithm);
        self.refuse_unknown(fields.known)?;
        let amount = self.whole(fields.amount)?;
        let rate = if fields.rate.is_empty() { 1 } else { self.whole(fields.rate)? };
        self.finish(fields.policy(algorithm, amount, rate, self.span(fields.span)?)?)
    }

    fn finish(&self, mut policy: Policy) -> Result<Policy, Error> {
        match self.get("name")? {
            None => {}
            Some(Value::Text(name)) => policy = policy.named(name)?,
            value => return Err(Error::policy("name", &found(value), PRINTABLE)),
        }
        match self.get("denied")? {
            None => Ok(policy),
            Some(Value::Text(text)) if text == "count" => policy.denied(Denied::Count),
            Some(Value::Text(text)) if text == "free" => policy.denied(Denied::Free),
            value => Err(Error::policy("denied", &found(value), "\"count\" or \"free\"")),
        }
    }

    /// The value of a field, under its camelCase or its snake_case name, but not under both.
    fn get(&self, field: &'static str) -> Result<Option<&Value>, Error> {
        let mut value = None;
        for (name, given) in &self.fields {
            if !is(name, field) {
                continue;
            }
            if value.is_some() {
                return Err(Error::policy(field, "a second value", "the field once"));
            }
            value = Some(given);
        }
        Ok(value)
    }

    fn refuse_unknown(&self, known: &'static [&'static str]) -> Result<(), Error> {
        match self.fields.iter().find(|(name, _)| !known.iter().any(|field| is(name, field))) {
            Some((name, _)) => {
                let pieces = [name, ": no such field; known here are ", &listed(known)];
                Err(Error::new(ErrorKind::UnknownField, &pieces))
            }
            None => Ok(()),
        }
    }

    fn whole(&self, field: &'static str) -> Result<u64, Error> {
        match self.get(field)? {
            Some(&Value::Whole(number)) => Ok(number),
            value => Err(Error::policy(field, &found(value), WHOLE)),
        }
    }

    /// A length of time. A bucket's `per` is one second unless it says otherwise.
    fn span(&self, field: &'static str) -> Result<Span, Error> {
        match self.get(field)? {
            Some(&Value::Whole(milliseconds)) => Ok(milliseconds.into()),
            Some(Value::Text(text)) => Ok(text.as_str().into()),
            None if field == "per" => Ok(1_000.into()),
            value => Err(Error::policy(field, &found(value), duration::ACCEPTS)),
        }
    }
}

fn unknown(algorithm: &str) -> Error {
    Error::refused(ErrorKind::UnknownAlgorithm, "algorithm", algorithm, &text(&["one of ", &listed(ALGORITHMS)]))
}

/// What was there, as an error repeats it.
fn found(value: Option<&Value>) -> String {
    value.map_or_else(|| LEFT_OUT.into(), Value::shown)
}

/// Whether a field was written under this name, or under the same in snake_case.
fn is(written: &str, field: &str) -> bool {
    written == field || matches!((written, field), ("refill_rate", "refillRate") | ("leak_rate", "leakRate"))
}

impl Value {
    /// The value as an error shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Whole(number) => digits(*number),
            Self::Text(text) => shown(text),
            Self::Other(words) => words.clone(),
        }
    }

    pub(crate) fn from_number(number: f64) -> Self {
        whole(number).map_or_else(|| Self::Other(in_words(number).into()), Self::Whole)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PolicyDraft::deserialize(deserializer)?.build().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PolicyDraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DraftVisitor)
    }
}

struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = PolicyDraft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy, such as { \"algorithm\": \"fix_window\", \"limit\": 100, \"scale\": \"1m\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyDraft, A::Error> {
        let mut draft = PolicyDraft::default();
        while let Some((name, value)) = map.next_entry::<String, Option<Value>>()? {
            // A field that is there but undefined or null was left out.
            if let Some(value) = value {
                draft.push(name, value);
            }
        }
        Ok(draft)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(u64::try_from(number).map_or_else(|_| Value::Other("a negative number".into()), Value::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from_number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Other(if truth { "true" } else { "false" }.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other(LEFT_OUT.into()))
    }

    fn visit_bytes<E>(self, _bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Other("bytes".into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a list".into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object".into()))
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("algorithm", self.algorithm())?;
        match &self.rule {
            Rule::Bucket(bucket) => {
                let rate = if bucket.kind == Kind::Token { "refillRate" } else { "leakRate" };
                map.serialize_entry("capacity", &bucket.capacity)?;
                map.serialize_entry(rate, &bucket.rate)?;
                map.serialize_entry("per", &bucket.per)?;
            }
            _ => {
                map.serialize_entry("limit", &self.limit())?;
                map.serialize_entry("scale", &self.scale())?;
            }
        }
        if let Some(name) = self.name() {
            map.serialize_entry("name", name)?;
        }
        if let Some(denied) = self.denied {
            map.serialize_entry("denied", if denied == Denied::Count { "count" } else { "free" })?;
        }
        map.end()
    }
}
