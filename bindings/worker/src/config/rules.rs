//! The gateway's rules: which requests are limited, by what key, and how.

use tollgate::Policy;

use crate::config::new_keys;
use crate::config::policies::PolicySet;
use crate::config::{ON_ERROR, OnError};
use crate::reader::{FieldError, FieldErrors, Reader, integer, invalid, non_empty_text};
use crate::request::key::{self, Part};
use crate::request::method::{METHODS, Methods};
use crate::request::pattern::{self, Pattern};
use crate::text::{AMOUNT, listed, shown};
use crate::tree::Tree;

/// How many keys a rule may count by: each is a request to an object.
const MAX_LIMITS: usize = 8;

/// A rule: the first that matches a request decides about it.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The methods that it applies to. Empty for all.
    pub(crate) methods: Methods,
    pub(crate) pattern: Pattern,
    /// Whether another letter case is another path.
    pub(crate) case_sensitive: bool,
    pub(crate) mode: Mode,
    /// The limits of the rule, decided together. A rule that skips has none.
    pub(crate) limits: Vec<Limit>,
    pub(crate) missing: Missing,
    pub(crate) on_error: OnError,
    /// Whether an isolate spends the limits of hot keys in parts.
    pub(crate) leases: bool,
    /// Whether objects keep allowed hits in memory, covered by a credit in the row.
    pub(crate) credit: bool,
    /// The limit on keys that have no state yet.
    pub(crate) new_keys: Option<NewKeys>,
}

/// The limit on new keys: the position of its policies among the sets, and its period in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewKeys {
    pub(crate) set: usize,
    pub(crate) scale: u64,
}

/// One of the keys that a rule counts by.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) key: Vec<Part>,
    /// The position of its policies among the sets.
    pub(crate) set: usize,
    pub(crate) cost: u64,
}

/// What a rule does with its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Enforce,
    /// Decides and reports, but denies nothing.
    Shadow,
    /// Does not decide.
    Skip,
}

/// What a rule does with a request that lacks a part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Counts it by the client's address in the part's place.
    Ip,
    Deny,
    Skip,
}

/// The policies that rules may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedPolicies<'a> {
    pub(crate) valid: &'a [(String, Policy)],
    /// The names of all, also of those that have errors.
    pub(crate) names: &'a [String],
}

/// The defaults of a rule's fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) on_error: OnError,
    pub(crate) case_sensitive: bool,
    pub(crate) leases: bool,
    pub(crate) credit: bool,
}

/// Reads one rule; `None` if it has errors.
pub(crate) fn read(
    path: String,
    tree: Tree,
    named: NamedPolicies<'_>,
    sets: &mut Vec<PolicySet>,
    defaults: Defaults,
    errors: &mut FieldErrors,
) -> Option<Rule> {
    let before = errors.len();
    let mut reader = Reader::new(path, tree, errors);
    let modes = &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("skip", Mode::Skip)];
    let mode = reader.choice("mode", modes).unwrap_or(Mode::Enforce);
    let methods = methods(&mut reader);
    let pattern = pattern(&mut reader);
    let missing = &[("ip", Missing::Ip), ("deny", Missing::Deny), ("skip", Missing::Skip)];
    let missing = reader.choice("missing", missing).unwrap_or(Missing::Ip);
    let cost = reader.read("cost", AMOUNT, integer).unwrap_or(1);
    let on_error = reader.choice("onError", ON_ERROR).unwrap_or(defaults.on_error);
    let case_sensitive = reader.boolean("caseSensitive").unwrap_or(defaults.case_sensitive);
    let leases = reader.boolean("leases").unwrap_or(defaults.leases);
    let credit = reader.boolean("credit").unwrap_or(defaults.credit);
    let new_keys = new_keys::read(&mut reader);
    if new_keys.is_some() && mode == Mode::Skip {
        let problem = "is not accepted with mode \"skip\"".into();
        reader.errors.push(FieldError { path: reader.path_of("newKeys"), problem });
    }
    let new_keys = new_keys.map(|read| NewKeys { set: place(read.set, sets), scale: read.scale });
    let limits = match reader.list("limits") {
        Some(list) => limits(&mut reader, list, mode, named, sets, cost),
        None => limit(&mut reader, mode, named, sets, cost).into_iter().collect(),
    };
    reader.finish();
    let valid = errors.len() == before;
    pattern.filter(|_| valid).map(|pattern| Rule {
        methods,
        pattern,
        case_sensitive,
        mode,
        limits,
        missing,
        on_error,
        leases,
        credit,
        new_keys,
    })
}

/// Reads the key and the policies of a rule, or of one of its limits.
fn limit(
    reader: &mut Reader<'_>,
    mode: Mode,
    named: NamedPolicies<'_>,
    sets: &mut Vec<PolicySet>,
    cost: u64,
) -> Option<Limit> {
    let key = key(reader, mode);
    let set = policies(reader, mode, named)?;
    Some(Limit { key, set: place(set, sets), cost })
}

