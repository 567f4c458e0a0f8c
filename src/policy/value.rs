//! Values of any type, as a policy or an option may have.

use alloc::string::String;
use core::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::Found;
use crate::error::wording;
use crate::number;
use crate::policy::duration::Span;

/// A value of a field, with as much detail as validation and error messages need.
///
/// ```
/// use tollgate::{PolicyDraft, Value};
///
/// let mut draft = PolicyDraft::default();
/// draft.push("algorithm", Value::Text("fix_window".into()));
/// draft.push("limit", Value::Number(5.0));
/// draft.push("scale", Value::Text("1m".into()));
/// assert_eq!(draft.build().unwrap().limit(), 5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `undefined`, or a field that was left out.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any number.
    Number(f64),
    /// A string.
    Text(String),
    /// A description of anything else: `"an array"`.
    Other(&'static str),
}

impl Value {
    /// An array.
    pub const ARRAY: Self = Self::Other(wording::ARRAY);
    /// An object.
    pub const OBJECT: Self = Self::Other(wording::OBJECT);

    /// Returns the value for an error message.
    pub fn found(&self) -> Found {
        match self {
            Self::Null => Found::Missing,
            Self::Bool(true) => Found::Described("true"),
            Self::Bool(false) => Found::Described("false"),
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Other(description) => Found::Described(description),
        }
    }

    /// Returns the number; `None` if it is not an integer from 0 to [`MAX`](crate::MAX).
    pub fn as_integer(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number::integer(*number),
            _ => None,
        }
    }

    /// Returns the duration in milliseconds; `None` if it is not one from 1 to [`MAX`](crate::MAX).
    pub fn as_duration(&self) -> Option<u64> {
        match self {
            Self::Text(text) => Span::from(text.as_str()).milliseconds(),
            _ => Span::from(self.as_integer()?).milliseconds(),
        }
    }

    /// Returns the text; `None` if the value is not a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

pub(super) struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bytes<E>(self, _bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Other("bytes"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::ARRAY)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::OBJECT)
    }
}
