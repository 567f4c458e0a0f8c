//! Plans: the sets of policies that decide about a hit.

use crate::cloudflare::protocol::wire::json_of;
use crate::{Policies, Policy};

/// Policies that make one decision together.
pub(super) struct Plan {
    pub(super) json: String,
    /// The positions of the policies among all policies of the simulation.
    pub(super) positions: Vec<usize>,
    /// The names of the policies.
    pub(super) names: Vec<String>,
    /// The limit of the first policy, and whether its count is what is left.
    pub(super) limit: u64,
    pub(super) counts_down: bool,
}

impl Plan {
    /// Returns a plan of policies, each with its position among all.
    pub(super) fn new(policies: &[(usize, &Policy)]) -> Self {
        let list = Policies::new(policies.iter().map(|&(_, policy)| policy.clone()).collect::<Vec<_>>()).unwrap();
        let json = json_of(&list).unwrap().get().to_string();
        let names = list.names().map(Into::into).collect();
        let (_, first) = policies[0];
        Self {
            json,
            positions: policies.iter().map(|&(position, _)| position).collect(),
            names,
            limit: first.limit(),
            counts_down: first.algorithm() == "token_bucket",
        }
    }
}
