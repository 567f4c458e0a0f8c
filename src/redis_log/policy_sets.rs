//! The policies of a limiter, and a cache of others that its logs name.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ReplayError;
use super::policy_set::PolicySet;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::push;
use crate::{Error, Ledger, Policies};

/// How many parsed texts the cache has. Replicas share them.
const CACHED: usize = 64;

/// The policies of a limiter, and a cache of others that its logs name.
#[derive(Debug)]
pub(super) struct PolicySets {
    own: Arc<PolicySet>,
    others: Vec<Arc<PolicySet>>,
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

impl CallRules {
    /// Returns the rules of a call with policies of its own on the states of a ledger.
    pub(super) fn new(set: &PolicySet, ledger: &Ledger) -> Self {
        let mut algorithms = set.policies.algorithms();
        if ledger.adjust(&mut algorithms) { Self::Own(algorithms) } else { Self::Mismatch }
    }
}

impl PolicySets {
    /// Returns the sets of a limiter with these policies.
    pub(super) fn new(policies: Policies) -> Result<Self, Error> {
        let own = Arc::new(PolicySet::new(policies)?);
        Ok(Self { own, others: Vec::new() })
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
        if self.others.len() >= CACHED {
            self.others.remove(0);
        }
        push(&mut self.others, Arc::clone(&set))?;
        Ok(set)
    }
}
