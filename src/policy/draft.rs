//! A policy as it is written, before it is validated.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::schema::{
    ALGORITHM_SCHEMAS, AMOUNTS, AlgorithmSchema, BAN, DENIED_WORDS, Field, MAX_BAN_COUNT, MAX_TTL, Role,
};
use super::value::ValueVisitor;
use super::{Denied, Policy, Value, unchecked_algorithm};
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::Ban;
use crate::algorithm::calendar::{Calendar, CalendarScale, WrittenOffset};
use crate::error::wording;
use crate::number::MAX;
use crate::policy::scale::Scale;
use crate::{Error, Expected, Found};

/// The fields that a policy is written with. [`PolicyDraft::build`] validates them.
///
/// Reading a [`Policy`] through serde gives the same messages, but as the format's own error;
/// [`Policy::from_json`] and a draft keep the typed one.
///
/// ```
/// use tollgate::PolicyDraft;
///
/// let draft: PolicyDraft = serde_json::from_str(r#"{ "algorithm": "fix_window", "limit": 1.5, "scale": "1m" }"#).unwrap();
/// let error = draft.build().unwrap_err();
/// assert_eq!(error.code(), "invalid_policy");
/// assert_eq!(error.to_string(), "limit: 1.5 is not an integer from 1 to 9007199254740991");
/// ```
#[derive(Clone, Debug, Default)]
pub struct PolicyDraft {
    fields: Vec<(String, Value)>,
    /// Set if the draft is not an object.
    not_an_object: Option<Value>,
}

impl PolicyDraft {
    /// Returns the draft of a policy that is written as a single value, which [`PolicyDraft::build`] rejects.
    pub fn of_value(value: Value) -> Self {
        Self { fields: Vec::new(), not_an_object: Some(value) }
    }

    /// Adds a field. A field of [`Value::Null`] is ignored.
    pub fn push(&mut self, name: impl Into<String>, value: Value) {
        if value != Value::Null {
            self.fields.push((name.into(), value));
        }
    }

    /// Validates the fields and returns the policy.
    ///
    /// # Errors
    ///
    /// The first error in the order of the schema's fields; of several unknown fields the first by name. A bucket that
    /// takes too long to fill is the last error.
    pub fn build(&self) -> Result<Policy, Error> {
        if let Some(value) = &self.not_an_object {
            return Err(Error::policy("policy", value.found(), Expected::Policy));
        }
        let algorithm = self.get(&ALGORITHM_SCHEMAS[0].fields[0])?;
        let position = algorithm.as_text().and_then(AlgorithmSchema::position);
        let Some(position) = position else { return Err(Error::UnknownAlgorithm { found: algorithm.found() }) };
        let schema = &ALGORITHM_SCHEMAS[position];
        self.check_names(schema)?;
        if position == BAN {
            return self.ban(schema);
        }
        let limit = self.amount(schema, Role::Limit)?;
        let rate = self.amount(schema, Role::Rate)?;
        let scale = self.scale(schema)?;
        let policy = Policy {
            algorithm: unchecked_algorithm(position, limit, rate, scale),
            name: None,
            unit: None,
            denied: None,
        };
        let policy = match self.role(schema, Role::UtcOffset)? {
            Value::Null => policy,
            Value::Text(offset) => policy.utc_offset(offset)?,
            value => return Err(Error::policy("utcOffset", value.found(), policy.expected_offset())),
        };
        let policy = match self.role(schema, Role::Name)? {
            Value::Null => policy,
            Value::Text(name) => policy.named(name)?,
            value => return Err(Error::policy("name", value.found(), Expected::Name)),
        };
        let policy = match self.role(schema, Role::Unit)? {
            Value::Null => policy,
            Value::Text(unit) => policy.unit(unit)?,
            value => return Err(Error::policy("unit", value.found(), Expected::Unit)),
        };
        let policy = match self.role(schema, Role::Denied)? {
            Value::Null => policy,
            Value::Text(text) if text == DENIED_WORDS[0] => policy.denied(Denied::Count)?,
            Value::Text(text) if text == DENIED_WORDS[1] => policy.denied(Denied::Free)?,
            value => return Err(Error::policy("denied", value.found(), Expected::OneOf(DENIED_WORDS))),
        };
        policy.fillable()
    }

