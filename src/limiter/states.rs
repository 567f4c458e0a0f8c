//! A limiter's states as plain data: snapshots, and a store of records.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::Hash;

use super::Limiter;
use crate::number::check_time;
use crate::record::{MadeBy, check_version, load_states};
use crate::{Clock, Error, Record, Snapshot, Store};

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// All states as plain data, to be taken over by [`Limiter::restore`].
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
        let live = self.slots.slots().filter(|&slot| !self.slots.has_ended(slot, now));
        let keys = live.filter_map(|slot| Some((self.index.key(slot)?.clone(), self.slots.export(slot))));
        Ok(Snapshot::new(self.policies(), keys.collect()))
    }

    /// Takes over all states of a snapshot, or on an error none. Answers the names of the policies that
    /// start afresh, because in the snapshot they have another algorithm.
    ///
    /// Where numbers have changed since, a limit or rate applies to what is there, and a `scale` or `per`
    /// is converted, rounded against the client.
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
        let made_by = snapshot.made_by()?;
        let mut kept = hashbrown::HashSet::new();
        let mut afresh = Vec::new();
        for (key, states) in &snapshot.keys {
            let (ended, names) = self.read(&made_by, states, now)?;
            if !ended {
                kept.insert(key);
            }
            for name in names {
                if !afresh.contains(&name) {
                    afresh.push(name);
                }
            }
        }
        if !self.slots.has_room_for(self.new_keys(&kept)) {
            self.clean()?;
        }
        if !self.slots.has_room_for(self.new_keys(&kept)) {
            return Err(self.slots.full());
        }
        for (key, states) in &snapshot.keys {
            let (ended, _) = self.read(&made_by, states, now)?;
            self.put(key, ended, now)?;
        }
        Ok(afresh)
    }

    /// Reads one key's states. Also answers the names of the policies that start afresh.
    fn read(&mut self, made_by: &[MadeBy], states: &[Vec<i64>], now: u64) -> Result<(bool, Vec<String>), Error> {
        let policies = &self.policies;
        self.slots.read(now, |policy_states, entry| load_states(policies, policy_states, entry, made_by, states, now))
    }

    /// How many of the keys with states to keep have no slot yet.
    fn new_keys(&self, kept: &hashbrown::HashSet<&K>) -> usize {
        kept.iter().filter(|key| self.index.get(**key).is_none()).count()
    }

    /// Gives a key states that were read, or forgets it if they have ended.
    fn put<Q>(&mut self, key: &Q, ended: bool, now: u64) -> Result<(), Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if ended {
            self.reset(key);
            return Ok(());
        }
        self.slots.import(self.index.get(key), now).map_err(|_| self.slots.full())?;
        self.settle(key);
        Ok(())
    }
}

impl<C: Clock> Store for Limiter<String, C> {
    type Error = Error;

    fn load(&mut self, key: &str) -> Result<Option<Record>, Error> {
        let now = check_time(self.clock.now())?;
        let slot = self.index.get(key).filter(|&slot| !self.slots.has_ended(slot, now));
        Ok(slot.map(|slot| Record::new(self.policies(), self.slots.export(slot))))
    }

    fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), Error> {
        let Some(record) = record else {
            self.reset(key);
            return Ok(());
        };
        let now = check_time(self.clock.now())?;
        check_version(record.version)?;
        let (ended, _) = self.read(&record.policies, &record.states, now)?;
        self.put(key, ended, now)
    }
}
