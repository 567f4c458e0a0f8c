//! The policies that a ledger's operations are under, one list after the other. The rows of the lists before stay as they were
//! read, so that operations which alternate between policies of one key convert nothing.

use alloc::vec::Vec;

use crate::growth::{OutOfMemory, or_abort, push};
use crate::key::operate::Extra;
use crate::key::perform::KeyOp;
use crate::key::policy_states::PolicyStates;
use crate::key::rows::{Row, push_row, rows_of};
use crate::key::shapes::Names;
use crate::key::states::KeyStates;
use crate::store::ledger::check_stored;
use crate::store::record::StoredRow;
use crate::{Error, Ledger, Policies};

/// The rows of policies that the last operation was not under.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(super) policies: Policies,
    policy_states: PolicyStates,
    states: KeyStates,
    /// When each row ends; 0 if it has, and is then cleared.
    ends: Vec<u64>,
}

impl Parked {
    /// Returns policies that no operation was under, with the rows of their shapes.
    fn new(policies: &Policies, rows: &[Row]) -> Result<Self, Error> {
        check_stored(policies)?;
        let mut policy_states = PolicyStates::new(policies.algorithms(), policies.denied())?;
        policy_states.store();
        let mut states = KeyStates::new(&policy_states)?;
        states.clear(&policy_states, 0);
        for row in rows {
            let loaded = states.load(&policy_states, row.as_ref());
            loaded.map_err(|error| error.into_error(&Names::new(policies.clone())))?;
        }
        states.loaded(&policy_states, 0);
        Ok(Self { policies: policies.clone(), policy_states, states, ends: Vec::new() })
    }

    /// Returns when the last row ends.
    pub(super) fn ends_at(&self) -> u64 {
        self.ends.iter().copied().max().unwrap_or(0)
    }

    /// Returns the rows, also those that have ended.
    pub(super) fn rows(&self) -> Result<Vec<Row>, OutOfMemory> {
        rows_of(&self.policy_states, self.states.entry(), Some(&self.states.extra))
    }

    /// Clears the rows that have ended. Returns whether others are left.
    fn clear_ended(&mut self, now: u64) -> bool {
        let Self { policy_states, states, ends, .. } = self;
        for (position, ends_at) in ends.iter_mut().enumerate().filter(|(_, ends_at)| (1..=now).contains(*ends_at)) {
            *ends_at = 0;
            policy_states.clear_one(position, states.entry_mut(), now);
            states.extra.open.remove_of(position);
        }
        self.ends_at() > 0
    }

    /// Returns whether one of the policies has the shape of one of others.
    fn shares_with(&self, policies: &Policies) -> bool {
        shares_a_shape(&self.policies, policies)
    }
}

/// Rows by whether the policies of an operation have their shape.
#[derive(Default)]
struct Sorted {
    own: Vec<Row>,
    others: Vec<Row>,
}

impl Sorted {
    fn add(&mut self, mut row: Row, name: &str, policies: &Policies, names: &mut Names) -> Result<(), OutOfMemory> {
        row.rename(names.number(name)?);
        let policy = policies.iter().nth(row.shape.name);
        match policy.is_some_and(|policy| row.shape.is_of(&policy.algorithm)) {
            true => push(&mut self.own, row),
            false if row.ends_at > 0 => push(&mut self.others, row),
            false => Ok(()),
        }
    }
}

/// Returns whether a policy of one list has the shape of one of the other.
fn shares_a_shape(some: &Policies, others: &Policies) -> bool {
    let shared = |(name, policy): (&str, &crate::Policy)| {
        let mut named = others.names().zip(others.iter()).filter(|(other, _)| *other == name);
        named.any(|(_, other)| other.algorithm.has_shape_of(&policy.algorithm))
    };
    some.names().zip(some.iter()).any(shared)
}

impl Ledger {
    /// Makes other policies those of the operations that follow. The rows of their shapes are theirs now; the others stay, until
    /// they have ended. On an error nothing has changed.
    pub(crate) fn under(&mut self, policies: &Policies, now: u64) -> Result<(), Error> {
        if self.policies == *policies {
            return Ok(());
        }
        let mut names = Names::new(policies.clone());
        let ends = self.row_ends()?;
        let exceptions = self.states.extra.exceptions.renamed(&self.names, &mut names)?;
        self.parked.try_reserve(1).map_err(OutOfMemory::from)?;
        let known = self.parked.iter().position(|parked| parked.policies == *policies);
        let Sorted { own, others } = self.sorted(policies, &mut names, known.is_none())?;
        let next = match known {
            Some(at) => self.parked.swap_remove(at),
            None => Parked::new(policies, &own)?,
        };
        // From here on nothing can fail.
        let Parked { policies, policy_states, mut states, .. } = next;
        (states.extra.rows, states.extra.exceptions) = (others, exceptions);
        let mut before = Parked {
            policies: core::mem::replace(&mut self.policies, policies),
            policy_states: core::mem::replace(&mut self.policy_states, policy_states),
            states: core::mem::replace(&mut self.states, states),
            ends,
        };
        before.states.extra = Extra { open: core::mem::take(&mut before.states.extra.open), ..Extra::default() };
        self.names = names;
        self.parked.push(before);
        if known.is_none() {
            self.parked.retain(|parked| !parked.shares_with(&self.policies));
        }
        self.parked.retain_mut(|parked| parked.clear_ended(now));
        self.states.extra.drop_ended_rows(now);
        Ok(())
    }

