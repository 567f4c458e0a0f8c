//! A whole limiter as plain data.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize, Serializer};

use crate::store::record::{VERSION, check_version};
use crate::{Error, Policies, Policy};

/// All states of a limiter with its policies, for any serde format.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1s")?, ManualClock::new(1_500))?;
/// limiter.hit("a", 2)?;
/// assert_eq!(
///     serde_json::to_string(&limiter.snapshot()?).unwrap(),
///     r#"{"version":4,"policies":[{"algorithm":"fix_window","limit":9,"scale":1000}],"keys":[["a",[[0,0,1000,2000,2,1000,2]]]],"names":[]}"#,
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Plain<K>")]
pub struct Snapshot<K> {
    version: u64,
    policies: MadeBy,
    /// The keys with their rows. The first number of a row is the position of its policy, or after these an index of `names`;
    /// the others are those of a record's row.
    pub(crate) keys: Vec<(K, Vec<Vec<i64>>)>,
    /// The names of rows that are not those of a policy.
    pub(crate) names: Vec<String>,
}

/// The policies of a snapshot. They are checked once, so that restoring need not allocate them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MadeBy {
    Valid(Policies),
    Invalid(Vec<Policy>, Error),
}

impl Serialize for MadeBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Valid(policies) => serializer.collect_seq(policies.iter()),
            Self::Invalid(list, _) => serializer.collect_seq(list),
        }
    }
}

/// A snapshot as it is stored.
#[derive(Deserialize)]
struct Plain<K> {
    version: u64,
    policies: Vec<Policy>,
    keys: Vec<(K, Vec<Vec<i64>>)>,
    #[serde(default)]
    names: Vec<String>,
}

impl<K> From<Plain<K>> for Snapshot<K> {
    fn from(Plain { version, policies, keys, names }: Plain<K>) -> Self {
        let checked = check_version(version).and_then(|()| Policies::new(policies.iter().cloned()));
        let policies = checked.map_or_else(|error| MadeBy::Invalid(policies, error), MadeBy::Valid);
        Self { version, policies, keys, names }
    }
}

impl<K> Snapshot<K> {
    /// Returns a snapshot without keys.
    pub(crate) fn new(policies: &Policies) -> Self {
        Self { version: VERSION, policies: MadeBy::Valid(policies.clone()), keys: Vec::new(), names: Vec::new() }
    }

    /// Returns the policies under which the states were made.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1s")?, ManualClock::new(0))?;
    /// assert_eq!(limiter.snapshot()?.policies()?.name(0), "fix_window");
    /// # Ok(())
    /// # }
    /// ```
    pub fn policies(&self) -> Result<Policies, Error> {
        match &self.policies {
            MadeBy::Valid(policies) => Ok(policies.clone()),
            MadeBy::Invalid(_, error) => Err(error.clone()),
        }
    }

    /// Returns the number of keys.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1s")?, ManualClock::new(0))?;
    /// limiter.hit("a", 2)?;
    /// assert_eq!(limiter.snapshot()?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1s")?, ManualClock::new(0))?;
    /// assert!(limiter.snapshot()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
