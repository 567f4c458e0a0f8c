//! An exception as an operator gives it: other numbers for a key by policy and field, or a decision without numbers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::schema::{
    ALLOW, AMOUNTS, DENY, EXCEPTED_AFTER, EXCEPTED_FACTOR, EXCEPTED_LENGTH, EXCEPTED_LIMIT, EXCEPTED_MOST,
    EXCEPTION_FIELDS, MAX_BAN_COUNT, MAX_EXCEPTION,
};
use super::{Value, duration::Span};
use crate::error::wording;
use crate::number::MAX;
use crate::{Error, Expected, Found};

/// A number for each field of an exception; 0 for one that it does not have.
pub(crate) type Numbers = [u64; EXCEPTION_FIELDS.len()];

/// Other numbers for one key, or a decision for it, until a time.
///
/// A field stands before that of the call, and that before the limiter's own; one that the policy's algorithm lacks is
/// ignored.
///
/// ```
/// use tollgate::{Exception, Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let clock = ManualClock::new(0);
/// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(100, "1m")?.named("api")?, &clock)?;
/// limiter.except_for("customer:42", &Exception::new().with("api", "limit", 1_000_u64)?, "1w")?;
/// assert_eq!(limiter.hit("customer:42", 1)?.limit, 1_000);
///
/// limiter.except_for("office", &Exception::allow(), "1d")?;
/// assert!(limiter.hit("office", 5_000)?.allowed);
///
/// limiter.except_for("token:7", &Exception::deny(), "1d")?;
/// assert!(!limiter.hit("token:7", 1)?.allowed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// The numbers by the name of the policy. The decision, and numbers without a name, are under an empty name.
    parts: Vec<(String, Numbers)>,
}

impl Exception {
    /// Returns an exception without numbers, to which [`Exception::with`] adds some.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an exception that allows everything. Nothing is charged or counted, and it comes before bans.
    ///
    /// ```
    /// assert!(tollgate::Exception::allow().is_allow());
    /// ```
    pub fn allow() -> Self {
        Self::decision(ALLOW)
    }

    /// Returns an exception that denies everything.
    ///
    /// ```
    /// assert!(tollgate::Exception::deny().is_deny());
    /// ```
    pub fn deny() -> Self {
        Self::decision(DENY)
    }

    fn decision(field: usize) -> Self {
        let mut fields = [0; EXCEPTION_FIELDS.len()];
        fields[field] = 1;
        Self { parts: [(String::new(), fields)].into() }
    }

    pub(crate) fn of_parts(parts: Vec<(String, Numbers)>) -> Self {
        Self { parts }
    }

    /// Returns the exception with a number for a policy: its `limit`, `capacity`, `refillRate` or `leakRate`, or the `after`,
    /// `for`, `factor` or `most` of a ban. The policy of a limiter that has only one may be `""`.
    ///
    /// ```
    /// use tollgate::Exception;
    ///
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let exception = Exception::new().with("login", "after", 20_u64)?.with("login", "for", "1m")?;
    /// assert_eq!(exception.numbers().collect::<Vec<_>>(), [("login", "after", 20), ("login", "for", 60_000)]);
    /// assert!(Exception::new().with("login", "scale", "1m").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If no algorithm has the field, the value is out of its range, or the field is given twice.
    pub fn with(mut self, policy: &str, field: &str, value: impl Into<Value>) -> Result<Self, Error> {
        self.push(policy, field, &value.into())?;
        Ok(self)
    }

    /// Adds a field for a policy, for readers of JSON and the like: also `allow` and `deny`, under the policy `""`. A value of
    /// [`Value::Null`] is ignored.
    ///
    /// # Errors
    ///
    /// As for [`Exception::with`].
    pub fn push(&mut self, policy: &str, field: &str, value: &Value) -> Result<(), Error> {
        let position = EXCEPTION_FIELDS.iter().position(|known| *known == camel_case(field));
        let position = position.filter(|&position| position >= EXCEPTED_LIMIT || policy.is_empty());
        let Some(position) = position else {
            let known = EXCEPTION_FIELDS[EXCEPTED_LIMIT..].to_vec();
            return Err(Error::UnknownField { field: field.into(), algorithm: wording::EXCEPTION, known });
        };
        if *value == Value::Null {
            return Ok(());
        }
        let wrong = |found, expected| {
            let dot = if policy.is_empty() { "" } else { "." };
            let option = alloc::format!("{policy}{dot}{}", EXCEPTION_FIELDS[position]).into();
            Error::InvalidOption { option, found, expected }
        };
        let number = number(position, value).map_err(|expected| wrong(value.found(), expected))?;
        let part = match self.parts.iter().position(|(name, _)| name == policy) {
            Some(part) => part,
            None => {
                self.parts.push((policy.into(), [0; EXCEPTION_FIELDS.len()]));
                self.parts.len() - 1
            }
        };
        if let Some((_, fields)) = self.parts.get_mut(part) {
            if fields[position] > 0 {
                return Err(wrong(Found::Described(wording::SECOND_VALUE), Expected::Once));
            }
            fields[position] = number;
        }
        Ok(())
    }

    /// Returns whether everything is allowed.
    pub fn is_allow(&self) -> bool {
        self.has(ALLOW)
    }

    /// Returns whether everything is denied.
    pub fn is_deny(&self) -> bool {
        self.has(DENY)
    }

    fn has(&self, field: usize) -> bool {
        self.parts.iter().any(|(_, fields)| fields[field] > 0)
    }