    /// Sorts the rows that are not parked into those of the shapes of other policies, and others, with the numbers of their names
    /// there. With `shared`, those of policies that share a shape with these are sorted, too.
    fn sorted(&self, policies: &Policies, names: &mut Names, shared: bool) -> Result<Sorted, OutOfMemory> {
        let mut sorted = Sorted::default();
        for row in &self.states.extra.rows {
            sorted.add(row.clone(), self.names.name(row.shape.name), policies, names)?;
        }
        if shared && shares_a_shape(&self.policies, policies) {
            for position in 0..self.policies.len() {
                sorted.add(self.row(position)?, self.policies.name(position), policies, names)?;
            }
        }
        for parked in self.parked.iter().filter(|parked| shared && parked.shares_with(policies)) {
            for row in parked.rows()? {
                let name = parked.policies.name(row.shape.name);
                sorted.add(row, name, policies, names)?;
            }
        }
        Ok(sorted)
    }

    /// Makes the parked rows that an operation is on rows that it reaches: those of its reservation, or of the names that it
    /// resets. Returns whether it is on rows that the policies do not name.
    pub(super) fn reach(&mut self, op: &KeyOp<'_>) -> Result<bool, Error> {
        if matches!(op, KeyOp::Reset { .. }) {
            self.unpark_all(&|policies, parked| {
                parked.policies.names().any(|name| policies.names().any(|own| own == name))
            })?;
            return Ok(true);
        }
        let Some(bits) = op.reservation() else { return Ok(false) };
        self.unpark_all(&|_, parked| parked.states.extra.open.find(bits).is_some())?;
        Ok(self.states.extra.rows.iter().any(|row| row.as_ref().holds(bits)))
    }

    fn unpark_all(&mut self, is_chosen: &dyn Fn(&Policies, &Parked) -> bool) -> Result<(), Error> {
        let mut at = 0;
        while let Some(parked) = self.parked.get(at) {
            match is_chosen(&self.policies, parked) {
                true => self.unpark(at)?,
                false => at += 1,
            }
        }
        Ok(())
    }

    /// Makes parked rows rows that operations do not name.
    fn unpark(&mut self, at: usize) -> Result<(), Error> {
        let parked = &self.parked[at];
        let mut rows = parked.rows()?;
        rows.retain(|row| row.ends_at > 0);
        for row in &mut rows {
            row.rename(self.names.number(parked.policies.name(row.shape.name))?);
        }
        self.states.extra.rows.try_reserve(rows.len()).map_err(OutOfMemory::from)?;
        self.states.extra.rows.append(&mut rows);
        self.parked.swap_remove(at);
        Ok(())
    }

    /// Returns whether the rows of these policies are as they were read, since an operation was under them.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn has_read(&self, policies: &Policies) -> bool {
        self.policies == *policies || self.parked.iter().any(|parked| parked.policies == *policies)
    }

    /// Returns how many rows live that operations do not name.
    pub(super) fn live_others(&self, now: u64) -> usize {
        let parked = self.parked.iter().flat_map(|parked| &parked.ends).filter(|&&ends_at| ends_at > now).count();
        parked + self.states.extra.rows.iter().filter(|row| row.is_live(now)).count()
    }

    /// Returns when the row of each policy ends.
    fn row_ends(&self) -> Result<Vec<u64>, OutOfMemory> {
        let Self { policy_states, states, .. } = self;
        let ends = |position| policy_states.row_ends_at(position, states.entry(), &states.extra.open);
        crate::growth::collect((0..self.policies.len()).map(ends))
    }

    /// Returns the parked rows that end later than `now`, as they are stored.
    pub(crate) fn stored_parked(&self, now: u64) -> impl Iterator<Item = StoredRow> {
        self.parked.iter().flat_map(move |parked| {
            let names = Names::new(parked.policies.clone());
            let rows = or_abort(parked.rows()).into_iter().filter(move |row| row.is_live(now));
            rows.map(move |row| StoredRow::new(&row, &names))
        })
    }

    /// Returns the row of the policy at a position.
    pub(crate) fn row(&self, position: usize) -> Result<Row, OutOfMemory> {
        let mut numbers = Vec::new();
        let entry = self.states.entry();
        push_row(&self.policy_states, entry, Some(&self.states.extra), position, &mut |number| {
            push(&mut numbers, number)
        })?;
        Row::new(numbers).ok_or(OutOfMemory)
    }
}
