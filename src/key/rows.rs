//! A key's rows: each is the state of one shape, with the parts of reservations that are open under it, and its end.
//!
//! A call reads and writes the rows of its policies' shapes. A row that it does not name stays as it is, a list of numbers,
//! until it has ended by its own numbers or is reset.

use alloc::vec::Vec;

use crate::Denied;
use crate::algorithm::Push;
use crate::growth::{OutOfMemory, collect, push};
use crate::key::open_reservations::{Bits, OPEN_END, OPEN_ROW, OpenRow};
use crate::key::operate::{Extra, KeyMut};
use crate::key::policy_states::{Entry, PolicyStates};
use crate::key::shapes::Shape;
use crate::key::states::KeyStates;
use crate::number::{MAX, in_range};
use crate::policy::schema::MAX_ROWS;

/// The count of numbers of a row before its state's: name, algorithm, scale, end, and how many the state has.
const HEAD: usize = 5;

/// Returns the numbers of a row before those of its state.
pub(crate) fn head_of(Shape { name, algorithm, scale }: Shape, ends_at: u64, count: i64) -> [i64; HEAD] {
    // A time past the range of times is never reached.
    [name as i64, algorithm as i64, scale.number(), ends_at.min(MAX) as i64, count]
}

/// A row as a list of numbers, which it is stored as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRef<'a> {
    pub(crate) shape: Shape,
    /// When the state and the parts of reservations have ended, by their own numbers.
    pub(crate) ends_at: u64,
    pub(crate) state: &'a [i64],
    /// The parts of the reservations that are open under it.
    pub(crate) open: &'a [OpenRow],
}

impl<'a> RowRef<'a> {
    /// Parses a row; `None` if its head is invalid. Its state is not read.
    pub(crate) fn parse(numbers: &'a [i64]) -> Option<Self> {
        let (&name, rest) = numbers.split_first()?;
        Self::named(usize::try_from(name).ok()?, rest)
    }

    /// Parses the numbers of a row after its name.
    pub(crate) fn named(name: usize, numbers: &'a [i64]) -> Option<Self> {
        let (&[algorithm, scale, ends_at, count], rest) = numbers.split_first_chunk()?;
        let shape = Shape::parse(name, usize::try_from(algorithm).ok()?, scale)?;
        let (state, parts) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        let (open, []) = parts.as_chunks::<OPEN_ROW>() else { return None };
        let ends_at = Some(ends_at).filter(|ends_at| in_range(*ends_at))? as u64;
        Some(Self { shape, ends_at, state, open })
    }

    /// Returns a copy under a name.
    pub(crate) fn to_row(self, name: usize) -> Result<Row, OutOfMemory> {
        let Self { shape, ends_at, state, open } = self;
        let shape = Shape { name, ..shape };
        let head = head_of(shape, ends_at, state.len() as i64);
        let numbers = head.into_iter().chain(state.iter().copied()).chain(open.iter().flatten().copied());
        Ok(Row { shape, ends_at, numbers: collect(numbers)? })
    }

    /// Returns whether the part of a reservation is open.
    pub(crate) fn holds(&self, bits: Bits) -> bool {
        self.open.iter().any(|part| part[..bits.len()] == bits.map(i64::from))
    }
}

/// A row that a call does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) ends_at: u64,
    numbers: Vec<i64>,
}

impl Row {
    /// Returns the row of these numbers; `None` if their head is invalid.
    pub(crate) fn new(numbers: Vec<i64>) -> Option<Self> {
        let RowRef { shape, ends_at, .. } = RowRef::parse(&numbers)?;
        Some(Self { shape, ends_at, numbers })
    }

    /// Returns the numbers: of the name, the algorithm and the scale, when it ends, how many numbers the state has, and
    /// these, then the parts of reservations.
    pub(crate) fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    pub(crate) fn into_numbers(self) -> Vec<i64> {
        self.numbers
    }

    /// Returns whether the row has not ended by a time.
    pub(crate) fn is_live(&self, now: u64) -> bool {
        // An end past the range of times is stored as the last time.
        self.ends_at > now || self.ends_at == MAX
    }

    /// Gives the name another number.
    pub(crate) fn rename(&mut self, name: usize) {
        self.shape.name = name;
        if let Some(own) = self.numbers.first_mut() {
            *own = name as i64;
        }
    }

