//! One key's states as plain data, for stores outside the process.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::conversion::Stored;
use crate::key_states::KeyStates;
use crate::memory::{OutOfMemory, collect, push};
use crate::policy::schema::RESERVATION_HEAD as HEAD;
use crate::policy_states::PolicyStates;
use crate::scale::Scale;
use crate::text::Quoted;
use crate::wording::{self, Filled};
use crate::{Error, MAX_POLICIES, Policies, Policy};

/// The version of records and snapshots.
pub(crate) const VERSION: u64 = 2;

/// One key's states under all policies, for any serde format.
///
/// It contains as much of the policies as is needed to convert the states when the policies have changed.
///
/// ```
/// use tollgate::{Operation, Policies, Policy, Record, step};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = Policies::from(Policy::fix_window(100, "1m")?);
/// let record = step(&policies, None, Operation::Hit { cost: 3 }, 61_000)?.record.unwrap();
///
/// let json = serde_json::to_string(&record).unwrap();
/// assert_eq!(json, r#"{"version":2,"policies":[{"name":"fix_window","algorithm":"fix_window","scale":60000}],"states":[[60000,3]],"earlier":[],"reservations":[]}"#);
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
    /// The states of policies whose scale changed, each as the policy's position, the scale, the time until which it is
    /// kept, and the state's numbers.
    #[serde(default)]
    pub(crate) earlier: Vec<Vec<i64>>,
    /// The open reservations, each as four numbers of its id, its start, end and ttl, and an amount for each policy; if a
    /// call with numbers of its own opened it, also a limit and a rate for each policy.
    #[serde(default)]
    pub(crate) reservations: Vec<Vec<i64>>,
}

/// The policy under which a state was made, as far as it is needed to read the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeBy {
    pub(crate) name: String,
    pub(crate) algorithm: String,
    pub(crate) scale: i64,
}

impl MadeBy {
    /// Returns the entries of all policies.
    pub(crate) fn all(policies: &Policies) -> Vec<Self> {
        policies.names().zip(policies.iter()).map(|(name, policy)| Self::of(name, policy)).collect()
    }

    /// Returns the entry of a policy under its name.
    pub(crate) fn of(name: &str, policy: &Policy) -> Self {
        Self { name: name.into(), algorithm: policy.algorithm().into(), scale: policy.rule.stored_scale().number() }
    }

    /// Returns whether a state that was made under this policy is valid under `policy` without conversion.
    pub(crate) fn matches(&self, policy: &Policy) -> bool {
        self.origin().matches(policy)
    }

    fn origin(&self) -> Origin<'_> {
        Origin { name: &self.name, algorithm: &self.algorithm, scale: self.scale }
    }
}

/// A borrowed [`MadeBy`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    /// The policy's name.
    pub name: &'a str,
    /// The policy's algorithm.
    pub algorithm: &'a str,
    /// The policy's `scale` or `per` as a stored [`Scale`]. It is not checked.
    pub scale: i64,
}

impl<'a> Origin<'a> {
    fn matches(&self, policy: &Policy) -> bool {
        self.algorithm == policy.algorithm() && self.scale == policy.rule.stored_scale().number()
    }

    /// Returns the origins of states under these policies.
    pub(crate) fn all(policies: &'a Policies) -> Result<Vec<Self>, OutOfMemory> {
        let named = policies.names().zip(policies.iter());
        let scale = |policy: &Policy| policy.rule.stored_scale().number();
        collect(named.map(|(name, policy)| Self { name, algorithm: policy.algorithm(), scale: scale(policy) }))
    }
}

/// The positions of the policies that start afresh, because their stored states are of another algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Afresh(u32);

