//! The costs of an operation: one number under all policies, or one for each policy by its name.

use crate::error::wording::EMPTY_OBJECT;
use crate::number::check_cost;
use crate::policy::schema::MAX_POLICIES;
use crate::{Error, Found, Policies};

/// The costs of an operation under each policy.
///
/// ```
/// use tollgate::{Costs, Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = [Policy::fix_window(60, "1m")?.named("rpm")?, Policy::fix_window(90_000, "1m")?.named("tpm")?];
/// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
/// limiter.hit_costs("user:42", Costs::ByPolicy(&[("tpm", 1_500)]))?;
/// assert_eq!(limiter.get_policy("user:42", Some("rpm"))?, 1);
/// assert_eq!(limiter.get_policy("user:42", Some("tpm"))?, 1_500);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs<'a> {
    /// The same under all policies.
    All(u64),
    /// A number for each policy by its name. For a policy that is left out it is 1, or the reserved amount when a
    /// reservation is settled. Without any name it is an error, except to settle.
    ByPolicy(&'a [(&'a str, u64)]),
}

impl From<u64> for Costs<'_> {
    fn from(cost: u64) -> Self {
        Self::All(cost)
    }
}

impl<'a> Costs<'a> {
    /// Returns whether the costs are by policy.
    pub(crate) fn is_by_policy(self) -> bool {
        matches!(self, Self::ByPolicy(_))
    }

    /// Returns the costs by the positions of the policies; `otherwise` for a policy that is left out. A ban takes no cost.
    pub(crate) fn at_positions(self, policies: &Policies, otherwise: u64) -> Result<PositionCosts, Error> {
        let list = match self {
            Self::All(cost) => return Ok(PositionCosts::All(check_cost(cost)?)),
            // Nothing that was to be charged is named.
            Self::ByPolicy([]) if otherwise != AS_RESERVED => {
                return Err(Error::InvalidCost { found: Found::Described(EMPTY_OBJECT) });
            }
            Self::ByPolicy(list) => list,
        };
        let mut costs = [otherwise; MAX_POLICIES];
        for (name, cost) in list {
            let position = policies.position(Some(name))?;
            policies.check_has_cost(position)?;
            costs[position] = check_cost(*cost)?;
        }
        Ok(PositionCosts::Each(costs))
    }
}

/// The cost of an operation under the policy at each position.
// An array rather than a list, which would have to be allocated. It is only borrowed, never stored.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug)]
pub enum PositionCosts {
    /// The same under all policies.
    All(u64),
    /// A cost for each position.
    Each([u64; MAX_POLICIES]),
}

/// Sentinel cost of a settlement: the reserved amount. It is out of the range of costs.
pub const AS_RESERVED: u64 = u64::MAX;

impl PositionCosts {
    /// Returns the cost under the policy at a position.
    #[inline(always)]
    pub(crate) fn at(&self, position: usize) -> u64 {
        match self {
            Self::All(cost) => *cost,
            Self::Each(costs) => costs.get(position).copied().unwrap_or(1),
        }
    }

    /// Returns the cost of a settlement under a policy that may not have been there when it was reserved: the reserved
    /// amount where the position has none.
    pub(crate) fn settled_at(&self, position: usize) -> u64 {
        match self {
            Self::All(cost) => *cost,
            Self::Each(costs) => costs.get(position).copied().unwrap_or(AS_RESERVED),
        }
    }
}
