//! The named policies of the configuration, and the sets of them that decide together.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::reader::{Mistake, Mistakes, in_words, mistake};
use super::tree::Tree;
use crate::policy::Value;
use crate::text::{shown, text};
use crate::{Denied, Error, Ledger, Policies, Policy, PolicyDraft};

/// Policies that are one decision.
#[derive(Clone, Debug)]
pub(super) struct PolicySet {
    pub(super) policies: Policies,
    /// Of all that they say, so that a denial by these is not taken for one by others. The same within an isolate.
    pub(super) hash: u64,
}

impl PolicySet {
    /// The policies of these names, together.
    pub(super) fn of(names: &[String], named: &[(String, Policy)]) -> Result<Self, Error> {
        let find = |name: &String| {
            named.iter().find(|(known, _)| known == name).map(|(_, policy)| policy.clone()).ok_or_else(|| {
                let known: Vec<_> = named.iter().map(|(known, _)| known).collect();
                Error::unknown_policy("policy", Some(name), &known)
            })
        };
        let policies = Policies::new(names.iter().map(find).collect::<Result<Vec<_>, _>>()?)?;
        Ok(Self { hash: BuildHasherDefault::<DefaultHasher>::default().hash_one(&policies), policies })
    }

    /// Whether a denied hit changes anything.
    pub(super) fn counts_denied(&self) -> bool {
        self.policies.denied() == Denied::Count
    }
}

/// Reads the table of named policies.
pub(super) fn named_policies(tree: Tree, mistakes: &mut Mistakes) -> Vec<(String, Policy)> {
    let Tree::Table(fields) = tree else {
        mistakes.push(mistake("policies".into(), &tree, "policies by their names"));
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, tree) in fields {
        match policy(text(&["policies.", &name]), &name, &tree) {
            Ok(policy) => named.push((name, policy)),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    named
}

/// A policy with its name, or what is wrong with it.
fn policy(path: String, name: &str, tree: &Tree) -> Result<Policy, Mistake> {
    // A word that needs no quoting in headers, logs and commands.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(letter) {
        let problem = "the name must be 1 to 64 letters, digits, dots, hyphens or underscores".into();
        return Err(Mistake { path, problem });
    }
    let draft = draft(tree).ok_or_else(|| mistake(path.clone(), tree, "a policy"))?;
    build(name, &draft).map_err(|error| {
        let message = error.to_string();
        let (field, problem) = message.split_once(": ").unwrap_or(("", &message));
        Mistake { path: text(&[&path, ".", field]), problem: problem.into() }
    })
}

/// The draft of a policy in a table; nothing when it is no table.
pub(super) fn draft(tree: &Tree) -> Option<PolicyDraft> {
    let Tree::Table(fields) = tree else { return None };
    let mut draft = PolicyDraft::default();
    for (name, value) in fields {
        let value = match value {
            Tree::Nothing => continue,
            Tree::Number(number) => Value::from_number(*number),
            Tree::Text(text) => Value::Text(text.clone()),
            other => Value::Other(in_words(other)),
        };
        draft.push(name.clone(), value);
    }
    Some(draft)
}

fn build(name: &str, draft: &PolicyDraft) -> Result<Policy, Error> {
    let policy = draft.build()?;
    if let Some(own) = policy.name().filter(|own| *own != name) {
        let accepts = "the name that it has in this table, or none";
        return Err(Error::policy("name", &shown(own), accepts));
    }
    let policy = free_by_default(policy.named(name)?)?;
    // What only a durable store refuses.
    Ledger::new(policy.clone())?;
    Ok(policy)
}

/// Policies as an object is given them: free unless they say otherwise, since a denial is not worth a write.
pub(super) fn free_by_default(policy: Policy) -> Result<Policy, Error> {
    if policy.denied.is_none() { policy.denied(Denied::Free) } else { Ok(policy) }
}
