//! Lowers policies to a share of their limits and rates.

use crate::algorithm::any::AnyAlgorithm;
use crate::policy::scale::Scale;
use crate::{Error, MAX, Policies, Policy};
use alloc::vec::Vec;

/// Shares are in millionths.
const MILLION: u64 = 1_000_000;

/// Returns policies with `millionths` of the limits and rates, and a limit of at least 1. A bucket's rate is lowered by a
/// longer period.
pub fn share(policies: &Policies, millionths: u64) -> Result<Policies, Error> {
    let millionths = millionths.clamp(1, MILLION);
    let part = |whole: u64| (u128::from(whole) * u128::from(millionths) / u128::from(MILLION)) as u64;
    let longer = |time: u64| (u128::from(time) * u128::from(MILLION)).div_ceil(u128::from(millionths));
    let shared = |policy: &Policy| {
        let algorithm = &policy.algorithm;
        let scale = match algorithm {
            AnyAlgorithm::Bucket(bucket) => Scale::of_time(longer(bucket.per).min(u128::from(MAX)) as u64),
            AnyAlgorithm::Window(_) | AnyAlgorithm::SlidingWindow(_) | AnyAlgorithm::Concurrency(_) => {
                algorithm.stored_scale()
            }
            // A ban has no limit to share.
            AnyAlgorithm::Ban(_) => return Ok(policy.clone()),
        };
        let numbers =
            Policy::from_numbers(algorithm.position(), part(algorithm.limit()).max(1), algorithm.rate(), scale)?;
        Ok(Policy { name: policy.name.clone(), unit: policy.unit.clone(), denied: policy.denied, ..numbers })
    };
    let list: Result<Vec<Policy>, Error> = policies.iter().map(shared).collect();
    Policies::new(list?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarter(policy: Policy) -> Policy {
        share(&policy.into(), 250_000).unwrap().iter().next().unwrap().clone()
    }

    #[test]
    fn a_share_is_rounded_down_to_at_least_one_hit() {
        assert_eq!(quarter(Policy::fix_window(103, "1m").unwrap()), Policy::fix_window(25, "1m").unwrap());
        assert_eq!(quarter(Policy::sliding_window(1, "1m").unwrap()), Policy::sliding_window(1, "1m").unwrap());
    }

    #[test]
    fn a_bucket_has_a_longer_period() {
        assert_eq!(quarter(Policy::token_bucket(10, 3, 1_001).unwrap()), Policy::token_bucket(2, 3, 4_004).unwrap());
        let named = Policy::leaky_bucket(MAX, 1_000, 1).unwrap().named("n").unwrap();
        assert_eq!(quarter(named.clone()).name(), Some("n"));
        assert_eq!(share(&named.clone().into(), MILLION).unwrap().iter().next(), Some(&named));
    }
}
