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
use crate::key::rows::{Row, RowRef};
use crate::key::shapes::Shape;
use crate::key::states::Batch;
use crate::memory::slots::SlotError;
use crate::number::check_time;
use crate::store::record::{StoredRow, names_at};
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
                let mut rows = self.slots.rows(slot)?;
                rows.retain(|row| row.is_live(now));
                push(&mut snapshot.keys, (key.clone(), collect(rows.into_iter().map(Row::into_numbers))?))?;
            }
        }
        Ok(snapshot)
    }

    /// Takes over all states of a snapshot, or none on an error. Returns the names of the policies that start unused
    /// because they have another algorithm, `scale` or `per` in the snapshot.
    ///
    /// A changed limit, capacity or rate applies to the states as they are. Rows of other shapes are kept until their
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
        let names = names_at(staged.afresh, &self.policies)?;
        let slots = self.slots.reserve(new_keys, staged.states.with_extras)?;
        self.index.reserve_many(new_keys, slots)?;
        // From here on nothing can fail.
        self.put_all(staged, now)?;
        Ok(names)
    }

    /// Reads all rows of a snapshot without changing any.
    fn stage_all<'a>(&mut self, snapshot: &'a Snapshot<K>, now: u64) -> Result<Staged<'a, K>, Error> {
        let numbers = self.names_of(snapshot)?;
        let mut staged = Staged { keys: Vec::new(), states: Batch::default(), live: HashSet::new(), afresh: 0 };
        for (key, rows) in &snapshot.keys {
            let names = &self.names;
            let staging = self.slots.stage(now, |policy_states, key| {
                for numbers_of_row in rows {
                    let row = RowRef::parse(numbers_of_row).ok_or_else(|| Error::state(wording::ROW_NUMBERS))?;
                    let name = numbers.get(row.shape.name).ok_or_else(|| Error::state(wording::ROW_NUMBERS))?;
                    let row = RowRef { shape: Shape { name: *name, ..row.shape }, ..row };
                    key.load(policy_states, row).map_err(|error| error.into_error(names))?;
                }
                key.loaded(policy_states, now);
                Ok::<_, Error>(key.afresh(policy_states, now))
            });
            let (ended, afresh) = staging?;
            staged.afresh |= afresh;
            push(&mut staged.keys, (key, !ended))?;
            if !ended {
                self.slots.unstage(&mut staged.states)?;
                staged.live.try_reserve(1).map_err(OutOfMemory::from)?;
                staged.live.insert(key);
            }
        }
        Ok(staged)
    }

    /// Returns the numbers that the names of a snapshot have here: those of its policies, then the others.
    fn names_of(&mut self, snapshot: &Snapshot<K>) -> Result<Vec<usize>, Error> {
        let (policies, mut numbers) = (snapshot.policies()?, Vec::new());
        for name in policies.names().chain(snapshot.names.iter().map(|name| &name[..])) {
            push(&mut numbers, self.names.number(name)?)?;
        }
        Ok(numbers)
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
        self.change(key, now, |slots, slot| slots.import(slot, now)).map_err(|error| self.slots.error(error))
    }
}

/// The states read from a snapshot.
struct Staged<'a, K> {
    /// All keys, and whether their states are live.
    keys: Vec<(&'a K, bool)>,
    /// The states of the live ones.
    states: Batch,
    live: HashSet<&'a K>,
    /// The positions of the policies that start unused, as bits.
    afresh: u32,
}

impl<C: Clock> Store for Limiter<String, C> {
    type Error = Error;

    fn load(&mut self, key: &str) -> Result<Option<Record>, Error> {
        let now = check_time(self.clock.now())?;
        let slot = self.index.get(key).filter(|&slot| !self.slots.has_ended(slot, now));
        let record = |slot| {
            let rows = self.slots.rows(slot)?;
            let live = rows.iter().filter(|row| row.is_live(now));
            Ok(Record::new(live.map(|row| StoredRow::new(row, &self.names)).collect()))
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
        self.put(key, now)
    }
}