    pub(crate) fn as_ref(&self) -> RowRef<'_> {
        let Self { shape, ends_at, numbers } = self;
        let count = numbers.get(HEAD - 1).map_or(0, |&count| count as usize);
        let (state, parts) = numbers.get(HEAD..).and_then(|rest| rest.split_at_checked(count)).unwrap_or_default();
        RowRef { shape: *shape, ends_at: *ends_at, state, open: parts.as_chunks().0 }
    }

    /// Returns whether a reservation is open under it.
    pub(crate) fn has_open(&self) -> bool {
        !self.as_ref().open.is_empty()
    }

    /// Returns the bits and the ends of the open reservations.
    pub(crate) fn open(&self) -> impl Iterator<Item = (Bits, u64)> {
        self.as_ref().open.iter().map(|part| {
            let &[a, b, c, d, ..] = part;
            ([a, b, c, d].map(|bits| bits as u32), part[OPEN_END] as u64)
        })
    }
}

/// A row that was read: its state under the algorithm of its shape alone.
struct Lone {
    shape: Shape,
    policy_states: PolicyStates,
    states: KeyStates,
}

impl Lone {
    /// Reads a row; `None` if its numbers are invalid.
    fn read(row: RowRef<'_>) -> Result<Option<Self>, OutOfMemory> {
        let Some(algorithm) = row.shape.algorithm() else { return Ok(None) };
        let mut algorithms = Vec::new();
        push(&mut algorithms, algorithm)?;
        let policy_states = PolicyStates::new(algorithms, Denied::Free)?;
        let mut states = KeyStates::new(&policy_states)?;
        states.clear(&policy_states, 0);
        let is_valid = states.import(&policy_states, 0, row)?;
        let mut lone = Self { shape: row.shape, policy_states, states };
        lone.key().refresh(0);
        Ok(is_valid.then_some(lone))
    }

    fn key(&mut self) -> KeyMut<'_> {
        self.states.key_mut(&self.policy_states, self.policy_states.algorithms())
    }

    fn row(&self) -> Result<Row, OutOfMemory> {
        let mut row = row_at(&self.policy_states, self.states.entry(), Some(&self.states.extra), 0)?;
        if let Some(row) = &mut row {
            row.rename(self.shape.name);
        }
        row.ok_or(OutOfMemory)
    }
}

impl Extra {
    /// Runs `work` on a copy of each row that a call does not name and that is chosen. Returns the changed copies with their
    /// indices, to be put back by [`Extra::replace_rows`]. Rows that cannot be read are left out.
    pub(super) fn changed_rows(
        &self,
        is_chosen: &dyn Fn(RowRef<'_>) -> bool,
        work: &mut dyn FnMut(&mut KeyMut<'_>, Shape) -> Result<bool, OutOfMemory>,
    ) -> Result<Vec<(usize, Row)>, OutOfMemory> {
        let mut changed = Vec::new();
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| is_chosen(row.as_ref())) {
            if let Some(mut lone) = Lone::read(row.as_ref())?
                && work(&mut lone.key(), row.shape)?
            {
                push(&mut changed, (index, lone.row()?))?;
            }
        }
        Ok(changed)
    }

    /// Puts back rows that were changed.
    pub(super) fn replace_rows(&mut self, changed: Vec<(usize, Row)>) {
        for (index, row) in changed {
            if let Some(own) = self.rows.get_mut(index) {
                *own = row;
            }
        }
    }

    /// Drops the rows that have ended.
    pub(crate) fn drop_ended_rows(&mut self, now: u64) {
        self.rows.retain(|row| row.is_live(now));
    }
}

/// Returns whether a key outside the process has room for a row of each named policy beside the live rows of others.
pub(crate) fn has_room(others: usize, named: usize) -> bool {
    others + named <= MAX_ROWS
}

/// Why a row cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadError {
    OutOfMemory,
    /// The state or a reservation of this shape is invalid.
    Invalid(Shape),
}

