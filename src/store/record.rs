//! One key's states as plain data, for stores outside the process.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::error::quoting::Quoted;
use crate::error::wording::{self, Filled};
use crate::growth::{OutOfMemory, push};
use crate::key::open_reservations::OpenRow;
use crate::key::policy_states::PolicyStates;
use crate::key::shapes::{Afresh, LoadError, Names, Shape, Shaped};
use crate::key::states::KeyStates;
use crate::policy::schema;
#[cfg(feature = "cloudflare")]
use crate::policy::schema::{ALGORITHMS, BAN, CONCURRENCY};
use crate::{Error, Policies};

/// The version of records and snapshots.
pub const VERSION: u64 = 3;

/// One key's states, each with its shape, for any serde format.
///
/// ```
/// use tollgate::{Operation, Policies, Policy, Record, step};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::from(Policy::fix_window(100, "1m")?);
/// let record = step(&policies, None, Operation::Hit { cost: 3 }, 61_000)?.record.unwrap();
///
/// let json = serde_json::to_string(&record).unwrap();
/// assert_eq!(json, r#"{"version":3,"states":[{"name":"fix_window","algorithm":"fix_window","scale":60000,"state":[60000,3],"open":[]}]}"#);
/// assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) states: Vec<StoredState>,
}

/// A state with its shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    /// The policy's name.
    pub(crate) name: String,
    /// The policy's algorithm.
    pub(crate) algorithm: String,
    /// The policy's `scale` or `per` as a stored [`Scale`](crate::policy::scale::Scale).
    pub(crate) scale: i64,
    pub(crate) state: Vec<i64>,
    /// The parts of reservations that are open under it.
    #[serde(default)]
    pub(crate) open: Vec<OpenRow>,
}

impl StoredState {
    pub(crate) fn new(shaped: Shaped<Vec<i64>>, names: &Names) -> Self {
        let Shaped { shape: Shape { name, algorithm, scale }, numbers, open } = shaped;
        Self {
            name: names.name(name).into(),
            algorithm: schema::state_name(algorithm).into(),
            scale: scale.number(),
            state: numbers,
            open,
        }
    }

    /// Returns whether two states have the same shape.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let has_scale = self.algorithm != ALGORITHMS[CONCURRENCY] && self.algorithm != ALGORITHMS[BAN];
        let alike = !has_scale || self.scale == other.scale;
        self.name == other.name && self.algorithm == other.algorithm && alike
    }

    /// Returns the state with its shape.
    fn shaped(&self, names: &mut Names) -> Result<Shaped<&[i64]>, Error> {
        let algorithm = schema::state_position(&self.algorithm);
        let name = names.number(&self.name)?;
        let shape = algorithm.and_then(|algorithm| Shape::parse(name, algorithm, self.scale));
        let shape = shape.ok_or_else(|| invalid(&self.name, &self.algorithm))?;
        Ok(Shaped { shape, numbers: &self.state, open: crate::growth::copied(&self.open)? })
    }
}

impl Record {
    pub(crate) fn new(states: Vec<StoredState>) -> Self {
        Self { version: VERSION, states }
    }

    /// Loads the states into those of a key never used. Returns which policies start unused.
    pub(crate) fn load(
        &self,
        names: &mut Names,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        now: u64,
    ) -> Result<Afresh, Error> {
        check_version(self.version)?;
        for state in &self.states {
            let shaped = state.shaped(names)?;
            key.load(policy_states, &shaped).map_err(|error| error.into_error(names))?;
        }
        Ok(key.loaded(policy_states, now))
    }
}

impl LoadError {
    /// Returns the error that names the state.
    pub(crate) fn into_error(self, names: &Names) -> Error {
        let Self::Invalid(Shape { name, algorithm, .. }) = self else { return OutOfMemory.into() };
        let algorithm = schema::state_name(algorithm);
        invalid(names.name(name), algorithm)
    }
}

/// Returns the error for a state that is invalid.
fn invalid(name: &str, algorithm: &str) -> Error {
    Error::state(Filled(wording::STATE_NUMBERS, &["name", "algorithm"], &[&Quoted(name), &algorithm]).to_string())
}

impl Afresh {
    /// Returns the names of the policies.
    pub(crate) fn names(self, policies: &Policies) -> Result<Vec<String>, OutOfMemory> {
        let mut names = Vec::new();
        for (_, name) in policies.names().enumerate().filter(|(position, _)| self.contains(*position)) {
            let mut copy = String::new();
            copy.try_reserve_exact(name.len())?;
            copy.push_str(name);
            push(&mut names, copy)?;
        }
        Ok(names)
    }
}

pub(crate) fn check_version(found: u64) -> Result<(), Error> {
    if found == VERSION { Ok(()) } else { Err(Error::UnsupportedVersion { found, supported: VERSION }) }
}