/// Reads `limits`: the keys of a rule that has several, each with its policies and its cost.
fn limits(
    reader: &mut Reader<'_>,
    list: Vec<(String, Tree)>,
    mode: Mode,
    named: NamedPolicies<'_>,
    sets: &mut Vec<PolicySet>,
    cost: u64,
) -> Vec<Limit> {
    for (field, found) in [("key", reader.take("key")), ("policies", reader.take("policies"))] {
        if found.is_some() {
            let problem = "is not accepted beside limits; set it in each of the limits".into();
            reader.errors.push(FieldError { path: reader.path_of(field), problem });
        }
    }
    if mode == Mode::Skip || !(1..=MAX_LIMITS).contains(&list.len()) {
        let expected = format!("expected a list of 1 to {MAX_LIMITS}");
        let problem = if mode == Mode::Skip { "is not accepted with mode \"skip\"".into() } else { expected };
        reader.errors.push(FieldError { path: reader.path_of("limits"), problem });
        return Vec::new();
    }
    let mut limits = Vec::new();
    for (path, tree) in list {
        let mut own = Reader::new(path, tree, reader.errors);
        let cost = own.read("cost", AMOUNT, integer).unwrap_or(cost);
        limits.extend(limit(&mut own, mode, named, sets, cost));
        own.finish();
    }
    limits
}

fn methods(reader: &mut Reader<'_>) -> Methods {
    let mut methods = Methods::default();
    for (path, tree) in reader.list("method").unwrap_or_default() {
        match non_empty_text(&tree).and_then(|name| Methods::named(&name)) {
            Some(method) => methods = methods.with(method),
            None => reader.errors.push(invalid(path, &tree, format!("one of {}", listed(METHODS)))),
        }
    }
    methods
}

fn pattern(reader: &mut Reader<'_>) -> Option<Pattern> {
    let found = reader.take("path").unwrap_or(Tree::Null);
    let pattern = non_empty_text(&found).and_then(|written| Pattern::parse(&written));
    if pattern.is_none() {
        reader.reject("path", &found, pattern::ACCEPTS);
    }
    pattern
}

/// Reads the parts of the key; by default the client's address.
fn key(reader: &mut Reader<'_>, mode: Mode) -> Vec<Part> {
    let Some(list) = reader.list("key") else { return vec![Part::Ip] };
    if mode == Mode::Skip || list.is_empty() {
        let problem = if list.is_empty() { "an empty list is not a key" } else { "is not accepted with mode \"skip\"" };
        reader.errors.push(FieldError { path: reader.path_of("key"), problem: problem.into() });
    }
    let mut parts = Vec::new();
    for (path, tree) in list {
        match non_empty_text(&tree).and_then(|written| Part::parse(&written)) {
            Some(part) => parts.push(part),
            None => reader.errors.push(invalid(path, &tree, key::ACCEPTS)),
        }
    }
    parts
}

fn policies(reader: &mut Reader<'_>, mode: Mode, named: NamedPolicies<'_>) -> Option<PolicySet> {
    let path = reader.path_of("policies");
    let before = reader.errors.len();
    let mut names = Vec::new();
    for (path, tree) in reader.list("policies").unwrap_or_default() {
        match non_empty_text(&tree) {
            Some(name) if named.valid.iter().any(|(known, _)| *known == name) => names.push(name),
            // The policy is invalid, and its own errors say so.
            Some(name) if named.names.contains(&name) => return None,
            _ => reader.errors.push(invalid(path, &tree, accepted(named.names))),
        }
    }
    if mode == Mode::Skip {
        if !names.is_empty() {
            let problem = "is not accepted with mode \"skip\"".into();
            reader.errors.push(FieldError { path, problem });
        }
        return None;
    }
    if reader.errors.len() > before {
        return None;
    }
    if names.is_empty() {
        reader.errors.push(invalid(path, &Tree::Null, "the name of a policy, or several"));
        return None;
    }
    let problem = match PolicySet::of(&names, named.valid) {
        Ok(set) if !set.policies.iter().any(|policy| policy.algorithm() == "concurrency") => return Some(set),
        Ok(_) => "a concurrency policy counts reservations alone, and a rule makes none; reserve by the HTTP API, the \
                  entrypoint or the object"
            .into(),
        Err(error) => error.message,
    };
    reader.errors.push(FieldError { path, problem });
    None
}

fn accepted(names: &[String]) -> String {
    let known: Vec<String> = names.iter().map(|name| shown(name)).collect();
    if known.is_empty() { "a name that is under policies".into() } else { format!("one of {}", known.join(", ")) }
}

/// Returns the position of a set, which is added if it is new. Rules with the same policies share one.
fn place(set: PolicySet, sets: &mut Vec<PolicySet>) -> usize {
    sets.iter().position(|known| known.policies == set.policies).unwrap_or_else(|| {
        sets.push(set);
        sets.len() - 1
    })
}
