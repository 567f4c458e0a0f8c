//! A limiter's states as plain data: snapshots, and a store of records.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::Hash;

use hashbrown::HashSet;

use super::Limiter;
use crate::error::wording;
use crate::growth::{OutOfMemory, collect, push};
use crate::key::open_reservations::OpenRow;
use crate::key::shapes::{Afresh, Shape, Shaped};
use crate::key::states::Batch;
use crate::memory::slots::SlotError;
use crate::number::check_time;
use crate::store::record::StoredState;
use crate::{Clock, Error, Record, Snapshot, Store};

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Returns all states as plain data, for [`Limiter::restore`].
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// limiter.hit("user:42", 1)?;
    /// assert_eq!(limiter.snapshot()?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot<K>, Error>
    where
        K: Clone,
    {
        let now = check_time(self.clock.now())?;
        let mut snapshot = Snapshot::new(self.policies());
        for name in self.names.others() {
            push(&mut snapshot.names, name.into())?;
        }
        for slot in self.slots.slots().filter(|&slot| !self.slots.has_ended(slot, now)) {
            if let Some(key) = self.index.key(slot) {
                self.add_to(&mut snapshot, key.clone(), self.slots.export(slot)?)?;
            }
        }
        Ok(snapshot)
    }

    /// Adds a key with its states to a snapshot.
    fn add_to(&self, snapshot: &mut Snapshot<K>, key: K, states: Vec<Shaped<Vec<i64>>>) -> Result<(), OutOfMemory> {
        let number = snapshot.keys.len() as i64;
        let mut own = Vec::new();
        for (position, Shaped { shape, numbers, open }) in states.into_iter().enumerate() {
            if position >= self.policies.len() {
                let Shape { name, algorithm, scale } = shape;
                let head = [number, name as i64, algorithm as i64, scale.number(), numbers.len() as i64];
                let row = head.into_iter().chain(numbers).chain(open.into_iter().flatten());
                push(&mut snapshot.former, collect(row)?)?;
                continue;
            }
            for part in open {
                push(&mut snapshot.open, collect([number, position as i64].into_iter().chain(part))?)?;
            }
            push(&mut own, numbers)?;
        }
        push(&mut snapshot.keys, (key, own))
    }

    /// Takes over all states of a snapshot, or none on an error. Returns the names of the policies that start unused
    /// because they have another algorithm, `scale` or `per` in the snapshot.
    ///
    /// A changed limit, capacity or rate applies to the states as they are. States of other shapes are kept until their
    /// ends, and are in the next snapshot.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock, Policy, Snapshot};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1m")?, ManualClock::new(0))?;
    /// limiter.hit("login:42", 4)?;
    /// let json = serde_json::to_string(&limiter.snapshot()?)?;
    ///
    /// let snapshot: Snapshot<String> = serde_json::from_str(&json)?;
    /// let mut again = Limiter::new(snapshot.policies()?, ManualClock::new(1_000))?;
    /// again.restore(&snapshot)?;
    /// assert_eq!(again.get("login:42")?, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn restore(&mut self, snapshot: &Snapshot<K>) -> Result<Vec<String>, Error>
    where
        K: Clone,
    {
        let now = check_time(self.clock.now())?;
        let staged = self.stage_all(snapshot, now)?;
        if !self.slots.has_room_for(self.new_keys(&staged.live)) {
            self.clean()?;
        }
        let new_keys = self.new_keys(&staged.live);
        if !self.slots.has_room_for(new_keys) {
            return Err(self.slots.error(SlotError::Full));
        }
        let names = staged.afresh.names(&self.policies)?;
        let slots = self.slots.reserve(new_keys, staged.states.with_extras)?;
        self.index.reserve_many(new_keys, slots)?;
        // From here on nothing can fail.
        self.put_all(staged, now)?;
        Ok(names)
    }

    /// Reads all states of a snapshot without changing any.
    fn stage_all<'a>(&mut self, snapshot: &'a Snapshot<K>, now: u64) -> Result<Staged<'a, K>, Error> {
        let shapes = self.shapes_of(snapshot)?;
        let mut staged =
            Staged { keys: Vec::new(), states: Batch::default(), live: HashSet::new(), afresh: Afresh::default() };
        let (mut open, mut former) = (snapshot.open.as_slice(), snapshot.former.as_slice());
        for (number, (key, states)) in snapshot.keys.iter().enumerate() {
            let (open, former) = (rows_of(number, &mut open), rows_of(number, &mut former));
            let names = &self.names;
            let staging = self.slots.stage(now, |policy_states, key| {
                if states.len() != shapes.own.len() {
                    return Err(Error::state(wording::STATES_DIFFER));
                }
                let mut load =
                    |shaped: &Shaped<&[i64]>| key.load(policy_states, shaped).map_err(|error| error.into_error(names));
                for (position, (shape, numbers)) in shapes.own.iter().zip(states).enumerate() {
                    let open = parts_of(position, open.clone())?;
                    load(&Shaped { shape: *shape, numbers, open })?;
                }
                for row in former {
                    let parsed = Shaped::parse(row)?.ok_or_else(|| Error::state(wording::RESERVATION_NUMBERS))?;
                    load(&Shaped { shape: shapes.renamed(parsed.shape)?, ..parsed })?;
                }
                Ok(key.loaded(policy_states, now))
            });
            let (ended, afresh) = staging?;
            staged.afresh.add_all(afresh);
            push(&mut staged.keys, (key, !ended))?;
            if !ended {
                self.slots.unstage(&mut staged.states)?;
                staged.live.try_reserve(1).map_err(OutOfMemory::from)?;
                staged.live.insert(key);
            }
        }
        if !open.is_empty() || !former.is_empty() {
            return Err(Error::state("its reservations or former states are not in the order of its keys"));
        }
        Ok(staged)
    }

    /// Returns the shapes of a snapshot's policies, and the numbers of its names here.
    fn shapes_of(&mut self, snapshot: &Snapshot<K>) -> Result<SnapshotShapes, Error> {
        let policies = snapshot.policies()?;
        let (mut own, mut names) = (Vec::new(), Vec::new());
        for (name, policy) in policies.names().zip(policies.iter()) {
            let name = self.names.number(name)?;
            push(&mut names, name)?;
            push(&mut own, Shape::of(name, &policy.algorithm))?;
        }
        for name in &snapshot.names {
            push(&mut names, self.names.number(name)?)?;
        }
        Ok(SnapshotShapes { own, names })
    }

    /// Takes over staged states. There must be room for them.
    fn put_all(&mut self, mut staged: Staged<'_, K>, now: u64) -> Result<(), Error>
    where
        K: Clone,
    {
        let mut index = 0;
        for (key, is_live) in staged.keys {
            if is_live {
                self.slots.restage(&mut staged.states, index);
                self.put(key, now)?;
                index += 1;
            } else {
                self.remove(key);
            }
        }
        Ok(())
    }

    /// Returns how many of the keys have no slot.
    fn new_keys(&self, live: &HashSet<&K>) -> usize {
        live.iter().filter(|key| self.index.get(**key).is_none()).count()
    }

    /// Moves the staged states into a key's slot. The index must have room for it.
    fn put<Q>(&mut self, key: &Q, now: u64) -> Result<(), Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.slots.import(self.index.get(key), now).map_err(|error| self.slots.error(error))?;
        self.take_moves(key);
        Ok(())
    }
}

