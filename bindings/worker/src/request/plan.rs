//! The plan of a request, from its method, path and header values: the objects that decide about it.

use tollgate::MAX;

use crate::config::rules::{Limit, Missing, Mode, Rule};
use crate::config::{Base, Config};
use crate::request::credential::Ambiguous;
use crate::request::fold::folded;
use crate::request::key::{self, ADDRESS, Part, Source};
use crate::request::method::{self, MethodOptions, Methods, RequestMethods};
use crate::request::path::{normalise, normalise_ended};
use crate::request::pattern::Match;
use crate::request::ranges::{self, Verdict};
use crate::request::reading::{Reading, is_plain, readings};

/// The plan of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// No limit applies.
    Pass,
    /// The list of denied addresses has the client's.
    Deny,
    /// The rule at this position rejects it.
    Reject { rule: usize, reason: Rejection },
    /// Objects decide, in this order, until one denies.
    Check(Vec<LimitCheck>),
}

/// Why a rule rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// A part of the key is missing.
    Missing,
    /// Origins read a part of the key differently, so that what is counted may not be what they see.
    Ambiguous,
}

/// A check of one limit by its object. The checks of one rule follow each other, and are one decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitCheck {
    /// The position of the rule.
    pub(crate) rule: usize,
    /// The position of the limit within the rule.
    pub(crate) limit: usize,
    /// The object's name.
    pub(crate) object: String,
    /// The limit's cost, or the sum of several limits of the rule on one object under the same policies.
    pub(crate) cost: u64,
}

/// The parts of a request that rules match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Matters for OPTIONS only.
    pub(crate) has_body: bool,
}

/// Returns the plan of a request under the first matching rule of each reading.
pub(crate) fn plan(config: &Config, request: Request<'_>, source: &impl Source) -> Plan {
    if !config.addresses.is_empty()
        && let Some(address) = source.header(ADDRESS)
    {
        match ranges::verdict(&config.addresses, &address) {
            Some(Verdict::Allow) => return Plan::Pass,
            Some(Verdict::Deny) => return Plan::Deny,
            None => {}
        }
    }
    let named = config.rules.iter().any(|rule| !rule.methods.is_empty());
    let options = MethodOptions { named, overrides: config.method_override };
    let methods = method::request_methods(request.method, request.has_body, options, source);
    let mut checks = Vec::with_capacity(1);
    for position in rules_of(config, methods, request.path) {
        if let Err(reason) = add_checks(&config.rules, position, request.path, source, &mut checks) {
            return Plan::Reject { rule: position, reason };
        }
    }
    if checks.is_empty() { Plan::Pass } else { Plan::Check(checks) }
}

/// Returns the positions of the rules that apply to a request in any reading, in order.
fn rules_of(config: &Config, methods: RequestMethods, path: &str) -> Vec<usize> {
    let mut found = Vec::with_capacity(2);
    let mut look_up = |reading: Reading<'_>| {
        for method in methods.all.each() {
            for position in first_matches(&config.rules, method, methods.preflight, reading).into_iter().flatten() {
                if let Err(at) = found.binary_search(&position) {
                    found.insert(at, position);
                }
            }
        }
    };
    readings(path, &mut look_up);
    if let Some(Base { path: base, pattern }) = config.base.as_ref().filter(|_| !is_plain(path)) {
        // Dots may leave the base and come back to it.
        readings(&format!("{base}{path}"), |reading| {
            if pattern.matches(&reading) != Match::No {
                look_up(Reading { segments: &reading.segments[pattern.len()..], ..reading });
            }
        });
    }
    found
}

/// Returns the first rule that matches in another letter case or without a segment's end, and the first that matches
/// exactly. Some origins fold paths and some do not, so both apply.
fn first_matches(rules: &[Rule], method: Methods, preflight: bool, reading: Reading<'_>) -> [Option<usize>; 2] {
    let mut first = None;
    for (position, rule) in rules.iter().enumerate() {
        // A preflight is not the client's own request, so only rules that name OPTIONS apply to it.
        let named = if rule.methods.is_empty() { !preflight } else { rule.methods.include(method) };
        if !named {
            continue;
        }
        match rule.pattern.matches(&reading) {
            Match::Exact => return [first, Some(position)],
            Match::Folded if rule.case_sensitive => {}
            Match::Folded | Match::Longer => first = first.or(Some(position)),
            Match::No => {}
        }
    }
    [first, None]
}

