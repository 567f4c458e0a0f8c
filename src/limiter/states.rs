//! A limiter's states as plain data: snapshots, and a store of records.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::Hash;

use hashbrown::HashSet;

use super::Limiter;
use crate::key_states::Batch;
use crate::memory::{OutOfMemory, push};
use crate::number::check_time;
use crate::record::{Afresh, Origin, check_version};
use crate::store::slots::SlotError;
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
        let (mut keys, mut earlier, mut reservations) = (Vec::new(), Vec::new(), Vec::new());
        for slot in self.slots.slots().filter(|&slot| !self.slots.has_ended(slot, now)) {
            if let Some(key) = self.index.key(slot) {
                let number = [keys.len() as i64];
                for row in self.slots.export_earlier(slot, &number, now)? {
                    push(&mut earlier, row)?;
                }
                for row in self.slots.export_open(slot, &number)? {
                    push(&mut reservations, row)?;
                }
                push(&mut keys, (key.clone(), self.slots.export(slot)?))?;
            }
        }
        Ok(Snapshot::new(self.policies(), keys, earlier, reservations))
    }

    /// Takes over all states of a snapshot, or none on an error. Returns the names of the policies that
    /// start afresh because they have another algorithm in the snapshot.
    ///
    /// A changed limit or rate applies to the states as they are. For a changed `scale` or `per` they are
    /// converted, rounded against the client.
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
        let policies = snapshot.policies()?;
        let origins = Origin::all(&policies)?;
        let mut staged =
            Staged { keys: Vec::new(), states: Batch::default(), live: HashSet::new(), afresh: Afresh::default() };
        let (mut earlier, mut open) = (snapshot.earlier.as_slice(), snapshot.reservations.as_slice());
        for (number, (key, states)) in snapshot.keys.iter().enumerate() {
            let (earlier, open) = (rows_of(number, &mut earlier), rows_of(number, &mut open));
            let (ended, afresh) = self.slots.stage(&self.policies, &origins, states, earlier, open, now)?;
            staged.afresh.add_all(afresh);
            push(&mut staged.keys, (key, !ended))?;
            if !ended {
                self.slots.unstage(&mut staged.states)?;
                staged.live.try_reserve(1).map_err(OutOfMemory::from)?;
                staged.live.insert(key);
            }
        }
        if !earlier.is_empty() || !open.is_empty() {
            return Err(Error::state("its earlier states or reservations are not in the order of its keys"));
        }
        Ok(staged)
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
                self.reset_all(key);
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
            let (states, earlier) = (self.slots.export(slot)?, self.slots.export_earlier(slot, &[], now)?);
            Ok(Record::new(self.policies(), states, earlier, self.slots.export_open(slot, &[])?))
        };
        slot.map(record).transpose()
    }

    fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), Error> {
        let Some(record) = record else {
            self.reset_all(key);
            return Ok(());
        };
        let now = check_time(self.clock.now())?;
        check_version(record.version)?;
        let (earlier, open) = (record.earlier.iter().map(Vec::as_slice), record.reservations.iter().map(Vec::as_slice));
        let (ended, _) = self.slots.stage(&self.policies, &record.origins()?, &record.states, earlier, open, now)?;
        if ended {
            self.reset_all(key);
            return Ok(());
        }
        self.index.reserve(self.slots.slots_with_one_more())?;
        self.put(key, now)
    }
}
