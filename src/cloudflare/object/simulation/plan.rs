//! Plans: the sets of policies that decide about a hit.

use crate::cloudflare::protocol::wire::json_of;
use crate::{Policies, Policy};

/// Policies that make one decision together.
pub(super) struct Plan {
    pub(super) json: String,
    /// The positions of the policies among all policies of the simulation.
    pub(super) positions: Vec<usize>,
}

impl Plan {
    /// Returns a plan of policies, each with its position among all.
    pub(super) fn new(policies: &[(usize, &Policy)]) -> Self {
        let list: Vec<Policy> = policies.iter().map(|&(_, policy)| policy.clone()).collect();
        let json = json_of(&Policies::new(list).unwrap()).unwrap().get().to_string();
        Self { json, positions: policies.iter().map(|&(position, _)| position).collect() }
    }
}
