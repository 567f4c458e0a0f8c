//! The fields of an item, which depend on its operation.

use std::fmt::Display;
use std::mem;

use serde::Deserialize;
use tollgate::cloudflare::wire::{self, Amount, Amounts, KEY, OBJECT, Question};
use tollgate::operations::{ArgumentKind, ArgumentSchema, Gives, Named, On, OperationSchema};
use tollgate::{Error, Exception, Expected, HitId, Policies, Value};

use super::{Item, ItemKey};
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
    /// The amounts by their fields.
    amounts: Vec<(&'static str, Amounts)>,
    ttl: Option<Value>,
    /// The fields that are true.
    flags: Vec<&'static str>,
    of: Option<String>,
    /// For `except`: the exception, or null.
    exception: Option<Tree>,
    /// For `except`: its end, or how long it lasts. For `ban`: how long it lasts.
    until: Option<u64>,
    length: Option<Value>,
}

impl Fields {
    /// Reads the fields of an operation. The reader collects their errors.
    pub(super) fn read(reader: &mut Reader<'_>, schema: &OperationSchema) -> Self {
        let mut fields = Self::default();
        if schema.on == On::Key {
            fields.read_key(reader);
        }
        for argument in schema.takes {
            fields.read_argument(reader, argument);
        }
        if matches!(schema.policies, Named::One | Named::Ban) {
            fields.of = reader.read("of", "the name of one of the policies", non_empty_text);
        }
        fields
    }

    fn read_argument(&mut self, reader: &mut Reader<'_>, &ArgumentSchema { field, kind, .. }: &ArgumentSchema) {
        match kind {
            ArgumentKind::Costs | ArgumentKind::Used => self.read_amounts(reader, field, kind),
            ArgumentKind::Change => {
                let cost = reader.amount(field, Expected::SignedInteger, signed_integer);
                self.add_amount(field, cost);
            }
            ArgumentKind::Amount => {
                let amount = reader.amount(field, AMOUNT, signless_integer);
                self.add_amount(field, amount);
            }
            ArgumentKind::Count => {
                let count = required(reader, field, AMOUNT, signless_integer);
                self.add_amount(field, count);
            }
            ArgumentKind::Length => {
                let length = required(reader, field, Expected::Duration, |tree| wire::ban(&value(tree)?).ok());
                self.length = length.map(|length| Value::Number(length as f64));
            }
            ArgumentKind::ExceptionLength => self.length = reader.take(field).as_ref().and_then(value),
            ArgumentKind::Ttl | ArgumentKind::LeaseTtl => self.ttl = reader.take(field).as_ref().and_then(value),
            ArgumentKind::Exception => self.exception = reader.take_or_null(field),
            ArgumentKind::Time => self.until = reader.read(field, "milliseconds since the epoch", integer),
            ArgumentKind::Flag => self.flags.extend(reader.boolean(field).filter(|is_set| *is_set).map(|_| field)),
            ArgumentKind::Reservation => self.id = Some(required_id(reader)),
            ArgumentKind::Lease => self.id = reader.read(field, Expected::Reservation, non_empty_text),
            ArgumentKind::Hit => {
                let accepts = "the id of a hit, as hit returned it";
                self.hit = required(reader, field, accepts, |tree| non_empty_text(tree)?.parse().ok());
            }
        }
        if kind == ArgumentKind::ExceptionLength {
            self.check_exception(reader);
        }
    }

