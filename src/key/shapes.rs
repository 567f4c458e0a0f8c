//! The shapes of a key's states, and the states of shapes that no policy has any more.
//!
//! A shape is the part of a policy that a state depends on: its name, its algorithm, and its `scale` or `per`. A policy
//! whose shape changes starts unused. The state of the former shape stays as it is until its own end, so that a gradual
//! deploy, a rollback or two versions side by side each find theirs.

use alloc::vec::Vec;

use crate::algorithm::Push;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, collect, copied, push};
use crate::key::open_reservations::{Bits, NONE_OPEN, OPEN_ROW, Open, OpenRow};
use crate::key::operate::{Extra, KeyMut};
use crate::key::policy_states::{Entry, PolicyStates};
use crate::key::states::KeyStates;
use crate::policy::costs::PositionCosts;
use crate::policy::scale::Scale;
use crate::{Denied, Policies};

/// The most former shapes that a key keeps. Past that, the one that ends first is dropped.
pub const MAX_FORMER: usize = 8;

/// A shape, with its name as a number: that of a policy is its position, others follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: usize,
    /// The algorithm's position in the schema.
    pub(crate) algorithm: usize,
    pub(crate) scale: Scale,
}

impl Shape {
    /// Returns the shape of the policy at a position.
    pub(crate) fn of(position: usize, algorithm: &AnyAlgorithm) -> Self {
        Self { name: position, algorithm: algorithm.position(), scale: algorithm.stored_scale() }
    }

    /// Parses a shape; `None` if the algorithm is unknown or the scale is not valid for it.
    pub(crate) fn parse(name: usize, algorithm: usize, scale: i64) -> Option<Self> {
        Some(Self { name, algorithm, scale: Scale::from_number(scale, algorithm)? })
    }

    pub(crate) fn algorithm(&self) -> Option<AnyAlgorithm> {
        AnyAlgorithm::of_shape(self.algorithm, self.scale)
    }
}

/// A state with its shape and the parts of reservations that are open under it, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shaped<Numbers> {
    pub(crate) shape: Shape,
    pub(crate) numbers: Numbers,
    pub(crate) open: Vec<OpenRow>,
}

impl<'a> Shaped<&'a [i64]> {
    /// Parses the numbers that [`flatten`] passed.
    pub(crate) fn parse(numbers: &'a [i64]) -> Result<Option<Self>, OutOfMemory> {
        let Some((shape, numbers, rows)) = split(numbers) else { return Ok(None) };
        let (rows, rest) = rows.as_chunks::<OPEN_ROW>();
        if !rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { shape, numbers, open: copied(rows)? }))
    }
}

/// Splits the numbers that [`flatten`] passed into the shape, the state and the parts of reservations.
pub(crate) fn split(numbers: &[i64]) -> Option<(Shape, &[i64], &[i64])> {
    let (&[name, algorithm, scale, count], rest) = numbers.split_first_chunk()?;
    let shape = Shape::parse(usize::try_from(name).ok()?, usize::try_from(algorithm).ok()?, scale)?;
    let (numbers, rows) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    Some((shape, numbers, rows))
}

/// The state of a shape that no policy has.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    shape: Shape,
    /// The algorithm of the shape.
    policy_states: PolicyStates,
    /// Its state, and the parts of reservations that are open under it.
    states: KeyStates,
}

impl Former {
    /// Reads a stored state; `None` if its numbers are invalid.
    fn read(shaped: &Shaped<&[i64]>) -> Result<Option<Self>, OutOfMemory> {
        let Some(algorithm) = shaped.shape.algorithm() else { return Ok(None) };
        let mut algorithms = Vec::new();
        push(&mut algorithms, algorithm)?;
        let policy_states = PolicyStates::new(algorithms, Denied::Free)?;
        let mut states = KeyStates::new(&policy_states)?;
        states.clear(&policy_states, 0);
        let mut valid = policy_states.import(0, states.entry_mut(), shaped.numbers)?;
        for row in &shaped.open {
            valid = valid && states.extra.open.import(0, row, 1)?;
        }
        let mut former = Self { shape: shaped.shape, policy_states, states };
        former.key(|key| key.refresh(0));
        Ok(valid.then_some(former))
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the state, to be stored.
    fn own(&self) -> Stored<'_> {
        let Self { shape, policy_states, states } = self;
        Stored { shape: *shape, policy_states, position: 0, entry: states.entry(), open: Some(&states.extra.open) }
    }

