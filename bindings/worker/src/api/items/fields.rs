//! The fields of an item that depend on its operation.

use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate::cloudflare::wire::{self, Amount, KEY, OBJECT, Question};
use tollgate::{Error, Exception, Expected, HitId, Policies, Value};

use super::{Item, ItemKey, is_on_one_policy};
use crate::api::request_error::RequestError;
use crate::api::rule_key::RuleKey;
use crate::config::Config;
use crate::reader::{FieldError, Reader, integer, invalid, non_empty_text};
use crate::text::{AMOUNT, listed};
use crate::tree::Tree;

/// All fields of an item except its policies.
#[derive(Default)]
pub(super) struct Fields {
    key: String,
    /// The key of a rule, instead of `key`.
    parts: Option<RuleKey>,
    id: Option<String>,
    /// For `undo`: the id of the hit.
    hit: Option<HitId>,
    amount: Option<i64>,
    /// One amount for each policy, by name.
    amounts: Option<Vec<(String, f64)>>,
    ttl: Option<Value>,
    /// For `lease`: the spent amount.
    used: Option<u64>,
    /// For `lease`: the requested amount.
    size: Option<u64>,
    /// For `hit`: whether it can be undone.
    undoable: bool,
    reservations: bool,
    of: Option<String>,
    /// For `except`: the exception, or null.
    exception: Option<Tree>,
    /// For `except`: its end, or how long it lasts.
    until: Option<u64>,
    length: Option<Value>,
}

impl Fields {
    /// Reads the fields of an operation. The reader collects their errors.
    pub(super) fn read(reader: &mut Reader<'_>, operation: &str) -> Self {
        let mut fields = Self::default();
        match operation {
            "settle" | "cancel" | "extend" => fields.id = Some(required_id(reader)),
            _ => fields.read_key(reader),
        }
        match operation {
            "hit" => {
                fields.read_amounts(reader, "cost");
                fields.undoable = reader.boolean("undoable").unwrap_or_default();
            }
            "undo" => {
                fields.read_amounts(reader, "cost");
                fields.hit = required_hit(reader);
            }
            "peek" | "reserve" => fields.read_amounts(reader, "cost"),
            "lease" => {
                fields.id = reader.read("id", Expected::Reservation, non_empty_text);
                fields.amount = reader.amount("cost", AMOUNT, integer).map(|cost| cost as i64);
                fields.used = reader.amount("used", AMOUNT, integer);
                fields.size = reader.amount("size", AMOUNT, integer);
            }
            "settle" => fields.read_amounts(reader, "used"),
            "inc" => fields.amount = reader.amount("cost", Expected::SignedInteger, signed_integer),
            "set" => fields.amount = required_count(reader),
            "ban" => fields.amount = required_length(reader),
            "except" => fields.read_exception(reader),
            "reset" => fields.reservations = reader.boolean("reservations").unwrap_or_default(),
            _ => {}
        }
        if matches!(operation, "reserve" | "extend" | "lease") {
            fields.ttl = reader.take("ttl").and_then(|tree| Value::deserialize(tree).ok());
        }
        if is_on_one_policy(operation) {
            fields.of = reader.read("of", "the name of one of the policies", non_empty_text);
        }
        fields
    }

    /// Reads `key`, or `parts` instead.
    fn read_key(&mut self, reader: &mut Reader<'_>) {
        let key = reader.take("key");
        self.parts = RuleKey::read(reader, "parts");
        match key {
            None if self.parts.is_some() => {}
            Some(_) if self.parts.is_some() => {
                let problem = "there is a key too; use one of them".into();
                reader.errors.push(FieldError { path: reader.path_of("parts"), problem });
            }
            Some(Tree::Text(key)) => self.key = key,
            found => {
                let accepts = format!("{}, or parts with the key of a rule", Expected::Key);
                reader.reject("key", &found.unwrap_or(Tree::Null), accepts);
            }
        }
    }

