//! The named policies of the configuration, and the sets of them that decide together.

use serde::Deserialize;
use tollgate::{Error, Ledger, Policies, Policy, PolicyDraft};

use crate::api::request_error::RequestError;
use crate::reader::{FieldError, FieldErrors, invalid};
use crate::text::{listed, shown};
use crate::tree::Tree;

/// Policies that are one decision.
#[derive(Clone, Debug)]
pub(crate) struct PolicySet {
    pub(crate) policies: Policies,
}

impl PolicySet {
    /// Returns the set of the policies with these names.
    pub(crate) fn of(names: &[String], named: &[(String, Policy)]) -> Result<Self, RequestError> {
        let find = |name: &String| {
            let known = || listed(named.iter().map(|(known, _)| known.as_str()));
            let found = named.iter().find(|(known, _)| known == name).map(|(_, policy)| policy.clone());
            found.ok_or_else(|| RequestError::unknown_policy("policy", Some(name), &known()))
        };
        Ok(Self::new(Policies::new(names.iter().map(find).collect::<Result<Vec<_>, _>>()?)?))
    }

    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies }
    }
}

/// Reads the table of named policies.
pub(crate) fn named_policies(tree: Tree, errors: &mut FieldErrors) -> Vec<(String, Policy)> {
    let Tree::Table(fields) = tree else {
        errors.push(invalid("policies".into(), &tree, "a table of policies by name"));
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, tree) in fields {
        match policy(format!("policies.{name}"), &name, tree) {
            Ok(policy) => named.push((name, policy)),
            Err(error) => errors.push(error),
        }
    }
    named
}

/// Reads a policy under its name.
fn policy(path: String, name: &str, tree: Tree) -> Result<Policy, FieldError> {
    // A word that needs no quoting in headers, logs and commands.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(letter) {
        let problem = "the name must be 1 to 64 letters, digits, dots, hyphens or underscores".into();
        return Err(FieldError { path, problem });
    }
    let draft = PolicyDraft::deserialize(tree.clone()).map_err(|_| invalid(path.clone(), &tree, "a policy"))?;
    let policy = build(name, &draft).map_err(|error| {
        // For a value that is not an object, the path has no field.
        let field = error.field().filter(|field| *field != "policy");
        let path = field.map_or(path.clone(), |field| format!("{path}.{field}"));
        FieldError { path, problem: error.problem().to_string() }
    })?;
    match draft.build().as_ref().map(Policy::name) {
        Ok(Some(own)) if own != name => {
            let problem = format!("{} is not {} (or leave it out)", shown(own), shown(name));
            Err(FieldError { path: format!("{path}.name"), problem })
        }
        _ => Ok(policy),
    }
}

/// Builds a policy under its name in the table, and checks that an object accepts it.
fn build(name: &str, draft: &PolicyDraft) -> Result<Policy, Error> {
    let policy = draft.build()?.named(name)?;
    // A durable store rejects some policies that a limiter in memory accepts.
    Ledger::new(policy.clone())?;
    Ok(policy)
}