    /// Returns the policy of a ban.
    fn ban(&self, schema: &'static AlgorithmSchema) -> Result<Policy, Error> {
        let (after, scale) = (self.count(schema, Role::After)?, self.duration(schema, Role::Scale)?);
        let length = self.duration(schema, Role::Length)?;
        let factor = self.count(schema, Role::Factor)?;
        let most = self.role(schema, Role::Most)?;
        let most = match (factor, most) {
            (1, Value::Null) => length,
            (1, most) => return Err(Error::policy("most", most.found(), Expected::FactorForMost)),
            (_, most) => match most.as_duration() {
                Some(most) if most >= length => most,
                _ => return Err(Error::policy("most", most.found(), Expected::MostOfBan)),
            },
        };
        let policy = Policy::of_ban(after, factor, scale, length, most)?;
        match self.role(schema, Role::Name)? {
            Value::Null => Ok(policy),
            Value::Text(name) => policy.named(name),
            value => Err(Error::policy("name", value.found(), Expected::Name)),
        }
    }

    /// Returns the number of a field of a ban.
    fn count(&self, schema: &AlgorithmSchema, role: Role) -> Result<u64, Error> {
        let Some(field) = schema.field(role) else { return Ok(1) };
        let value = self.get(field)?;
        let count = if *value == Value::Null { field.default } else { value.as_integer() };
        let count = count.filter(|count| (1..=MAX_BAN_COUNT).contains(count));
        count.ok_or_else(|| Error::policy(field.name, value.found(), Expected::BAN_COUNT))
    }

    /// Returns the duration of a field of a ban.
    fn duration(&self, schema: &AlgorithmSchema, role: Role) -> Result<u64, Error> {
        let Some(field) = schema.field(role) else { return Ok(1) };
        let value = self.get(field)?;
        let is_calendar = value.as_text().and_then(Calendar::named).is_some();
        let expected = if is_calendar { Expected::NoCalendar } else { Expected::Duration };
        value.as_duration().ok_or_else(|| Error::policy(field.name, value.found(), expected))
    }

    /// Returns the value of a field; `Null` if there is none. A field in both of its spellings is an error.
    fn get(&self, field: &'static Field) -> Result<&Value, Error> {
        let mut written = self.fields.iter().filter(|(name, _)| field.is(name));
        match (written.next(), written.next()) {
            (None, _) => Ok(&Value::Null),
            (Some((_, value)), None) => Ok(value),
            _ => Err(Error::policy(field.name, Found::Described(wording::SECOND_VALUE), Expected::Once)),
        }
    }

    fn role(&self, schema: &AlgorithmSchema, role: Role) -> Result<&Value, Error> {
        schema.field(role).map_or(Ok(&Value::Null), |field| self.get(field))
    }

    fn check_names(&self, schema: &'static AlgorithmSchema) -> Result<(), Error> {
        let names = self.fields.iter().map(|(name, _)| name.as_str());
        let unknown = names.filter(|name| !schema.fields.iter().any(|field| field.is(name)));
        // In the order of strings in JavaScript, which compares UTF-16.
        let unknown = unknown.min_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        match unknown {
            None => Ok(()),
            Some(name) => Err(Error::UnknownField {
                field: name.into(),
                algorithm: schema.name,
                known: schema.fields.iter().map(|field| field.name).collect(),
            }),
        }
    }

    /// Returns the number of a field; 1 if the algorithm has no such field.
    fn amount(&self, schema: &AlgorithmSchema, role: Role) -> Result<u64, Error> {
        let Some(field) = schema.field(role) else { return Ok(1) };
        let value = self.get(field)?;
        let (min, max) = AMOUNTS;
        match value.as_integer() {
            Some(number) if number >= min => Ok(number),
            _ => Err(Error::policy(field.name, value.found(), Expected::Integer { min, max })),
        }
    }

    /// Returns the `scale` or `per`, or the `ttl` of a concurrency limit.
    fn scale(&self, schema: &AlgorithmSchema) -> Result<Scale, Error> {
        let (role, max, expected) = match (schema.field(Role::Ttl), schema.field(Role::UtcOffset)) {
            (Some(_), _) => (Role::Ttl, MAX_TTL, Expected::Ttl),
            (None, Some(_)) => (Role::Scale, MAX, Expected::Scale),
            (None, None) => (Role::Scale, MAX, Expected::Duration),
        };
        let Some(field) = schema.field(role) else { return Ok(Scale::of_time(1)) };
        let value = self.get(field)?;
        let expected = match (value.as_text().and_then(Calendar::named), expected) {
            (Some(unit), Expected::Scale) => return Ok(CalendarScale::new(unit, 0).into()),
            (Some(_), Expected::Duration) => Expected::NoCalendar,
            (_, expected) => expected,
        };
        let written = if *value == Value::Null { field.default } else { value.as_duration() };
        let written = written.filter(|&duration| duration <= max).map(Scale::of_time);
        written.ok_or_else(|| Error::policy(field.name, value.found(), expected))
    }
}