/// Adds the checks of a rule. The error is why the rule rejects the request; a shadow rule rejects none.
fn add_checks(
    rules: &[Rule],
    position: usize,
    path: &str,
    source: &impl Source,
    checks: &mut Vec<LimitCheck>,
) -> Result<(), Rejection> {
    let rule = &rules[position];
    if rule.mode == Mode::Skip {
        return Ok(());
    }
    let mut own = Vec::with_capacity(rule.limits.len());
    for (number, limit) in rule.limits.iter().enumerate() {
        for path in limit_paths(rule, limit, path).into_iter().flatten() {
            let key = key(rule, limit, &path, source).map_err(|Ambiguous| Rejection::Ambiguous);
            let key = key.and_then(|key| match key {
                None if rule.missing == Missing::Deny => Err(Rejection::Missing),
                key => Ok(key),
            });
            match key {
                Ok(Some(key)) => {
                    let (object, cost) = (key::object_name(key), limit.cost);
                    add_own(rule, LimitCheck { rule: position, limit: number, object, cost }, &mut own);
                }
                Err(reason) if rule.mode == Mode::Enforce => return Err(reason),
                Ok(None) | Err(_) => {}
            }
        }
    }
    for check in own {
        add(rules, check, checks);
    }
    Ok(())
}

/// Adds a check to those of its rule. Two for the same object under the same policies are one of both costs.
fn add_own(rule: &Rule, check: LimitCheck, own: &mut Vec<LimitCheck>) {
    let set = |check: &LimitCheck| rule.limits[check.limit].set;
    match own.iter_mut().find(|known| known.object == check.object && set(known) == set(&check)) {
        Some(known) => known.cost = known.cost.saturating_add(check.cost).min(MAX),
        None => own.push(check),
    }
}

/// Returns the path in a limit's key, or both paths.
fn limit_paths(rule: &Rule, limit: &Limit, path: &str) -> [Option<String>; 2] {
    if limit.key.contains(&Part::Path) { key_paths(path, rule.case_sensitive) } else { [Some(String::new()), None] }
}

/// Returns a path as keys have it: one, or two where servers differ in how `;` ends it.
pub(crate) fn key_paths(path: &str, case_sensitive: bool) -> [Option<String>; 2] {
    let fold = |path: String| if case_sensitive { path } else { folded(&path) };
    let whole = fold(normalise(path));
    let ended = normalise_ended(path).map(fold).filter(|ended| *ended != whole);
    [Some(whole), ended]
}

/// Returns a request's key under a limit of a rule; `None` if a part is missing.
fn key(rule: &Rule, limit: &Limit, path: &str, source: &impl Source) -> Result<Option<String>, Ambiguous> {
    let mut key = String::new();
    for part in &limit.key {
        let encoded = match part.encoded(path, source)? {
            None if rule.missing == Missing::Ip => Part::Ip.encoded(path, source)?,
            encoded => encoded,
        };
        let Some(encoded) = encoded else { return Ok(None) };
        key.push_str(&encoded);
    }
    Ok(Some(key))
}

/// Adds a check. Of two rules' for the same object under the same policies and modes, the one of the higher cost is kept.
fn add(rules: &[Rule], check: LimitCheck, checks: &mut Vec<LimitCheck>) {
    let of = |check: &LimitCheck| (&rules[check.rule], &rules[check.rule].limits[check.limit]);
    let (own, limit) = of(&check);
    let same = checks.iter().position(|known| {
        let (other, known_limit) = of(known);
        let (budget, known_budget) =
            ((limit.set, own.mode, own.on_error), (known_limit.set, other.mode, other.on_error));
        known.object == check.object && known_budget == budget
    });
    let Some(at) = same else { return checks.push(check) };
    let (other, _) = of(&checks[at]);
    match (checks[at].cost >= check.cost, other.limits.len() + own.limits.len()) {
        (true, _) => {}
        (false, 2) => checks[at] = check,
        // The checks of a rule stay together.
        (false, _) => {
            checks.remove(at);
            checks.push(check);
        }
    }
}

#[cfg(test)]
mod servers;
#[cfg(test)]
mod tests;
