//! Operations on one policy of a limiter, by its name where there are several.

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::hash::Hash;

use super::Limiter;
use crate::algorithm::Act;
use crate::number::{check_count, check_time};
use crate::store::ledger::check_ban;
use crate::{Clock, Error, Span};

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// The same as [`Limiter::inc`] for one of several policies, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?.named("burst")?, Policy::fix_window(1000, "1d")?.named("daily")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// limiter.inc_policy("user:42", 3, Some("daily"))?;
    /// assert_eq!(limiter.get_policy("user:42", Some("burst"))?, 0);
    /// assert!(limiter.inc_policy("user:42", 3, None).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn inc_policy<Q>(&mut self, key: &Q, cost: i64, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.position(policy)?;
        self.check_countable(position, "inc")?;
        let act = Act::inc(cost)?;
        if cost == 0 {
            return Ok(self.slots.get(self.index.get(key), position, now)?);
        }
        self.change_count(key, position, act, now)
    }

    /// The same as [`Limiter::set`] for one of several policies, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?.named("burst")?, Policy::fix_window(1000, "1d")?.named("daily")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// limiter.set_policy("user:42", 1000, Some("daily"))?;
    /// assert!(!limiter.hit("user:42", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_policy<Q>(&mut self, key: &Q, count: u64, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.position(policy)?;
        self.check_countable(position, "set")?;
        check_count(count, self.slots.most_to_set(self.index.get(key), position, now))?;
        self.change_count(key, position, Act::Set(count), now)
    }

    /// The same as [`Limiter::get`] for one of several policies, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?.named("burst")?, Policy::fix_window(1000, "1d")?.named("daily")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// limiter.hit("user:42", 2)?;
    /// assert_eq!(limiter.get_policy("user:42", Some("daily"))?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_policy<Q>(&self, key: &Q, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.position(policy)?;
        Ok(self.slots.get(self.index.get(key), position, now)?)
    }

    /// The same as [`Limiter::expires_at`] for one of several policies, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?.named("burst")?, Policy::fix_window(1000, "1d")?.named("daily")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// limiter.hit("user:42", 1)?;
    /// assert_eq!(limiter.expires_at_policy("user:42", Some("daily"))?, 86_400_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_at_policy<Q>(&self, key: &Q, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.position(policy)?;
        Ok(self.slots.expires_at(self.index.get(key), position, now)?)
    }

    /// Bans a key for `length` from now, or changes the end of the ban that holds. Returns the end, in milliseconds since
    /// the epoch. A ban by hand does not make the next one longer.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?, Policy::ban(5, "10m", "1h")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// assert_eq!(limiter.ban("token:42", "1d")?, 86_400_000);
    /// assert!(!limiter.hit("token:42", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// No policy is a ban, or several are: [`Limiter::ban_policy`] names one.
    pub fn ban<Q>(&mut self, key: &Q, length: impl Into<Span>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.ban_policy(key, length, None)
    }

    /// The same for one of several bans, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let bans = [Policy::ban(5, "10m", "1h")?.named("short")?, Policy::ban(50, "1d", "1w")?.named("long")?];
    /// let mut limiter = Limiter::<String, _>::new(bans, ManualClock::new(0))?;
    /// assert_eq!(limiter.ban_policy("token:42", "1d", Some("long"))?, 86_400_000);
    /// assert!(limiter.ban("token:42", "1d").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ban_policy<Q>(&mut self, key: &Q, length: impl Into<Span>, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.ban_position(policy)?;
        self.hold(key, position, Some(check_ban(length.into())?), now)
    }

    /// Lifts the ban of a key and forgets its past ones. Returns whether one held.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(10, "1s")?, Policy::ban(5, "10m", "1h")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// limiter.ban("token:42", "1d")?;
    /// assert!(limiter.unban("token:42")?);
    /// assert!(limiter.hit("token:42", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unban<Q>(&mut self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.unban_policy(key, None)
    }

    /// The same for one of several bans, by its name.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::ban(5, "10m", "1h")?.named("login")?, ManualClock::new(0))?;
    /// assert!(!limiter.unban_policy("token:42", Some("login"))?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unban_policy<Q>(&mut self, key: &Q, policy: Option<&str>) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let position = self.policies.ban_position(policy)?;
        Ok(self.hold(key, position, None, now)? > 0)
    }

    fn hold<Q>(&mut self, key: &Q, position: usize, length: Option<u64>, now: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let until = self.change(key, now, |slots, slot| slots.hold(slot, position, length, now));
        until.map_err(|error| self.slots.error(error))
    }

    /// Checks that the policy at a position counts more than reservations.
    fn check_countable(&self, position: usize, operation: &'static str) -> Result<(), Error> {
        let checked = self.slots.policy_states().check_countable(position);
        checked.map_err(|rejected| rejected.error(&self.policies, operation))
    }

    fn change_count<Q>(&mut self, key: &Q, position: usize, act: Act, now: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let count = self.change(key, now, |slots, slot| slots.change(slot, position, act, now));
        count.map_err(|error| self.slots.error(error))
    }
}