/// Takes the rows of a key, by its number, from the front of the rows that are left.
fn rows_of<'a>(number: usize, rest: &mut &'a [Vec<i64>]) -> impl Iterator<Item = &'a [i64]> + Clone {
    let is_own = |row: &&Vec<i64>| row.first() == Some(&(number as i64));
    let (own, after) = rest.split_at(rest.iter().take_while(is_own).count());
    *rest = after;
    own.iter().map(|row| row.get(1..).unwrap_or_default())
}

/// Returns the parts of reservations under the policy at a position.
fn parts_of<'a>(position: usize, rows: impl Iterator<Item = &'a [i64]>) -> Result<Vec<OpenRow>, Error> {
    let mut parts = Vec::new();
    for row in rows {
        let Some((&at, part)) = row.split_first() else { return Err(Error::state(wording::RESERVATION_NUMBERS)) };
        if at == position as i64 {
            let part = part.try_into().map_err(|_| Error::state(wording::RESERVATION_NUMBERS))?;
            push(&mut parts, part)?;
        }
    }
    Ok(parts)
}

/// The shapes of a snapshot.
struct SnapshotShapes {
    own: Vec<Shape>,
    /// The numbers of its names here.
    names: Vec<usize>,
}

impl SnapshotShapes {
    /// Returns a shape with the number of its name here.
    fn renamed(&self, shape: Shape) -> Result<Shape, Error> {
        let name = self.names.get(shape.name).copied();
        name.map(|name| Shape { name, ..shape }).ok_or_else(|| Error::state("a former state has no name"))
    }
}

/// The states read from a snapshot.
struct Staged<'a, K> {
    /// All keys, and whether their states are live.
    keys: Vec<(&'a K, bool)>,
    /// The states of the live ones.
    states: Batch,
    live: HashSet<&'a K>,
    afresh: Afresh,
}

impl<C: Clock> Store for Limiter<String, C> {
    type Error = Error;

    fn load(&mut self, key: &str) -> Result<Option<Record>, Error> {
        let now = check_time(self.clock.now())?;
        let slot = self.index.get(key).filter(|&slot| !self.slots.has_ended(slot, now));
        let record = |slot| {
            let states = self.slots.export(slot)?.into_iter();
            Ok(Record::new(states.map(|shaped| StoredState::new(shaped, &self.names)).collect()))
        };
        slot.map(record).transpose()
    }

    fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), Error> {
        let Some(record) = record else {
            self.remove(key);
            return Ok(());
        };
        let now = check_time(self.clock.now())?;
        let names = &mut self.names;
        let (ended, _) = self.slots.stage(now, |policy_states, key| record.load(names, policy_states, key, now))?;
        if ended {
            self.remove(key);
            return Ok(());
        }
        self.index.reserve(self.slots.slots_with_one_more())?;
        self.put(key, now)
    }
}
