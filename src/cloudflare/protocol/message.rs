//! The messages between a client and an object over `fetch`: JSON in both directions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::cloudflare::object::account::{Account, Request};
use crate::cloudflare::object::random::random_bits;
use crate::cloudflare::protocol::wire::{self, Reply};
use crate::cloudflare::thrown::ThrownError;
use crate::key::reservation::STRING;
use crate::{
    Costs, DEFAULT_LEASE_TTL, Decision, Error, Exception, Lease, Operation, Policies, Reason, Renewal, Reservation,
    ReservationId, Settlement, Value,
};

/// An operation on the object's key. Its fields have the names of the HTTP API.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub struct Question<'a> {
    pub operation: &'a str,
    /// A policy, or a list of them.
    #[serde(borrow)]
    pub policies: &'a RawValue,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Amounts>,
    /// For `set`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Amount>,
    /// For `settle`: what was used. For `lease`: the spent amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Amounts>,
    /// For `lease`: the requested size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Amount>,
    /// The name of one of several policies.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub of: Option<Cow<'a, str>>,
    /// How long a reservation or a lease lasts.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub ttl: Option<Value>,
    /// A reservation.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The key after its kind, [`KEY`] or [`OBJECT`], to be written into the id of a reservation.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// Whether a hit can be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoable: bool,
    /// Whether `reset` drops reservations, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reservations: bool,
    /// Whether allowed hits may be kept in memory, covered by a credit in the row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub credit: bool,
    /// For `except`: the exception; none lifts the one that the key has.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub exception: Option<&'a RawValue>,
    /// For `except`: its end in milliseconds since the epoch, or how long it lasts from now. For `ban`: how long it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Amount>,
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub length: Option<Value>,
}

/// A cost or a count that is not checked yet. It is written as an integer: writing floats takes several kilobytes of code.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Amount(pub f64);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0 as i64)
    }
}

/// An amount for all policies, or one for each policy by its name.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are what they are called")]
pub enum Amounts {
    All(Amount),
    ByPolicy(Vec<(String, Amount)>),
}

impl Amounts {
    /// Returns the amount for all policies; `None` if there is one for each.
    pub fn all(&self) -> Option<Amount> {
        match self {
            Self::All(amount) => Some(*amount),
            Self::ByPolicy(_) => None,
        }
    }

    /// Returns the amount for all policies; NaN if there is one for each.
    fn number(&self) -> f64 {
        self.all().map_or(f64::NAN, |amount| amount.0)
    }
}

impl From<Costs<'_>> for Amounts {
    fn from(costs: Costs<'_>) -> Self {
        match costs {
            Costs::All(cost) => Self::All(Amount(cost as f64)),
            Costs::ByPolicy(list) => {
                Self::ByPolicy(list.iter().map(|&(name, cost)| (name.into(), Amount(cost as f64))).collect())
            }
        }
    }
}

impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All(amount) => amount.serialize(serializer),
            Self::ByPolicy(list) => serializer.collect_map(list.iter().map(|(name, amount)| (name, amount))),
        }
    }
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountsVisitor)
    }
}

struct AmountsVisitor;

