//! The policies of a limiter, and a cache of the policies in its logs.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ReplayError;
use super::policy_set::PolicySet;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::push;
use crate::{Error, Ledger, Policies};

/// How many parsed texts each cache has. A fleet in the middle of a deploy has few different policies.
const CACHED: usize = 8;

/// The policies of a limiter, and a cache of others that its logs contain.
#[derive(Debug)]
pub(super) struct PolicySets {
    own: Arc<PolicySet>,
    others: Vec<Arc<PolicySet>>,
    /// The algorithms of calls with policies of their own, by the text of those policies.
    calls: Vec<(String, Vec<AnyAlgorithm>)>,
}

/// The algorithms of one call.
#[derive(Debug)]
pub(super) enum CallRules {
    /// The call has no policies of its own.
    Default,
    /// The algorithms of the call's own policies.
    Own(Vec<AnyAlgorithm>),
    /// The call's own policies do not match those of the states, so it is rejected.
    Mismatch,
}

impl PolicySets {
    /// Returns the sets of a limiter with these policies.
    pub(super) fn new(policies: Policies) -> Result<Self, Error> {
        let own = Arc::new(PolicySet::new(policies)?);
        Ok(Self { own, others: Vec::new(), calls: Vec::new() })
    }

    /// Returns the limiter's own policies.
    pub(super) fn own(&self) -> &Arc<PolicySet> {
        &self.own
    }

    /// Returns the policies with this text.
    pub(super) fn get(&mut self, text: &str) -> Result<Arc<PolicySet>, ReplayError> {
        let known = [&self.own].into_iter().chain(&self.others).find(|set| set.text == text);
        if let Some(set) = known {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(PolicySet::parse(text)?);
        cache(&mut self.others, Arc::clone(&set))?;
        Ok(set)
    }

    /// Returns the algorithms of a call, adjusted to a ledger. `text` is that of the call's own policies.
    pub(super) fn call_algorithms(&mut self, text: Option<&str>, ledger: &Ledger) -> Result<CallRules, ReplayError> {
        let Some(text) = text else { return Ok(CallRules::Default) };
        let mut algorithms = match self.calls.iter().find(|(known, _)| known == text) {
            Some((_, algorithms)) => algorithms.clone(),
            None => {
                let algorithms = PolicySet::parse(text)?.policies.algorithms();
                cache(&mut self.calls, (text.into(), algorithms.clone()))?;
                algorithms
            }
        };
        Ok(if ledger.adjust(&mut algorithms) { CallRules::Own(algorithms) } else { CallRules::Mismatch })
    }
}

/// Appends to a cache, and removes its oldest item if it is full.
fn cache<T>(items: &mut Vec<T>, item: T) -> Result<(), ReplayError> {
    if items.len() >= CACHED {
        items.remove(0);
    }
    Ok(push(items, item)?)
}