impl Policy {
    /// Reads a policy from JSON.
    ///
    /// ```
    /// use tollgate::Policy;
    ///
    /// let policy = Policy::from_json(r#"{ "algorithm": "token_bucket", "capacity": 10, "refillRate": 2 }"#).unwrap();
    /// assert_eq!(policy, Policy::token_bucket(10, 2, "1s").unwrap());
    /// let error = Policy::from_json(r#"{ "algorithm": "token_bucket", "capacity": 10 }"#).unwrap_err();
    /// assert_eq!(error.to_string(), "refillRate is required (an integer from 1 to 9007199254740991)");
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the first invalid field, or an error that the text is not JSON.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let draft: Result<PolicyDraft, _> = serde_json::from_str(json);
        let not_json = |_| Error::policy("policy", Found::Described("the text"), Expected::Described("JSON"));
        draft.map_err(not_json)?.build()
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PolicyDraft::deserialize(deserializer)?.build().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PolicyDraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DraftVisitor)
    }
}

/// Reads an object field by field. Any other value becomes a draft that is rejected when it is built.
struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = PolicyDraft;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyDraft, A::Error> {
        let mut draft = PolicyDraft::default();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            draft.push(name, value);
        }
        Ok(draft)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<PolicyDraft, A::Error> {
        ValueVisitor.visit_seq(list).map(PolicyDraft::of_value)
    }

    fn visit_u64<E>(self, number: u64) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Number(number as f64)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Number(number as f64)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Number(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Text(text.into())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Bool(value)))
    }

    fn visit_unit<E>(self) -> Result<PolicyDraft, E> {
        Ok(PolicyDraft::of_value(Value::Null))
    }
}

/// Writes a field that only a ban has. Without a factor, it has no `factor` and `most`.
fn serialize_ban<M: SerializeMap>(map: &mut M, ban: &Ban, field: &Field) -> Result<(), M::Error> {
    match field.role {
        Role::After => map.serialize_entry(field.name, &ban.after),
        Role::Length => map.serialize_entry(field.name, &ban.length),
        Role::Factor if ban.factor > 1 => map.serialize_entry(field.name, &ban.factor),
        Role::Most if ban.factor > 1 => map.serialize_entry(field.name, &ban.most),
        _ => Ok(()),
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let (schema, algorithm) = (self.schema(), &self.algorithm);
        let calendar = algorithm.stored_scale().calendar();
        for field in schema.fields {
            match field.role {
                Role::Algorithm => map.serialize_entry(field.name, schema.name)?,
                Role::Limit => map.serialize_entry(field.name, &algorithm.limit())?,
                Role::Rate => map.serialize_entry(field.name, &algorithm.rate())?,
                Role::Scale | Role::Ttl => match calendar {
                    Some(calendar) => map.serialize_entry(field.name, calendar.unit().name())?,
                    None => map.serialize_entry(field.name, &algorithm.scale())?,
                },
                Role::UtcOffset => match calendar {
                    Some(calendar) if calendar.offset() != 0 => {
                        map.serialize_entry(field.name, &WrittenOffset(calendar.offset()).to_string())?;
                    }
                    _ => {}
                },
                Role::After | Role::Length | Role::Factor | Role::Most => {
                    if let AnyAlgorithm::Ban(ban) = algorithm {
                        serialize_ban(&mut map, ban, field)?;
                    }
                }
                Role::Name | Role::Unit | Role::Denied => {}
            }
        }
        if let Some(name) = self.name() {
            map.serialize_entry("name", name)?;
        }
        if let Some(unit) = &self.unit {
            map.serialize_entry("unit", unit)?;
        }
        if let Some(denied) = self.denied {
            map.serialize_entry("denied", DENIED_WORDS[usize::from(denied == Denied::Free)])?;
        }
        map.end()
    }
}