impl From<OutOfMemory> for LoadError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl KeyStates {
    /// Loads a row into the states of a key never used: as the state of the policy that has its shape, or as a row that a call
    /// does not name. [`KeyStates::loaded`] must follow.
    pub(crate) fn load(&mut self, policy_states: &PolicyStates, row: RowRef<'_>) -> Result<(), LoadError> {
        let position = row.shape.name;
        let own = policy_states.algorithms().get(position);
        let is_valid = if row.shape.is_exception() {
            self.extra.exceptions.load(row)?
        } else if own.is_some_and(|own| row.shape.is_of(own)) {
            self.import(policy_states, position, row)?
        } else {
            let row = row.to_row(position)?;
            push(&mut self.extra.rows, row)?;
            true
        };
        if is_valid { Ok(()) } else { Err(LoadError::Invalid(row.shape)) }
    }

    /// Reads a row into the state at a position, which must be unused. Returns whether the numbers are valid.
    fn import(&mut self, policy_states: &PolicyStates, position: usize, row: RowRef<'_>) -> Result<bool, OutOfMemory> {
        if !policy_states.import(position, self.entry_mut(), row.state)? {
            return Ok(false);
        }
        for part in row.open {
            if !self.extra.open.import(position, part, policy_states.algorithms().len())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Completes the loading of rows.
    pub(crate) fn loaded(&mut self, policy_states: &PolicyStates, now: u64) {
        self.key_mut(policy_states, policy_states.algorithms()).refresh(now);
        self.extra.exceptions.drop_ended(now);
    }

    /// Returns the positions, as bits, of the policies that are unused while a row of their name has another shape.
    pub(crate) fn afresh(&self, policy_states: &PolicyStates, now: u64) -> u32 {
        let is_afresh = |position: &usize| {
            let mut others = self.extra.rows.iter().filter(|row| row.is_live(now));
            others.any(|row| row.shape.name == *position)
                && policy_states.expires_beside(*position, self.entry(), &self.extra.open, now) == 0
        };
        (0..policy_states.algorithms().len()).filter(is_afresh).fold(0, |bits, position| bits | 1 << position)
    }
}

/// Returns the row at an index, as [`push_row`] passes it.
pub(crate) fn row_at(
    policy_states: &PolicyStates,
    entry: Entry<'_>,
    extra: Option<&Extra>,
    index: usize,
) -> Result<Option<Row>, OutOfMemory> {
    let mut numbers = Vec::new();
    push_row(policy_states, entry, extra, index, &mut |number| push(&mut numbers, number))?;
    Ok(Row::new(numbers))
}

/// Returns all rows of a key.
pub(crate) fn rows_of(
    policy_states: &PolicyStates,
    entry: Entry<'_>,
    extra: Option<&Extra>,
) -> Result<Vec<Row>, OutOfMemory> {
    let mut rows = Vec::new();
    while let Some(row) = row_at(policy_states, entry, extra, rows.len())? {
        push(&mut rows, row)?;
    }
    Ok(rows)
}

/// Passes the row at an index to `push` as numbers, without allocating: those of the policies in order, then those that a call
/// does not name, then the exception. Returns false if there is no such row.
pub(crate) fn push_row(
    policy_states: &PolicyStates,
    entry: Entry<'_>,
    extra: Option<&Extra>,
    index: usize,
    push: Push<'_>,
) -> Result<bool, OutOfMemory> {
    let Some(algorithm) = policy_states.algorithms().get(index) else {
        let (Some(extra), index) = (extra, index - policy_states.algorithms().len()) else { return Ok(false) };
        let Some(row) = extra.rows.get(index) else {
            return extra.exceptions.push_row(index - extra.rows.len(), push);
        };
        row.numbers().iter().try_for_each(|&number| push(number))?;
        return Ok(true);
    };
    let open = extra.map_or(const { &crate::key::open_reservations::NONE_OPEN }, |extra| &extra.open);
    let mut count = 0;
    policy_states.export_one(index, entry, &mut |_| {
        count += 1;
        Ok(())
    })?;
    let ends_at = policy_states.row_ends_at(index, entry, open);
    head_of(Shape::of(index, algorithm), ends_at, count).into_iter().try_for_each(&mut *push)?;
    policy_states.export_one(index, entry, push)?;
    for part in open.parts(index) {
        part.into_iter().try_for_each(&mut *push)?;
    }
    Ok(true)
}