    /// Reads an exception, which null lifts, and its end.
    fn read_exception(&mut self, reader: &mut Reader<'_>) {
        self.exception = reader.take_or_null("exception");
        self.until = reader.read("until", "milliseconds since the epoch", integer);
        self.length = reader.take("for").and_then(|tree| Value::deserialize(tree).ok());
        let mut reject = |field, problem: &str| {
            reader.errors.push(FieldError { path: reader.path_of(field), problem: problem.into() });
        };
        match self.exception {
            None => reject("exception", "is required (an exception, or null to lift the one that the key has)"),
            Some(Tree::Null) => {}
            Some(_) if self.until.is_some() && self.length.is_some() => {
                reject("for", "there is an end too; use one of them")
            }
            Some(_) if self.until.is_none() && self.length.is_none() => {
                reject("until", "is required (milliseconds since the epoch, or a duration as for)");
            }
            Some(_) => {}
        }
    }

    /// Reads one number, or one for each policy by its name. All policies may be left out only of what was used.
    fn read_amounts(&mut self, reader: &mut Reader<'_>, field: &'static str) {
        let path = reader.path_of(field);
        let accepts = format!("{AMOUNT}, or one for each policy by its name");
        match reader.take_amount(field, &accepts) {
            None => {}
            Some(Tree::Table(by_policy)) if field == "used" || !by_policy.is_empty() => {
                let mut amounts = Vec::new();
                for (name, tree) in by_policy {
                    match integer(&tree) {
                        Some(amount) => amounts.push((name, amount as f64)),
                        None => reader.errors.push(invalid(format!("{path}.{name}"), &tree, AMOUNT)),
                    }
                }
                self.amounts = Some(amounts);
            }
            Some(found) => match integer(&found) {
                Some(amount) => self.amount = Some(amount as i64),
                None => reader.reject(field, &found, accepts),
            },
        }
    }

    /// Returns the item of these fields, under the policies with these names.
    pub(super) fn into_item(
        mut self,
        config: &Config,
        operation: &str,
        names: &[String],
    ) -> Result<Item, RequestError> {
        let given = match self.parts.take() {
            Some(parts) => ItemKey::Rule(parts.object(config, names)),
            None => ItemKey::Own(mem::take(&mut self.key)),
        };
        let key = match &self.id {
            Some(id) if operation == "lease" => lease_key(id, given)?,
            Some(id) => ItemKey::of_reservation(id)?.0,
            None => given,
        };
        let default_amount = i64::from(matches!(operation, "hit" | "undo" | "peek" | "inc" | "reserve"));
        let amount = self.amount.unwrap_or(default_amount);
        let item = Item::new(config, operation, names, &key, amount, self.of.clone())?;
        for (name, _) in self.amounts.iter().flatten() {
            if !item.policies.names().any(|known| known == name) {
                let field = if operation == "settle" { "used" } else { "cost" };
                return Err(RequestError::unknown_policy(field, Some(name), &listed(item.policies.names())));
            }
        }
        let ttl = match (operation, &self.ttl) {
            ("lease", ttl) => ttl.as_ref().map(wire::lease_ttl),
            ("extend", None) => Some(wire::ttl(&Value::Null)),
            (_, ttl) => ttl.as_ref().map(wire::ttl),
        };
        let ttl = ttl.transpose()?;
        let needs_question = match operation {
            "hit" | "peek" => self.amounts.is_some() || self.undoable,
            "reset" => self.reservations,
            _ => matches!(
                operation,
                "undo" | "reserve" | "settle" | "cancel" | "extend" | "lease" | "except" | "exceptions"
            ),
        };
        if !needs_question {
            return Ok(item);
        }
        let credit = config.credit && operation == "lease";
        let length = self.length.as_ref().map(wire::exception_length).transpose()?;
        self.length = length.map(|length| Value::Number(length as f64));
        let exception = self.exception.take().map(read_exception).transpose()?.flatten();
        let exception = exception.as_ref().map(wire::raw_exception).transpose()?;
        let question = self.into_question(operation, &item.policies, key, ttl, (credit, exception.as_deref()))?;
        Ok(Item { question: Some(question), ..item })
    }

