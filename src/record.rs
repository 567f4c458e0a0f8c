//! One key's states as plain data: what a store outside the process keeps.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::number::MAX;
use crate::policy_states::{Entry, PolicyStates};
use crate::text::{shown, text};
use crate::{Error, Policies, Policy};

/// The version of everything that is written down.
pub(crate) const VERSION: u64 = 1;

/// One key's states under all policies, in a form that any serde format can hold.
///
/// It says what it was made by, so that it can be read again when the policies have changed.
///
/// ```
/// use tollgate::{Operation, Policies, Policy, Record, step};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::from(Policy::fix_window(100, "1m")?);
/// let record = step(&policies, None, Operation::Hit { cost: 3 }, 61_000)?.record.unwrap();
///
/// let json = serde_json::to_string(&record).unwrap();
/// assert_eq!(json, r#"{"version":1,"policies":[{"name":"fix_window","algorithm":"fix_window","scale":60000}],"states":[[60000,3]]}"#);
/// assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) policies: Vec<MadeBy>,
    #[serde(default)]
    pub(crate) states: Vec<Vec<i64>>,
}

/// What a state was made by: as much of its policy as is needed to read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeBy {
    pub(crate) name: String,
    pub(crate) algorithm: String,
    pub(crate) scale: u64,
}

impl MadeBy {
    /// What states under these policies are made by.
    pub(crate) fn all(policies: &Policies) -> Vec<Self> {
        policies.names().zip(policies.iter()).map(|(name, policy)| Self::of(name, policy)).collect()
    }

    /// What a state under a policy of that name is made by.
    pub(crate) fn of(name: &str, policy: &Policy) -> Self {
        Self { name: name.into(), algorithm: policy.algorithm().into(), scale: policy.scale() }
    }

    /// Whether a state that was made by this needs no conversion under a policy.
    pub(crate) fn suits(&self, policy: &Policy) -> bool {
        self.algorithm == policy.algorithm() && self.scale == policy.scale()
    }
}

impl Record {
    pub(crate) fn new(policies: &Policies, states: Vec<Vec<i64>>) -> Self {
        Self { version: VERSION, policies: MadeBy::all(policies), states }
    }

    /// Whether the states are of these policies, as far as reading them goes.
    pub(crate) fn is_made_by(&self, policies: &Policies) -> bool {
        let same =
            |(made_by, (name, policy)): (&MadeBy, (&str, &Policy))| made_by.name == name && made_by.suits(policy);
        self.policies.len() == policies.len()
            && self.policies.iter().zip(policies.names().zip(policies.iter())).all(same)
    }

    /// Puts the states into an entry. Answers the names of the policies that start afresh,
    /// because what was stored for them was made by another algorithm.
    pub(crate) fn load(
        &self,
        policies: &Policies,
        policy_states: &PolicyStates,
        entry: &mut Entry<'_>,
        now: u64,
    ) -> Result<Vec<String>, Error> {
        check_version(self.version)?;
        load_states(policies, policy_states, entry, &self.policies, &self.states, now)
    }
}

pub(crate) fn check_version(found: u64) -> Result<(), Error> {
    if found == VERSION { Ok(()) } else { Err(Error::version(found, VERSION)) }
}

/// Puts states into an entry, each under the policy of its name. The entry is that of a key never used.
pub(crate) fn load_states(
    policies: &Policies,
    policy_states: &PolicyStates,
    entry: &mut Entry<'_>,
    made_by: &[MadeBy],
    states: &[Vec<i64>],
    now: u64,
) -> Result<Vec<String>, Error> {
    if made_by.len() != states.len() {
        return Err(Error::state("it has not as many states as policies"));
    }
    let mut afresh = Vec::new();
    for (position, (name, policy)) in policies.names().zip(policies.iter()).enumerate() {
        // A single policy that was only renamed is still the same.
        let same = |made_by: &MadeBy| made_by.name == name || (policies.len() == 1 && states.len() == 1);
        let Some((made_by, numbers)) = made_by.iter().zip(states).find(|(made_by, _)| same(made_by)) else { continue };
        if made_by.algorithm != policy.algorithm() {
            afresh.push(name.into());
            continue;
        }
        if !(1..=MAX).contains(&made_by.scale) {
            return Err(Error::state(&text(&["the scale of ", &shown(name), " is out of range"])));
        }
        if !policy_states.import(position, entry, made_by.scale, numbers, now) {
            let problem = ["the numbers of ", &shown(name), " are not those of a ", &made_by.algorithm];
            return Err(Error::state(&text(&problem)));
        }
    }
    Ok(afresh)
}