    fn add_amount(&mut self, field: &'static str, amount: Option<i64>) {
        self.amounts.extend(amount.map(|amount| (field, Amounts::All(Amount(amount as f64)))));
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

    /// Checks that there is an exception, which null lifts, and one end.
    fn check_exception(&self, reader: &mut Reader<'_>) {
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
    fn read_amounts(&mut self, reader: &mut Reader<'_>, field: &'static str, kind: ArgumentKind) {
        let path = reader.path_of(field);
        let accepts = format!("{AMOUNT}, or one for each policy by its name");
        match reader.take_amount(field, &accepts) {
            None => {}
            Some(Tree::Table(by_policy)) if kind == ArgumentKind::Used || !by_policy.is_empty() => {
                let mut amounts = Vec::new();
                for (name, tree) in by_policy {
                    match integer(&tree) {
                        Some(amount) => amounts.push((name, Amount(amount as f64))),
                        None => reader.errors.push(invalid(format!("{path}.{name}"), &tree, AMOUNT)),
                    }
                }
                self.amounts.push((field, Amounts::ByPolicy(amounts)));
            }
            Some(found) => match signless_integer(&found) {
                Some(amount) => self.add_amount(field, Some(amount)),
                None => reader.reject(field, &found, accepts),
            },
        }
    }

    /// Returns the first amount that the operation takes; 1 for a cost that is left out or by policy, and 0 for others.
    fn amount(&self, schema: &OperationSchema) -> i64 {
        let Some(first) = schema.takes.iter().find(|argument| is_amount(argument.kind)) else { return 0 };
        let length = || self.length.as_ref().and_then(Value::as_duration).map(|length| length as i64);
        let default = i64::from(matches!(first.kind, ArgumentKind::Costs | ArgumentKind::Change));
        match self.amounts.iter().find(|(field, _)| *field == first.field) {
            Some((_, Amounts::All(amount))) => amount.0 as i64,
            _ if first.kind == ArgumentKind::Length => length().unwrap_or(default),
            _ => default,
        }
    }

    /// Returns the item of these fields, under the policies with these names.
    pub(super) fn into_item(
        mut self,
        config: &Config,
        schema: &OperationSchema,
        names: &[String],
    ) -> Result<Item, RequestError> {
        let given = match self.parts.take() {
            Some(parts) => ItemKey::Rule(parts.object(config, names)),
            None => ItemKey::Own(mem::take(&mut self.key)),
        };
        let key = match &self.id {
            Some(id) if schema.on == On::Key => lease_key(id, given)?,
            Some(id) => ItemKey::of_reservation(id)?.0,
            None => given,
        };
        let item = Item::new(config, schema, names, &key, self.amount(schema), self.of.clone())?;
        for (field, amounts) in &self.amounts {
            let Amounts::ByPolicy(list) = amounts else { continue };
            if let Some((name, _)) = list.iter().find(|(name, _)| item.policies.names().all(|known| known != name)) {
                return Err(RequestError::unknown_policy(field, Some(name), &listed(item.policies.names())));
            }
        }
        self.check_ttl(schema)?;
        let is_by_policy = self.amounts.iter().any(|(_, amounts)| matches!(amounts, Amounts::ByPolicy(_)));
        if schema.plain && !is_by_policy && self.flags.is_empty() {
            return Ok(item);
        }
        let question = self.into_question(config, schema, &item.policies, key)?;
        Ok(Item { question: Some(question), ..item })
    }

    /// Checks the `ttl`, and replaces it by milliseconds.
    fn check_ttl(&mut self, schema: &OperationSchema) -> Result<(), Error> {
        let Some(argument) = schema.takes.iter().find(|argument| argument.field == "ttl") else { return Ok(()) };
        let given = match self.ttl.take() {
            None if argument.required => Value::Null,
            None => return Ok(()),
            Some(ttl) => ttl,
        };
        let ttl = if argument.kind == ArgumentKind::Ttl { wire::ttl(&given)? } else { wire::lease_ttl(&given)? };
        self.ttl = Some(Value::Number(ttl as f64));
        Ok(())
    }

    /// Returns the question in JSON.
    fn into_question(
        mut self,
        config: &Config,
        schema: &OperationSchema,
        policies: &Policies,
        key: ItemKey,
    ) -> Result<String, RequestError> {
        let length = self.length.as_ref().map(wire::exception_length).transpose()?;
        let exception = self.exception.take().map(read_exception).transpose()?.flatten();
        let exception = exception.as_ref().map(wire::raw_exception).transpose()?;
        let policies = wire::json_of(policies)?;
        let key = match key {
            ItemKey::Own(key) => format!("{KEY}{key}"),
            ItemKey::Rule(object) => format!("{OBJECT}{object}"),
        };
        let amounts = |field| self.amounts.iter().find(|(own, _)| *own == field).map(|(_, own)| own.clone());
        let question = Question {
            cost: amounts("cost"),
            used: amounts("used"),
            size: amounts("size").and_then(|size| size.all()),
            credit: config.credit && schema.gives == Gives::Lease,
            ttl: self.ttl,
            id: self.hit.map(|hit| hit.to_string()).or(self.id).map(Into::into),
            key: Some(key.into()),
            undoable: self.flags.contains(&"undoable"),
            reservations: self.flags.contains(&"reservations"),
            exception: exception.as_deref(),
            until: self.until.map(|until| Amount(until as f64)),
            length: length.map(|length| Value::Number(length as f64)),
            ..Question::new(schema.name, &policies)
        };
        Ok(question.to_json())
    }
}

/// Returns whether an argument is an amount.
fn is_amount(kind: ArgumentKind) -> bool {
    use ArgumentKind::{Amount, Change, Costs, Count, Length, Used};
    matches!(kind, Amount | Change | Costs | Count | Length | Used)
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

fn signless_integer(tree: &Tree) -> Option<i64> {
    integer(tree).map(|amount| amount as i64)
}

/// Returns a value of a policy; `None` for a list or a table.
fn value(tree: &Tree) -> Option<Value> {
    Value::deserialize(tree.clone()).ok()
}

/// Takes a required field through `read`, which returns `None` for an invalid value.
fn required<T>(
    reader: &mut Reader<'_>,
    field: &'static str,
    accepts: impl Display,
    read: impl Fn(&Tree) -> Option<T>,
) -> Option<T> {
    let found = reader.take(field).unwrap_or(Tree::Null);
    let value = read(&found);
    if value.is_none() {
        reader.reject(field, &found, accepts);
    }
    value
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
