//! One policy or several, decided together.

use super::schema::MAX_POLICIES;
use super::{Denied, Policy, denied};
use crate::algorithm::any::AnyAlgorithm;
use crate::error::wording;
use crate::{Error, Expected, Found};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The policies of a limiter: one, or several that are one atomic decision.
///
/// Each has a name: its own, or its algorithm's (`fix_window`, `fix_window-2`, …), which does not
/// change when the numbers do, so that a stored state finds its policy again.
///
/// ```
/// use tollgate::{Policies, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::new([Policy::fix_window(10, "1s")?, Policy::fix_window(1000, "1d")?])?;
/// assert_eq!(policies.names().collect::<Vec<_>>(), ["fix_window", "fix_window-2"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policies(Arc<Named>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    list: Vec<Policy>,
    names: Vec<Box<str>>,
}

impl Policies {
    /// Validates a list of policies: at least one, at most [`MAX_POLICIES`](crate::MAX_POLICIES), no name twice, and no
    /// `denied: "count"` among several, where a denied hit changes no state.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let twice = Policy::fix_window(10, "1s").unwrap().named("twice").unwrap();
    /// assert!(Policies::new([twice.clone(), twice]).is_err());
    /// assert!(Policies::new([]).is_err());
    /// ```
    pub fn new(policies: impl IntoIterator<Item = Policy>) -> Result<Self, Error> {
        let list: Vec<Policy> = policies.into_iter().collect();
        if !(1..=MAX_POLICIES).contains(&list.len()) {
            let found = if list.is_empty() { wording::NO_POLICIES } else { wording::MANY_POLICIES };
            return Err(Error::policy("policies", Found::Described(found), Expected::Policies));
        }
        if list.len() > 1 && list.iter().any(|policy| policy.denied == Some(Denied::Count)) {
            return Err(Error::policy("denied", "count", Expected::FreeAmongSeveral));
        }
        let names = names(&list)?;
        Ok(Self(Arc::new(Named { list, names })))
    }

    /// Returns the number of policies.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let policies = Policies::from(Policy::fix_window(10, "1s").unwrap());
    /// assert_eq!(policies.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.0.list.len()
    }

    /// Returns false: there is at least one policy.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let policies = Policies::from(Policy::fix_window(10, "1s").unwrap());
    /// assert!(!policies.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.list.is_empty()
    }

    /// Returns an iterator over the policies, in order.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let policies = Policies::from(Policy::fix_window(10, "1s").unwrap());
    /// assert_eq!(policies.iter().map(Policy::limit).collect::<Vec<_>>(), [10]);
    /// ```
    pub fn iter(&self) -> core::slice::Iter<'_, Policy> {
        self.0.list.iter()
    }

    /// Returns an iterator over the names, in order.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let policies = Policies::from(Policy::fix_window(10, "1s").unwrap());
    /// assert_eq!(policies.names().collect::<Vec<_>>(), ["fix_window"]);
    /// ```
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.names.iter().map(AsRef::as_ref)
    }

    /// Returns the name of the policy at `position`, such as that of a [`Decision`](crate::Decision); `""` if there is
    /// none.
    ///
    /// ```
    /// # use tollgate::{Policies, Policy};
    /// let policies = Policies::from(Policy::fix_window(10, "1s").unwrap());
    /// assert_eq!(policies.name(0), "fix_window");
    /// assert_eq!(policies.name(7), "");
    /// ```
    pub fn name(&self, position: usize) -> &str {
        self.0.names.get(position).map_or("", AsRef::as_ref)
    }

    /// Returns the position of the policy of that name. The name may be left out if there is only one policy.
    pub(crate) fn position(&self, name: Option<&str>) -> Result<usize, Error> {
        let found = match name {
            None if self.0.list.len() == 1 => Some(0),
            None => None,
            Some(name) => self.0.names.iter().position(|known| **known == *name),
        };
        found.ok_or_else(|| Error::UnknownPolicy { found: name.map(Into::into), known: self.0.names.clone() })
    }

    /// Checks that the policy at a position is not a ban.
    pub(crate) fn check_has_cost(&self, position: usize) -> Result<(), Error> {
        match self.0.list.get(position) {
            Some(policy) if policy.algorithm.is_ban() => {
                Err(Error::BanOnly { policy: self.name(position).into(), operation: "a cost" })
            }
            _ => Ok(()),
        }
    }

    /// Returns the position of the ban of that name. The name may be left out if there is only one ban.
    pub(crate) fn ban_position(&self, name: Option<&str>) -> Result<usize, Error> {
        let mut bans = self.0.list.iter().enumerate().filter(|(_, policy)| policy.algorithm.is_ban());
        let found = match (name, bans.next(), bans.next()) {
            (None, only, None) => only,
            (None, ..) => None,
            (Some(name), first, second) => {
                first.into_iter().chain(second).chain(bans).find(|(position, _)| self.name(*position) == name)
            }
        };
        found.map(|(position, _)| position).ok_or_else(|| {
            let bans = self.0.list.iter().zip(&self.0.names).filter(|(policy, _)| policy.algorithm.is_ban());
            Error::UnknownBan { found: name.map(Into::into), known: bans.map(|(_, name)| name.clone()).collect() }
        })
    }

    /// Returns the algorithms and their numbers, in order.
    pub(crate) fn algorithms(&self) -> Vec<AnyAlgorithm> {
        self.0.list.iter().map(|policy| policy.algorithm).collect()
    }

    /// Returns whether denied hits count.
    pub(crate) fn denied(&self) -> Denied {
        denied(&self.algorithms(), self.0.list.first().and_then(|policy| policy.denied))
    }
}

