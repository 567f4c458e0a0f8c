//! What crosses between JavaScript, the Worker and its objects: JSON with the names that JavaScript uses.

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::{Decision, Error, MAX, Policies, PolicyDraft, Violated};

/// A [`Decision`] with names in the place of positions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionMessage {
    allowed: bool,
    count: u64,
    limit: u64,
    remaining: u64,
    retry_after: Option<u64>,
    reset_after: u64,
    policy: String,
    violated: Vec<String>,
}

impl DecisionMessage {
    pub(super) fn new(decision: &Decision, policies: &Policies) -> Self {
        Self {
            allowed: decision.allowed,
            count: decision.count,
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after: decision.retry_after,
            reset_after: decision.reset_after,
            policy: policies.name(decision.policy).into(),
            violated: decision.violated.iter().map(|position| policies.name(position).into()).collect(),
        }
    }

    /// The decision that was sent, under the same policies.
    pub(super) fn decision(&self, policies: &Policies) -> Result<Decision, Error> {
        let mut violated = Violated::default();
        for name in &self.violated {
            violated.add(policies.position(Some(name))?);
        }
        Ok(Decision {
            allowed: self.allowed,
            count: self.count,
            limit: self.limit,
            remaining: self.remaining,
            retry_after: self.retry_after,
            reset_after: self.reset_after,
            policy: policies.position(Some(&self.policy))?,
            violated,
            reason: None,
        })
    }
}

/// Policies from JSON: one, or a list.
pub(super) fn policies(json: &str) -> Result<Policies, Fault> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Drafts {
        Several(Vec<PolicyDraft>),
        One(PolicyDraft),
    }
    let drafts = match serde_json::from_str(json)? {
        Drafts::Several(drafts) => drafts,
        Drafts::One(draft) => vec![draft],
    };
    let built: Result<Vec<_>, _> = drafts.iter().map(PolicyDraft::build).collect();
    Ok(Policies::new(built?)?)
}

/// A cost as JavaScript gives it.
pub(super) fn cost(number: f64) -> Result<u64, Error> {
    let exact = if number.fract() == 0.0 { whole(number) } else { None };
    exact.ok_or_else(|| Error::InvalidCost { found: spelled(number) })
}

/// A time as JavaScript gives it, without its fraction.
pub(super) fn time(number: f64) -> Result<u64, Error> {
    whole(number.floor()).ok_or_else(|| Error::InvalidTime { found: spelled(number) })
}

fn whole(number: f64) -> Option<u64> {
    (0.0..=MAX as f64).contains(&number).then_some(number as u64)
}

/// As JavaScript writes it: Rust's own way of writing fractions is 15 kB of wasm.
fn spelled(number: f64) -> String {
    js_sys::Number::from(number).to_string_with_radix(10).map(String::from).unwrap_or_default()
}