impl Afresh {
    fn add(&mut self, position: usize) {
        self.0 |= 1 << position;
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns whether the policy at `position` starts afresh.
    pub(crate) fn contains(self, position: usize) -> bool {
        position < MAX_POLICIES && self.0 >> position & 1 == 1
    }

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

impl Record {
    pub(crate) fn new(
        policies: &Policies,
        states: Vec<Vec<i64>>,
        earlier: Vec<Vec<i64>>,
        reservations: Vec<Vec<i64>>,
    ) -> Self {
        Self { version: VERSION, policies: MadeBy::all(policies), states, earlier, reservations }
    }

    /// Returns whether the states were made under these policies, so that none needs conversion.
    pub(crate) fn is_made_by(&self, policies: &Policies) -> bool {
        let same =
            |(made_by, (name, policy)): (&MadeBy, (&str, &Policy))| made_by.name == name && made_by.matches(policy);
        self.policies.len() == policies.len()
            && self.policies.iter().zip(policies.names().zip(policies.iter())).all(same)
    }

    /// Returns the origins of the states.
    pub(crate) fn origins(&self) -> Result<Vec<Origin<'_>>, OutOfMemory> {
        collect(self.policies.iter().map(MadeBy::origin))
    }

    /// Loads the states into those of a key never used.
    pub(crate) fn load(
        &self,
        policies: &Policies,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        now: u64,
    ) -> Result<Afresh, Error> {
        check_version(self.version)?;
        let (origins, earlier) = (self.origins()?, self.earlier.iter().map(Vec::as_slice));
        let open = self.reservations.iter().map(Vec::as_slice);
        load_key(policies, policy_states, key, &origins, &self.states, earlier, open, now)
    }
}

pub(crate) fn check_version(found: u64) -> Result<(), Error> {
    if found == VERSION { Ok(()) } else { Err(Error::UnsupportedVersion { found, supported: VERSION }) }
}

/// Loads states and open reservations into those of a key never used, each under the policy of its name. Each row of
/// `earlier` starts with the index of its origin.
#[allow(clippy::too_many_arguments)]
pub(crate) fn load_key<'a>(
    policies: &Policies,
    policy_states: &PolicyStates,
    key: &mut KeyStates,
    origins: &[Origin<'_>],
    states: &[Vec<i64>],
    earlier: impl Iterator<Item = &'a [i64]> + Clone,
    open: impl Iterator<Item = &'a [i64]>,
    now: u64,
) -> Result<Afresh, Error> {
    // Reservations first: a state is kept longer beside them.
    load_open(policies, key, origins, open)?;
    let afresh = load_states(policies, policy_states, key, origins, states, earlier, now)?;
    key.key_mut(policy_states, policy_states.rules()).refresh(now);
    Ok(afresh)
}

fn load_states<'a>(
    policies: &Policies,
    policy_states: &PolicyStates,
    key: &mut KeyStates,
    origins: &[Origin<'_>],
    states: &[Vec<i64>],
    earlier: impl Iterator<Item = &'a [i64]> + Clone,
    now: u64,
) -> Result<Afresh, Error> {
    if origins.len() != states.len() {
        return Err(Error::state(wording::STATES_DIFFER));
    }
    let is_placed = |row: &[i64]| row.first().is_some_and(|&position| (position as u64) < origins.len() as u64);
    if !earlier.clone().all(is_placed) {
        return Err(Error::state(wording::EARLIER_UNPLACED));
    }
    let mut afresh = Afresh::default();
    for (position, (name, policy)) in policies.names().zip(policies.iter()).enumerate() {
        let Some(number) = origin_of(name, policies, origins) else { continue };
        let (origin, numbers) = (&origins[number], &states[number]);
        if origin.algorithm != policy.algorithm() {
            afresh.add(position);
            continue;
        }
        let Some(scale) = Scale::from_number(origin.scale, policy.rule.position()) else {
            return Err(Error::state(Filled(wording::STATE_SCALE, &["name"], &[&Quoted(name)]).to_string()));
        };
        let is_own = |row: &&[i64]| row.first() == Some(&(number as i64));
        let earlier = earlier.clone().find(is_own).and_then(|row| row.get(1..));
        if !(Stored { scale, numbers, earlier }).load(position, policy_states, key, now)? {
            let problem = Filled(wording::STATE_NUMBERS, &["name", "algorithm"], &[&Quoted(name), &origin.algorithm]);
            return Err(Error::state(problem.to_string()));
        }
    }
    Ok(afresh)
}

/// Loads open reservations beside the states of a key, each amount under the policy of its name. Amounts of other
/// policies are dropped.
fn load_open<'a>(
    policies: &Policies,
    key: &mut KeyStates,
    origins: &[Origin<'_>],
    rows: impl Iterator<Item = &'a [i64]>,
) -> Result<(), Error> {
    let mut row = Vec::new();
    for numbers in rows {
        let Some((head, amounts)) = numbers.split_at_checked(HEAD) else {
            return Err(Error::state(wording::RESERVATION_NUMBERS));
        };
        let calls = amounts.len().checked_sub(origins.len()).filter(|calls| [0, 2 * origins.len()].contains(calls));
        let Some(calls) = calls else { return Err(Error::state(wording::RESERVATION_NUMBERS)) };
        row.clear();
        row.try_reserve(HEAD + 3 * policies.len()).map_err(OutOfMemory::from)?;
        row.extend_from_slice(head);
        let origin_of = |name| origin_of(name, policies, origins);
        row.extend(policies.names().map(|name| origin_of(name).map_or(0, |number| amounts[number])));
        for (name, policy) in policies.names().zip(policies.iter()).filter(|_| calls > 0) {
            // The numbers of a call are valid only under the policy of the call.
            let number = origin_of(name).filter(|&number| origins[number].matches(policy));
            let at = |number| origins.len() + 2 * number;
            row.extend_from_slice(number.and_then(|number| amounts.get(at(number)..at(number + 1))).unwrap_or(&[0, 0]));
        }
        if !key.extra.open.import(&row, policies.len())? {
            return Err(Error::state(wording::RESERVATION_NUMBERS));
        }
    }
    Ok(())
}

/// Returns the index of the origin of a policy's state. A single policy that was only renamed keeps its state.
fn origin_of(name: &str, policies: &Policies, origins: &[Origin<'_>]) -> Option<usize> {
    let is_renamed = policies.len() == 1 && origins.len() == 1;
    origins.iter().position(|origin| origin.name == name || is_renamed)
}