    /// Returns whether it is a decision, without numbers.
    pub(crate) fn is_decision(&self) -> bool {
        self.is_allow() || self.is_deny()
    }

    /// Returns the numbers: policy, field and number of each. Durations are in milliseconds.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.fields()
            .filter(|(_, field, _)| *field >= EXCEPTED_LIMIT)
            .map(|(policy, field, number)| (policy, EXCEPTION_FIELDS[field], number))
    }

    /// Returns policy, position of the field, and number of each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        self.parts.iter().flat_map(|(policy, fields)| {
            let given = fields.iter().enumerate().filter(|(_, number)| **number > 0);
            given.map(|(field, number)| (&policy[..], field, *number))
        })
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, &Numbers)> {
        self.parts.iter().map(|(policy, fields)| (&policy[..], fields))
    }

    /// Checks that it has numbers, or else one decision.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |found| {
            let expected = Expected::Described(wording::EXCEPTION_FORMS);
            Err(Error::InvalidOption { option: "exception".into(), found: Found::Described(found), expected })
        };
        match (self.fields().count(), self.is_decision()) {
            (0, _) => wrong(wording::EMPTY_OBJECT),
            (1, _) | (_, false) => Ok(()),
            (_, true) => wrong(wording::DECISION_AND_MORE),
        }
    }
}

/// Returns the name of a field in the spelling of the schema.
fn camel_case(field: &str) -> &str {
    match field {
        "refill_rate" => "refillRate",
        "leak_rate" => "leakRate",
        _ => field,
    }
}

/// Returns the number of a field's value, or what the field accepts.
fn number(field: usize, value: &Value) -> Result<u64, Expected> {
    match field {
        ALLOW | DENY => if *value == Value::Bool(true) { Some(1) } else { None }.ok_or(Expected::Described("true")),
        EXCEPTED_LENGTH | EXCEPTED_MOST => value.as_duration().ok_or(Expected::Duration),
        _ => {
            let (min, max) = match field {
                EXCEPTED_AFTER | EXCEPTED_FACTOR => (1, MAX_BAN_COUNT),
                _ => AMOUNTS,
            };
            let number = value.as_integer().filter(|number| (min..=max).contains(number));
            number.ok_or(Expected::Integer { min, max })
        }
    }
}

/// Checks the end of an exception, in milliseconds since the epoch.
pub(crate) fn check_until(until: u64, now: u64) -> Result<u64, Error> {
    if until > now && until <= MAX && until - now <= MAX_EXCEPTION {
        return Ok(until);
    }
    let expected = Expected::Described(wording::EXCEPTION_END);
    Err(Error::InvalidOption { option: "until".into(), found: until.into(), expected })
}

/// Returns the end of an exception that lasts for `length` from now.
pub(crate) fn end_after(length: Span, now: u64) -> Result<u64, Error> {
    let expected = || Expected::Described(wording::EXCEPTION_LENGTH);
    let wrong = |found| Error::InvalidOption { option: "for".into(), found, expected: expected() };
    match length.checked().map_err(wrong)? {
        length if length > MAX_EXCEPTION => Err(wrong(length.into())),
        length => Ok(now.saturating_add(length).min(MAX)),
    }
}

impl Serialize for Exception {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (policy, fields) in &self.parts {
            match &policy[..] {
                "" => {
                    for (field, number) in fields.iter().enumerate().filter(|(_, number)| **number > 0) {
                        match field {
                            ALLOW | DENY => map.serialize_entry(EXCEPTION_FIELDS[field], &true)?,
                            field => map.serialize_entry(EXCEPTION_FIELDS[field], number)?,
                        }
                    }
                }
                policy => map.serialize_entry(policy, &Fields(fields))?,
            }
        }
        map.end()
    }
}

/// The numbers for one policy.
struct Fields<'a>(&'a Numbers);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let given = self.0.iter().enumerate().filter(|(_, number)| **number > 0);
        serializer.collect_map(given.map(|(field, number)| (EXCEPTION_FIELDS[field], number)))
    }
}

impl<'de> Deserialize<'de> for Exception {
    /// Reads `{"allow":true}`, `{"deny":true}` or numbers by policy; those of the only policy may be without its name.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ExceptionVisitor)
    }
}

struct ExceptionVisitor;

impl<'de> Visitor<'de> for ExceptionVisitor {
    type Value = Exception;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(wording::EXCEPTION_FORMS)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Exception, A::Error> {
        let mut exception = Exception::new();
        while let Some((name, given)) = map.next_entry::<String, Given>()? {
            let added = match given {
                Given::Value(value) => exception.push("", &name, &value),
                Given::Fields(fields) => {
                    fields.iter().try_for_each(|(field, value)| exception.push(&name, field, value))
                }
            };
            added.map_err(de::Error::custom)?;
        }
        Ok(exception)
    }
}

/// A value of a field, or the fields of a policy.
enum Given {
    Value(Value),
    Fields(Vec<(String, Value)>),
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(wording::EXCEPTION_FORMS)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Given, E> {
        Ok(Given::Value(Value::Bool(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Given, E> {
        Ok(Given::Value(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Given, E> {
        Ok(Given::Value(Value::Number(value as f64)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Given, E> {
        Ok(Given::Value(Value::Number(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Given, E> {
        Ok(Given::Value(value.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Given, E> {
        Ok(Given::Value(Value::Null))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Given, A::Error> {
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(Given::Value(Value::ARRAY))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Given::Fields(fields))
    }
}