/// Returns each policy's own name, or its algorithm's, with a number if that is taken.
fn names(list: &[Policy]) -> Result<Vec<Box<str>>, Error> {
    let is_given = |name: &str, list: &[Policy]| list.iter().any(|policy| policy.name() == Some(name));
    let mut names: Vec<Box<str>> = Vec::with_capacity(list.len());
    for (position, policy) in list.iter().enumerate() {
        let mut name = String::from(policy.name().unwrap_or(policy.algorithm()));
        if policy.name().is_some() {
            if is_given(&name, list.get(..position).unwrap_or_default()) {
                return Err(Error::policy("name", name.as_str(), Expected::UniqueName));
            }
        } else {
            let mut number = 1_u32;
            while is_given(&name, list) || names.iter().any(|taken| **taken == *name) {
                number += 1;
                name = String::from(policy.algorithm());
                name.push('-');
                name.push_str(&number.to_string());
            }
        }
        names.push(name.into());
    }
    Ok(names)
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        let name = policy.name().unwrap_or(policy.algorithm()).into();
        Self(Arc::new(Named { list: vec![policy], names: vec![name] }))
    }
}

/// A type that converts into [`Policies`]: one policy, an array, a `Vec`, or [`Policies`] themselves.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policies, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let one = Policy::fix_window(1, "1s")?;
/// Limiter::<String, _>::new(one.clone(), ManualClock::new(0))?;
/// Limiter::<String, _>::new([one.clone()], ManualClock::new(0))?;
/// Limiter::<String, _>::new(Policies::from(one), ManualClock::new(0))?;
/// # Ok(())
/// # }
/// ```
pub trait IntoPolicies {
    /// Validates the list of policies.
    fn into_policies(self) -> Result<Policies, Error>;
}

impl IntoPolicies for Policies {
    fn into_policies(self) -> Result<Policies, Error> {
        Ok(self)
    }
}

impl IntoPolicies for Policy {
    fn into_policies(self) -> Result<Policies, Error> {
        Ok(self.into())
    }
}

impl<const N: usize> IntoPolicies for [Policy; N] {
    fn into_policies(self) -> Result<Policies, Error> {
        Policies::new(self)
    }
}

impl IntoPolicies for Vec<Policy> {
    fn into_policies(self) -> Result<Policies, Error> {
        Policies::new(self)
    }
}