    /// Returns when the state and its reservations have ended; `now` or earlier if they have.
    pub(crate) fn ends_at(&self, now: u64) -> u64 {
        self.states.end_at(&self.policy_states, now)
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.states.extra.open.is_empty()
    }

    /// Returns whether the reservation with these bits is open under the shape.
    pub(crate) fn holds(&self, bits: Bits) -> bool {
        self.states.extra.open.find(bits).is_some()
    }

    /// Returns the bits and ends of the open reservations.
    pub(crate) fn open(&self) -> impl Iterator<Item = (Bits, u64)> {
        self.states.extra.open.all()
    }

    /// Removes the state. Returns whether a reservation is open.
    pub(crate) fn reset(&mut self, now: u64) -> Result<bool, OutOfMemory> {
        self.key(|key| key.reset_used(now))?;
        Ok(self.has_open())
    }

    /// Runs `work` on the state.
    pub(crate) fn key<T>(&mut self, work: impl FnOnce(&mut KeyMut<'_>) -> T) -> T {
        work(&mut self.states.key_mut(&self.policy_states, self.policy_states.algorithms()))
    }

    /// Returns the costs of a settlement under the shape, of those by the positions of the policies.
    pub(crate) fn used(&self, used: &PositionCosts) -> PositionCosts {
        PositionCosts::All(used.settled_at(self.shape.name))
    }
}

/// Drops the states that have ended, and of more than [`MAX_FORMER`] those that end first.
pub(crate) fn drop_former(former: &mut Vec<Former>, now: u64) {
    former.retain(|former| former.ends_at(now) > now);
    while former.len() > MAX_FORMER
        && let Some(first) = former.iter().map(|former| former.ends_at(now)).min()
    {
        let mut is_dropped = false;
        former.retain(|former| {
            is_dropped || {
                is_dropped = former.ends_at(now) == first;
                !is_dropped
            }
        });
    }
}

/// The positions of the policies that start unused, because the stored states of their names have other shapes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Afresh(u32);

impl Afresh {
    pub(crate) fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the positions as bits.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether the policy at `position` starts unused.
    pub(crate) fn contains(self, position: usize) -> bool {
        position < 32 && self.0 >> position & 1 == 1
    }
}

/// Why stored states cannot be loaded.
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
    /// Loads a stored state into the states of a key never used: under the policy that has its shape, or as that of a
    /// former shape. [`KeyStates::loaded`] must follow.
    pub(crate) fn load(&mut self, policy_states: &PolicyStates, shaped: &Shaped<&[i64]>) -> Result<(), LoadError> {
        let invalid = || LoadError::Invalid(shaped.shape);
        if shaped.shape.is_exception() {
            return if self.extra.exceptions.load(shaped)? { Ok(()) } else { Err(invalid()) };
        }
        let algorithms = policy_states.algorithms();
        let shape_algorithm = shaped.shape.algorithm().ok_or_else(invalid)?;
        match algorithms.get(shaped.shape.name).filter(|own| own.has_shape_of(&shape_algorithm)) {
            Some(_) => {
                let position = shaped.shape.name;
                if !policy_states.import(position, self.entry_mut(), shaped.numbers)? {
                    return Err(invalid());
                }
                for row in &shaped.open {
                    if !self.extra.open.import(position, row, algorithms.len())? {
                        return Err(invalid());
                    }
                }
            }
            None => push(&mut self.extra.former, Former::read(shaped)?.ok_or_else(invalid)?)?,
        }
        Ok(())
    }

    /// Completes the loading of states. Returns which policies start unused.
    pub(crate) fn loaded(&mut self, policy_states: &PolicyStates, now: u64) -> Afresh {
        self.key_mut(policy_states, policy_states.algorithms()).refresh(now);
        self.extra.exceptions.drop_ended(now);
        let mut afresh = Afresh::default();
        for (position, _) in policy_states.algorithms().iter().enumerate() {
            let is_former = self.extra.former.iter().any(|former| former.shape.name == position);
            if is_former && policy_states.expires_beside(position, self.entry(), &self.extra.open, now) == 0 {
                afresh.0 |= 1 << position;
            }
        }
        afresh
    }

    /// Returns all states as they are stored: those of the policies in order, those of former shapes, then the exception.
    pub(crate) fn shaped(&self, policy_states: &PolicyStates) -> Result<Vec<Shaped<Vec<i64>>>, OutOfMemory> {
        shaped(policy_states, self.entry(), Some(&self.extra))
    }
}

