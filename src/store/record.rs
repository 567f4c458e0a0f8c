//! One key's rows as plain data, for stores outside the process.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::error::quoting::Quoted;
use crate::error::wording::{self, Filled};
use crate::growth::{OutOfMemory, push};
use crate::key::policy_states::PolicyStates;
use crate::key::rows::{LoadError, Row, RowRef};
use crate::key::shapes::{Names, Shape};
use crate::key::states::KeyStates;
use crate::policy::schema;
use crate::{Error, Policies};

/// The version of records and snapshots.
pub const VERSION: u64 = 4;

/// One key's rows, for any serde format.
///
/// ```
/// use tollgate::{Operation, Policies, Policy, Record, step};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::from(Policy::fix_window(100, "1m")?);
/// let record = step(&policies, None, Operation::Hit { cost: 3 }, 61_000)?.record.unwrap();
///
/// let json = serde_json::to_string(&record).unwrap();
/// assert_eq!(json, r#"{"version":4,"rows":[["fix_window",[0,60000,120000,2,60000,3]]]}"#);
/// assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) rows: Vec<StoredRow>,
}

/// A row: the name of the policy, then numbers: the algorithm's position in the schema, the `scale` or `per` as a stored
/// [`Scale`](crate::policy::scale::Scale), when the row ends, how many numbers the state has, these, and the parts of open
/// reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRow(pub(crate) String, pub(crate) Vec<i64>);

impl StoredRow {
    pub(crate) fn new(row: &Row, names: &Names) -> Self {
        Self(names.name(row.shape.name).into(), row.numbers().iter().skip(1).copied().collect())
    }

    /// Returns the algorithm's position in the schema.
    pub(crate) fn algorithm(&self) -> usize {
        self.1.first().and_then(|&position| usize::try_from(position).ok()).unwrap_or(usize::MAX)
    }

    /// Returns when the row ends.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn ends_at(&self) -> u64 {
        self.1.get(2).map_or(0, |&ends_at| ends_at as u64)
    }

    /// Returns whether it is a part of an exception.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn is_exception(&self) -> bool {
        self.algorithm() == schema::EXCEPTION
    }

    /// Returns whether two rows have the same shape.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let has_scale = !matches!(self.algorithm(), schema::CONCURRENCY | schema::BAN);
        let are_alike = !has_scale || self.1.get(1) == other.1.get(1);
        self.0 == other.0 && self.algorithm() == other.algorithm() && are_alike
    }

    /// Returns the row under the number of its name.
    pub(crate) fn row(&self, names: &mut Names) -> Result<RowRef<'_>, Error> {
        let Self(name, numbers) = self;
        let number = names.number(name)?;
        RowRef::named(number, numbers).ok_or_else(|| invalid(name, schema::state_name(self.algorithm())))
    }
}

impl Record {
    pub(crate) fn new(rows: Vec<StoredRow>) -> Self {
        Self { version: VERSION, rows }
    }

    /// Loads the rows into the states of a key never used.
    pub(crate) fn load(
        &self,
        names: &mut Names,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        now: u64,
    ) -> Result<(), Error> {
        check_version(self.version)?;
        for row in &self.rows {
            let row = row.row(names)?;
            key.load(policy_states, row).map_err(|error| error.into_error(names))?;
        }
        key.loaded(policy_states, now);
        Ok(())
    }
}

impl LoadError {
    /// Returns the error that names the state.
    pub(crate) fn into_error(self, names: &Names) -> Error {
        let Self::Invalid(Shape { name, algorithm, .. }) = self else { return OutOfMemory.into() };
        invalid(names.name(name), schema::state_name(algorithm))
    }
}

/// Returns the error for a state that is invalid.
fn invalid(name: &str, algorithm: &str) -> Error {
    let algorithm = if algorithm.is_empty() { wording::UNKNOWN_STATE } else { algorithm };
    Error::state(Filled(wording::STATE_NUMBERS, &["name", "algorithm"], &[&Quoted(name), &algorithm]).to_string())
}

/// Returns the names of the policies at the positions that are bits.
pub(crate) fn names_at(positions: u32, policies: &Policies) -> Result<Vec<String>, OutOfMemory> {
    let mut names = Vec::new();
    for (_, name) in policies.names().enumerate().filter(|(position, _)| positions >> position & 1 == 1) {
        let mut copy = String::new();
        copy.try_reserve_exact(name.len())?;
        copy.push_str(name);
        push(&mut names, copy)?;
    }
    Ok(names)
}

pub(crate) fn check_version(found: u64) -> Result<(), Error> {
    if found == VERSION { Ok(()) } else { Err(Error::UnsupportedVersion { found, supported: VERSION }) }
}
