//! What a client and an object say to each other over `fetch`: JSON in both directions.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::account::Account;
use super::fault::Fault;
use super::wire::{self, Reply};
use crate::{Decision, Error, Policies};

/// An operation on the object's key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question<'a> {
    pub(super) operation: &'a str,
    /// A policy, or a list of them.
    #[serde(borrow)]
    pub(super) policies: &'a RawValue,
    /// The cost or the count.
    #[serde(default = "one")]
    pub(super) amount: u64,
    /// The name of one of several policies.
    #[serde(default, borrow)]
    pub(super) policy: Option<std::borrow::Cow<'a, str>>,
}

fn one() -> u64 {
    1
}

/// What an object answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Message {
    Decision(NamedDecision),
    /// To `inc`, `set` and `get`: the count. To `expires_at`: a time.
    Number(u64),
    /// To `reset`: whether the key had been used.
    Reset(bool),
    Error {
        code: String,
        message: String,
    },
}

/// A decision with names in the place of positions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamedDecision {
    allowed: bool,
    count: u64,
    limit: u64,
    remaining: u64,
    /// `None` for never.
    retry_after: Option<u64>,
    reset_after: u64,
    policy: String,
    violated: Vec<String>,
}

impl NamedDecision {
    fn new(decision: &Decision, policies: &Policies) -> Self {
        let &Decision { allowed, count, limit, remaining, retry_after, reset_after, .. } = decision;
        let policy = policies.name(decision.policy).into();
        let violated = decision.violated.iter().map(|position| policies.name(position).into()).collect();
        Self { allowed, count, limit, remaining, retry_after, reset_after, policy, violated }
    }

    /// Returns the decision with positions in the place of names; `None` if it has names of other policies.
    pub(super) fn under(self, policies: &Policies) -> Option<Decision> {
        let Self { allowed, count, limit, remaining, retry_after, reset_after, .. } = self;
        let position = |name: &String| policies.names().position(|known| known == name);
        let mut decision = Decision { policy: position(&self.policy)?, ..Decision::NOTHING };
        for name in &self.violated {
            decision.violated.add(position(name)?);
        }
        Some(Decision { allowed, count, limit, remaining, retry_after, reset_after, ..decision })
    }
}

/// Does the operation of a question in JSON, and returns the answer in JSON. Only the platform's errors are returned
/// as errors.
pub(super) fn answer(account: &mut Account, question: &str, now: u64) -> Result<String, Fault> {
    let reply = match ask(account, question, now) {
        Ok(reply) => reply,
        Err(Fault::Coded { code, message }) => Message::Error { code: code.into(), message },
        Err(platform) => return Err(platform),
    };
    // A message has no keys that are not texts, and no number that is not finite.
    Ok(serde_json::to_string(&reply).unwrap_or_default())
}

fn ask(account: &mut Account, question: &str, now: u64) -> Result<Message, Fault> {
    let invalid = |error: serde_json::Error| Fault::Coded { code: "invalid_request", message: error.to_string() };
    let Question { operation, policies, amount, policy } = serde_json::from_str(question).map_err(invalid)?;
    let operation = wire::operation(operation, amount, policy.as_deref())?;
    let reply = account.apply(operation, policies.get(), now)?;
    Ok(match (reply, account.policies()) {
        (Reply::Decision(decision), Some(policies)) => Message::Decision(NamedDecision::new(&decision, policies)),
        (Reply::Decision(_), None) => return Err(Error::state("there is none").into()),
        (Reply::Number(number), _) => Message::Number(number),
        (Reply::Reset(was_used), _) => Message::Reset(was_used),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudflare::wire::to_decision;
    use crate::{Policies, Policy};

    fn policies() -> Policies {
        let window = |name| Policy::fix_window(5, "1m").unwrap().named(name).unwrap();
        Policies::new([window("burst"), window("daily")]).unwrap()
    }

    #[test]
    fn a_decision_keeps_its_meaning() {
        for text in ["1 1 5 4 0 1000 0 0", "0 5 5 0 700 1000 1 2", "0 5 5 0 -1 1000 0 3"] {
            let decision = to_decision(text).unwrap();
            let json = serde_json::to_string(&NamedDecision::new(&decision, &policies())).unwrap();
            let named: NamedDecision = serde_json::from_str(&json).unwrap();
            assert_eq!(named.under(&policies()), Some(decision), "{json}");
        }
    }

    #[test]
    fn a_decision_under_other_policies_is_none() {
        let named = NamedDecision::new(&to_decision("0 5 5 0 700 1000 1 2").unwrap(), &policies());
        assert_eq!(named.under(&Policy::fix_window(5, "1m").unwrap().into()), None);
    }

    #[test]
    fn a_question_says_no_more_than_it_must() {
        let json = r#"{"operation":"hit","policies":{"algorithm":"fix_window"}}"#;
        let question: Question<'_> = serde_json::from_str(json).unwrap();
        assert_eq!((question.operation, question.amount, question.policy), ("hit", 1, None));
        assert_eq!(question.policies.get(), r#"{"algorithm":"fix_window"}"#);
        for wrong in [r#"{"operation":"hit"}"#, r#"{"operation":"hit","policies":{},"cost":1}"#, "[]", ""] {
            assert!(serde_json::from_str::<Question<'_>>(wrong).is_err(), "{wrong}");
        }
    }
}