    /// Returns the question in JSON.
    fn into_question(
        self,
        operation: &str,
        policies: &Policies,
        key: ItemKey,
        ttl: Option<u64>,
        (credit, exception): (bool, Option<&RawValue>),
    ) -> Result<String, Error> {
        let policies = wire::json_of(policies)?;
        let by_policy =
            |list: Vec<(String, f64)>| list.into_iter().map(|(name, amount)| (name.into(), Amount(amount))).collect();
        let key = match key {
            ItemKey::Own(key) => format!("{KEY}{key}"),
            ItemKey::Rule(object) => format!("{OBJECT}{object}"),
        };
        let question = Question {
            amount: self.amount.map(|amount| Amount(amount as f64)),
            used: self.used.map(|used| Amount(used as f64)),
            size: self.size.map(|size| Amount(size as f64)),
            credit,
            amounts: self.amounts.map(by_policy),
            ttl: ttl.map(|ttl| Value::Number(ttl as f64)),
            id: self.hit.map(|hit| hit.to_string()).or(self.id).map(Into::into),
            key: Some(key.into()),
            undoable: self.undoable,
            reservations: self.reservations,
            exception,
            until: self.until.map(|until| Amount(until as f64)),
            length: self.length,
            ..Question::new(operation, &policies)
        };
        Ok(question.to_json())
    }
}

/// Returns the key of a lease. Checks that the lease is of `key` and has one amount for all policies.
fn lease_key(text: &str, key: ItemKey) -> Result<ItemKey, Error> {
    let (own, id) = ItemKey::of_reservation(text)?;
    if own == key && !id.is_by_policy() { Ok(key) } else { Err(Error::InvalidReservation { found: text.into() }) }
}

/// Returns an integer of either sign; `None` for anything else.
fn signed_integer(tree: &Tree) -> Option<i64> {
    match *tree {
        Tree::Number(number) if number < 0.0 => integer(&Tree::Number(-number)).map(|amount| -(amount as i64)),
        _ => integer(tree).map(|amount| amount as i64),
    }
}

fn required_count(reader: &mut Reader<'_>) -> Option<i64> {
    let found = reader.take("count").unwrap_or(Tree::Null);
    let count = integer(&found);
    if count.is_none() {
        reader.reject("count", &found, AMOUNT);
    }
    count.map(|count| count as i64)
}

/// Takes how long a ban is to last.
fn required_length(reader: &mut Reader<'_>) -> Option<i64> {
    let found = reader.take("for").unwrap_or(Tree::Null);
    let length = Value::deserialize(found.clone()).ok().and_then(|value| wire::ban(&value).ok());
    if length.is_none() {
        reader.reject("for", &found, Expected::Duration);
    }
    length.map(|length| length as i64)
}

/// Reads an exception; `None` if it is null.
fn read_exception(tree: Tree) -> Result<Option<Exception>, RequestError> {
    if matches!(tree, Tree::Null) {
        return Ok(None);
    }
    Exception::deserialize(tree)
        .map(Some)
        .map_err(|error| RequestError { code: "invalid_option", message: format!("exception: {error}") })
}

/// Takes the id of a reservation. Returns an empty text if it is not a text.
fn required_id(reader: &mut Reader<'_>) -> String {
    match reader.take("id").unwrap_or(Tree::Null) {
        Tree::Text(id) => id,
        other => {
            reader.reject("id", &other, Expected::Reservation);
            String::new()
        }
    }
}

/// Takes the id of a hit.
fn required_hit(reader: &mut Reader<'_>) -> Option<HitId> {
    let found = reader.take("id").unwrap_or(Tree::Null);
    let id = non_empty_text(&found).and_then(|id| id.parse().ok());
    if id.is_none() {
        reader.reject("id", &found, "the id of a hit, as hit returned it");
    }
    id
}