/// One of a key's states, to be stored.
struct Stored<'a> {
    shape: Shape,
    policy_states: &'a PolicyStates,
    position: usize,
    entry: Entry<'a>,
    open: Option<&'a Open>,
}

impl Stored<'_> {
    fn parts(&self) -> impl Iterator<Item = OpenRow> {
        self.open.unwrap_or(&NONE_OPEN).parts(self.position)
    }

    fn export(&self, push: Push<'_>) -> Result<(), OutOfMemory> {
        self.policy_states.export_one(self.position, self.entry, push)
    }

    fn shaped(&self) -> Result<Shaped<Vec<i64>>, OutOfMemory> {
        let mut numbers = Vec::new();
        self.export(&mut |number| push(&mut numbers, number))?;
        Ok(Shaped { shape: self.shape, numbers, open: collect(self.parts())? })
    }
}

/// Returns a key's state at an index: those of the policies in order, then those of former shapes.
fn stored<'a>(
    policy_states: &'a PolicyStates,
    entry: Entry<'a>,
    extra: Option<&'a Extra>,
    index: usize,
) -> Option<Stored<'a>> {
    let algorithms = policy_states.algorithms();
    if let Some(algorithm) = algorithms.get(index) {
        let (shape, open) = (Shape::of(index, algorithm), extra.map(|extra| &extra.open));
        return Some(Stored { shape, policy_states, position: index, entry, open });
    }
    Some(extra?.former.get(index - algorithms.len())?.own())
}

/// Returns the states of an entry and its extra as they are stored.
pub(crate) fn shaped(
    policy_states: &PolicyStates,
    entry: Entry<'_>,
    extra: Option<&Extra>,
) -> Result<Vec<Shaped<Vec<i64>>>, OutOfMemory> {
    let mut list = Vec::new();
    while let Some(stored) = stored(policy_states, entry, extra, list.len()) {
        push(&mut list, stored.shaped()?)?;
    }
    if let Some(extra) = extra {
        let states = list.len();
        while let Some(part) = extra.exceptions.shaped(list.len() - states)? {
            push(&mut list, part)?;
        }
    }
    Ok(list)
}

/// Passes the state at an index to `push` as plain numbers, without allocating: name, algorithm, scale, how many numbers
/// the state has, the state, and the parts of reservations. Returns false if there is no such state.
pub(crate) fn flatten(
    policy_states: &PolicyStates,
    entry: Entry<'_>,
    extra: Option<&Extra>,
    index: usize,
    push: Push<'_>,
) -> Result<bool, OutOfMemory> {
    let Some(stored) = stored(policy_states, entry, extra, index) else {
        let Some(extra) = extra else { return Ok(false) };
        return extra.exceptions.flatten(index - policy_states.algorithms().len() - extra.former.len(), push);
    };
    let Shape { name, algorithm, scale } = stored.shape;
    let mut count = 0;
    stored.export(&mut |_| {
        count += 1;
        Ok(())
    })?;
    [name as i64, algorithm as i64, scale.number(), count].into_iter().try_for_each(&mut *push)?;
    stored.export(push)?;
    for part in stored.parts() {
        for number in part {
            push(number)?;
        }
    }
    Ok(true)
}

/// The names of shapes: those of the policies by their positions, and others that stored states have.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    policies: Policies,
    others: Vec<alloc::string::String>,
}

impl Names {
    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies, others: Vec::new() }
    }

    /// Returns the number of a name.
    pub(crate) fn number(&mut self, name: &str) -> Result<usize, OutOfMemory> {
        let known = self.policies.names().chain(self.others.iter().map(|other| &other[..]));
        if let Some(number) = known.into_iter().position(|known| known == name) {
            return Ok(number);
        }
        let mut copy = alloc::string::String::new();
        copy.try_reserve_exact(name.len())?;
        copy.push_str(name);
        push(&mut self.others, copy)?;
        Ok(self.policies.len() + self.others.len() - 1)
    }

    /// Returns the names that no policy has, in the order of their numbers.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|name| &name[..])
    }

    /// Returns the name with a number; empty if there is none.
    pub(crate) fn name(&self, number: usize) -> &str {
        match number.checked_sub(self.policies.len()) {
            None => self.policies.name(number),
            Some(other) => self.others.get(other).map_or("", |name| name),
        }
    }
}
