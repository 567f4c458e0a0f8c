//! Policies for simulations.

use crate::{ALGORITHMS, Policy};

/// Returns policies of every algorithm, of several sizes.
pub(super) fn policies() -> Vec<Policy> {
    let mut all = Vec::new();
    for (limit, scale) in [(100, 60_000), (800, 5_000), (1_000, 10_000)] {
        all.push(Policy::fix_window(limit, scale).unwrap());
        all.push(Policy::fix_window_per_key(limit, scale).unwrap());
        all.push(Policy::sliding_window(limit, scale).unwrap());
        all.push(Policy::sliding_counter(limit, scale).unwrap());
        all.push(Policy::token_bucket(limit, limit / 10, scale / 10).unwrap());
        all.push(Policy::leaky_bucket(limit, limit / 10, scale / 10).unwrap());
    }
    for limit in [20_000, 100_000] {
        all.push(Policy::fix_window(limit, 10_000).unwrap());
        all.push(Policy::fix_window_per_key(limit, 10_000).unwrap());
        all.push(Policy::sliding_counter(limit, 10_000).unwrap());
        all.push(Policy::token_bucket(limit, limit / 10, 1_000).unwrap());
        all.push(Policy::leaky_bucket(limit, limit / 10, 1_000).unwrap());
    }
    all
}

#[test]
fn every_algorithm_is_simulated_that_can_be_leased() {
    let simulated = policies();
    // A ban has no amount to lease; `bans.rs` of the properties has leases beside it.
    for name in ALGORITHMS.iter().filter(|name| !["concurrency", "ban"].contains(*name)) {
        assert!(simulated.iter().any(|policy| policy.algorithm() == *name), "{name}");
    }
}