impl<'de> Visitor<'de> for AmountsVisitor {
    type Value = Amounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount, or one for each policy by its name")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Amounts, E> {
        Ok(Amounts::All(Amount(number as f64)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Amounts, E> {
        Ok(Amounts::All(Amount(number as f64)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Amounts, E> {
        Ok(Amounts::All(Amount(number)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Amounts, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = map.next_entry()? {
            list.push(entry);
        }
        Ok(Amounts::ByPolicy(list))
    }
}

fn milliseconds<S: Serializer>(ttl: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    ttl.as_ref().and_then(Value::as_duration).serialize(serializer)
}

impl<'a> Question<'a> {
    /// Returns a question with an operation and policies only.
    pub fn new(operation: &'a str, policies: &'a RawValue) -> Self {
        Self {
            operation,
            policies,
            cost: None,
            count: None,
            used: None,
            size: None,
            of: None,
            ttl: None,
            id: None,
            key: None,
            undoable: false,
            reservations: false,
            credit: false,
            exception: None,
            until: None,
            length: None,
        }
    }

    /// Returns the question as JSON.
    pub fn to_json(&self) -> String {
        // All keys are strings and all numbers are finite, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Checks the amounts by policy; `None` if there are none.
    fn checked_amounts(&self) -> Result<Option<Vec<(&str, u64)>>, Error> {
        let Some(Amounts::ByPolicy(list)) = self.cost.as_ref().or(self.used.as_ref()) else { return Ok(None) };
        list.iter().map(|(name, amount)| Ok((&**name, wire::amount(amount.0)?))).collect::<Result<_, _>>().map(Some)
    }

    /// Parses the exception; `None` if there is none.
    fn read_exception(&self) -> Result<Option<Exception>, ThrownError> {
        let wrong = |error: serde_json::Error| {
            let message = format!("exception: {error}");
            ThrownError::Coded { code: "invalid_option", message }
        };
        self.exception.map(|written| serde_json::from_str(written.get()).map_err(wrong)).transpose()
    }

    /// Returns when an exception ends.
    fn end(&self, now: u64) -> Result<u64, Error> {
        match &self.length {
            Some(length) => wire::end_after(length, now),
            None => wire::end_at(self.until.map(|until| until.0)),
        }
    }

    /// Returns the operation. `amounts` are those by policy.
    fn to_operation<'b>(
        &'b self,
        amounts: Option<&'b [(&'b str, u64)]>,
        exception: Option<&'b Exception>,
        now: u64,
    ) -> Result<Operation<'b>, ThrownError> {
        let costs = || match amounts {
            Some(list) => Ok(Costs::ByPolicy(list)),
            None => wire::amount(self.cost.as_ref().map_or(1.0, Amounts::number)).map(Costs::All),
        };
        let id = || read_id(self.id.as_deref());
        Ok(match self.operation {
            "hit" if self.undoable => Operation::HitUndoable { costs: costs()?, random: random_bits()? as u64 },
            "undo" => Operation::Undo { id: self.id.as_deref().unwrap_or_default().parse()?, costs: costs()? },
            "hit" if amounts.is_some() => Operation::HitCosts { costs: costs()? },
            "peek" if amounts.is_some() => Operation::PeekCosts { costs: costs()? },
            "reset" if self.reservations => Operation::ResetAll,
            "except" => {
                let until = if exception.is_some() { self.end(now)? } else { 0 };
                Operation::Except { exception, until }
            }
            "reserve" => {
                let ttl = self.ttl.as_ref().map(wire::ttl).transpose()?;
                Operation::Reserve { costs: costs()?, ttl, random: random_bits()? }
            }
            "settle" => {
                let used = match (amounts, &self.used) {
                    (Some(list), _) => Some(Costs::ByPolicy(list)),
                    (None, Some(used)) => Some(Costs::All(wire::amount(used.number())?)),
                    (None, None) => None,
                };
                Operation::Settle { id: id()?, used }
            }
            "cancel" => Operation::Settle { id: id()?, used: Some(Costs::All(0)) },
            "extend" => Operation::Extend { id: id()?, ttl: wire::ttl(self.ttl.as_ref().unwrap_or(&Value::Null))? },
            "lease" => {
                let number = |amount: Option<&Amounts>| wire::amount(amount.map_or(0.0, Amounts::number));
                let renewal = Renewal {
                    id: self.id.as_ref().map(|_| id()).transpose()?,
                    used: number(self.used.as_ref())?,
                    size: wire::amount(self.size.map_or(0.0, |size| size.0))?,
                    ttl: self.ttl.as_ref().map_or(Ok(DEFAULT_LEASE_TTL), wire::lease_ttl)?,
                    random: random_bits()?,
                };
                Operation::Lease { cost: number(self.cost.as_ref())?, renewal }
            }
            "ban" => {
                let length = wire::ban(self.length.as_ref().unwrap_or(&Value::Null))?;
                Operation::Ban { policy: self.of.as_deref(), length }
            }
            "set" => wire::counted("set", self.count.map_or(f64::NAN, |count| count.0), self.of.as_deref())?,
            other => wire::counted(other, self.cost.as_ref().map_or(1.0, Amounts::number), self.of.as_deref())?,
        })
    }
}

/// Parses the id of a reservation, with its key, with the name of its object, or alone.
fn read_id(text: Option<&str>) -> Result<ReservationId, Error> {
    let text = text.unwrap_or_default();
    if let Some((id, _)) = id_and_object(text) {
        return Ok(id);
    }
    text.parse::<Reservation<String>>().map(|reservation| reservation.id).or_else(|_| text.parse())
}

/// The kind of a key that is a string.
pub const KEY: char = STRING;

/// The kind of a key that is the name of its object.
pub const OBJECT: char = 'o';

/// Parses the id of a reservation that has the name of its object instead of a key; `None` if invalid.
pub fn id_and_object(text: &str) -> Option<(ReservationId, &str)> {
    let (dot, _) = text.match_indices('.').nth(2)?;
    let (id, object) = (text.get(..dot)?, text.get(dot + 1..)?.strip_prefix(OBJECT)?);
    Some((id.parse().ok()?, object))
}

/// An object's answer to a [`Question`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Message {
    Decision(NamedDecision),
    /// Of `inc`, `set` and `get`: the count. Of `expires_at`, `ban`, `unban` and `except`: a time.
    Number(u64),
    /// Of `exceptions`: the one in force, and its end.
    Excepted {
        exception: Option<Exception>,
        until: u64,
    },
    /// Of `lease`; no lease if none is open.
    Leased {
        decision: NamedDecision,
        lease: Option<WrittenLease>,
    },
    /// Of `reset`: whether the key had been used.
    Reset(bool),
    /// Of a hit that can be undone; no id if it was denied, or charged nothing.
    Undoable {
        decision: NamedDecision,
        id: Option<String>,
    },
    /// Of `undo`: the most that was given back under a policy.
    Undone(u64),
    /// Of `reserve`.
    #[serde(rename_all = "camelCase")]
    Reserved {
        decision: NamedDecision,
        /// `None` if it was denied.
        id: Option<String>,
        expires_at: Option<u64>,
    },
    /// Of `settle`, `cancel` and `extend`.
    #[serde(rename_all = "camelCase")]
    Settled {
        settlement: String,
        /// Only if it was extended.
        id: Option<String>,
        expires_at: Option<u64>,
    },
    Error {
        code: String,
        message: String,
    },
}

/// A decision with names in the place of positions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedDecision {
    allowed: bool,
    count: u64,
    limit: u64,
    remaining: u64,
    /// `None` for never.
    retry_after: Option<u64>,
    reset_after: u64,
    more_after: u64,
    policy: String,
    violated: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A lease with its id as text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenLease {
    id: String,
    amount: u64,
    life: u64,
    counts_down: bool,
}

impl NamedDecision {
    fn new(decision: &Decision, policies: &Policies) -> Self {
        let &Decision { allowed, count, limit, remaining, retry_after, reset_after, more_after, .. } = decision;
        let policy = policies.name(decision.policy).into();
        let violated = decision.violated.iter().map(|position| policies.name(position).into()).collect();
        let reason = decision.reason.map(|reason| reason.as_str().into());
        Self { allowed, count, limit, remaining, retry_after, reset_after, more_after, policy, violated, reason }
    }

    /// Returns the decision with positions in the place of names; `None` if it has names of other policies.
    pub(crate) fn under(self, policies: &Policies) -> Option<Decision> {
        let Self { allowed, count, limit, remaining, retry_after, reset_after, more_after, .. } = self;
        let position = |name: &String| policies.names().position(|known| known == name);
        let known = [Reason::Banned, Reason::Denied, Reason::Reserved];
        let known = |reason: String| known.into_iter().find(|known| known.as_str() == reason).unwrap_or(Reason::Full);
        let reason = self.reason.map(known);
        let mut decision = Decision { policy: position(&self.policy)?, reason, ..Decision::NOTHING };
        for name in &self.violated {
            decision.violated.add(position(name)?);
        }
        Some(Decision { allowed, count, limit, remaining, retry_after, reset_after, more_after, ..decision })
    }
}

/// Applies the operation of a question in JSON, and returns the answer in JSON. Only the platform's errors are returned
/// as `Err`; others are an answer.
pub(crate) fn answer(account: &mut Account, question: &str, now: u64) -> Result<String, ThrownError> {
    let reply = match apply(account, question, now) {
        Ok(reply) => reply,
        Err(ThrownError::Coded { code, message }) => Message::Error { code: code.into(), message },
        Err(platform) => return Err(platform),
    };
    // All keys are strings and all numbers are finite, so this cannot fail.
    Ok(serde_json::to_string(&reply).unwrap_or_default())
}

/// Applies the operation of a question in JSON.
fn apply(account: &mut Account, question: &str, now: u64) -> Result<Message, ThrownError> {
    let invalid = |error: serde_json::Error| ThrownError::Coded { code: "invalid_request", message: error.to_string() };
    let question: Question<'_> = serde_json::from_str(question).map_err(invalid)?;
    if question.operation == "exceptions" {
        return Ok(match account.exceptions(question.policies.get(), now)? {
            Reply::Excepted { exception, until, .. } => Message::Excepted { exception: Some(exception), until },
            _ => Message::Excepted { exception: None, until: 0 },
        });
    }
    let (amounts, exception) = (question.checked_amounts()?, question.read_exception()?);
    let operation = question.to_operation(amounts.as_deref(), exception.as_ref(), now)?;
    let policies = question.policies.get();
    let reply = account.apply(Request { operation, policies, credit: question.credit }, now)?;
    let written = |id: ReservationId| match &question.key {
        Some(key) => format!("{id}.{key}"),
        None => id.to_string(),
    };
    let policies = account.policies().ok_or_else(|| Error::state("there is none"))?;
    Ok(match reply {
        Reply::Decision { decision, .. } => Message::Decision(NamedDecision::new(&decision, policies)),
        Reply::Undoable { decision, id, .. } => {
            Message::Undoable { decision: NamedDecision::new(&decision, policies), id: id.map(|id| id.to_string()) }
        }
        Reply::Undone(given) => Message::Undone(given),
        Reply::Number(number) | Reply::Excepted { number, .. } => Message::Number(number),
        Reply::Reset(was_used) => Message::Reset(was_used),
        Reply::Reserved { decision, id, .. } => Message::Reserved {
            decision: NamedDecision::new(&decision, policies),
            id: id.map(written),
            expires_at: id.map(|id| id.end()),
        },
        Reply::Leased { decision, lease, .. } => {
            let decision = NamedDecision::new(&decision, policies);
            let lease = lease.map(|Lease { id, amount, life, counts_down }| WrittenLease {
                id: written(id),
                amount,
                life,
                counts_down,
            });
            Message::Leased { decision, lease }
        }
        Reply::Settled { settlement, id } => {
            let id = id.filter(|_| settlement == Settlement::Extended);
            let (settlement, expires_at) = (settlement.as_str().into(), id.map(|id| id.end()));
            Message::Settled { settlement, id: id.map(written), expires_at }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudflare::protocol::wire::to_decision;
    use crate::{Policies, Policy};

    fn policies() -> Policies {
        let window = |name| Policy::fix_window(5, "1m").unwrap().named(name).unwrap();
        Policies::new([window("burst"), window("daily")]).unwrap()
    }

    #[test]
    fn a_decision_keeps_its_meaning() {
        for text in
            ["2 1 5 4 0 1000 0 0 7", "1 1 5 4 0 1000 0 0 7", "0 5 5 0 700 1000 1 2 700", "4 5 5 0 -1 1000 0 3 7"]
        {
            let decision = to_decision(text).unwrap();
            let json = serde_json::to_string(&NamedDecision::new(&decision, &policies())).unwrap();
            let named: NamedDecision = serde_json::from_str(&json).unwrap();
            assert_eq!(named.under(&policies()), Some(decision), "{json}");
        }
    }

    #[test]
    fn a_decision_under_other_policies_is_none() {
        let named = NamedDecision::new(&to_decision("0 5 5 0 700 1000 1 2 700").unwrap(), &policies());
        assert_eq!(named.under(&Policy::fix_window(5, "1m").unwrap().into()), None);
    }

    #[test]
    fn an_id_has_a_key_an_object_or_neither() {
        let id = "0000000000000000000000000000002a.lw.p";
        for text in [id.into(), format!("{id}.suser:4.2"), format!("{id}.o/ip=9:192.0.2.7")] {
            assert_eq!(read_id(Some(&text)).unwrap().to_string(), id, "{text}");
        }
        assert_eq!(id_and_object(&format!("{id}.o/ip=9:192.0.2.7")).unwrap().1, "/ip=9:192.0.2.7");
        for text in [id.into(), format!("{id}.so/ip"), format!("{id}.n7"), "a.b.c.o/ip".into(), String::new()] {
            assert_eq!(id_and_object(&text), None, "{text}");
        }
    }

    #[test]
    fn a_question_has_one_amount_or_one_for_each_policy() {
        let cost = |cost: &str| {
            let json = format!(r#"{{"operation":"hit","policies":{{}},"cost":{cost}}}"#);
            serde_json::from_str::<Question<'_>>(&json).map(|question| {
                let is_same = json == question.to_json();
                (question.cost, is_same)
            })
        };
        assert_eq!(cost("3").unwrap(), (Some(Amounts::All(Amount(3.0))), true));
        assert_eq!(cost("-1").unwrap().0, Some(Amounts::All(Amount(-1.0))));
        let by_policy = vec![("burst".into(), Amount(2.0)), ("daily".into(), Amount(0.5))];
        assert_eq!(cost(r#"{"burst":2,"daily":0.5}"#).unwrap().0, Some(Amounts::ByPolicy(by_policy)));
        assert!(cost(r#"{"burst":2}"#).unwrap().1);
        for wrong in ["\"1\"", "[]", "true", r#"{"burst":"2"}"#] {
            assert!(cost(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_question_needs_an_operation_and_policies_only() {
        let json = r#"{"operation":"hit","policies":{"algorithm":"fix_window"}}"#;
        let question: Question<'_> = serde_json::from_str(json).unwrap();
        assert_eq!((question.operation, &question.cost, question.of.as_deref()), ("hit", &None, None));
        assert_eq!(question.policies.get(), r#"{"algorithm":"fix_window"}"#);
        for wrong in [r#"{"operation":"hit"}"#, r#"{"operation":"hit","policies":{},"amount":1}"#, "[]", ""] {
            assert!(serde_json::from_str::<Question<'_>>(wrong).is_err(), "{wrong}");
        }
    }
}
