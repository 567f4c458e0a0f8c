//! A limiter in memory: key → slot → algorithm → decision.

mod by_policy;
mod cleaning;
mod exceptions;
mod reserving;
mod snapshots;

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;

use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, collect};
use crate::key::shapes::Names;
use crate::memory::index::Index;
use crate::memory::slots::Slots;
use crate::number::{MAX, check_cost, check_time};
use crate::policy::costs::PositionCosts;
use crate::policy::mismatch;
use crate::store::ledger::check_reachable;
use crate::{Clock, Costs, Decision, Error, IntoPolicies, Options, Policies};
use cleaning::BeforeClean;

pub use cleaning::Cleaned;

/// A rate limiter in memory, over keys of any type that can be hashed.
///
/// It is synchronous and starts no timer: it is cleaned a few keys at a time, as it is used.
///
/// When memory runs out, an operation returns an error of the code `out_of_memory` and changes no state; the limiter
/// stays usable. Only the clone of a new key is up to the key type: that of a `String` aborts the process.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let clock = ManualClock::new(1_767_225_600_000);
/// let mut limiter = Limiter::<String, _>::new(Policy::sliding_window(2, "1m")?, &clock)?;
///
/// assert!(limiter.hit("login:42", 1)?.allowed);
/// clock.advance(10_000);
/// assert!(limiter.hit("login:42", 1)?.allowed);
///
/// // A denied hit does not count, unless the policy says `Denied::Count`: wait for the first of two to end.
/// let denied = limiter.hit("login:42", 1)?;
/// assert_eq!((denied.allowed, denied.retry_after), (false, Some(50_000)));
/// # Ok(())
/// # }
/// ```
pub struct Limiter<K, C> {
    policies: Policies,
    /// The names of shapes.
    names: Names,
    slots: Slots,
    index: Index<K>,
    clock: C,
    before_clean: Option<BeforeClean<K>>,
}

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Returns a limiter with one policy or several, for up to a million keys.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut by_number = Limiter::<u64, _>::new(Policy::leaky_bucket(5, 1, "1s")?, ManualClock::new(0))?;
    /// assert!(by_number.hit(&42, 5)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(policies: impl IntoPolicies, clock: C) -> Result<Self, Error> {
        Self::with_options(policies, clock, Options::default())
    }

    /// Returns a limiter with other [`Options`].
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, OnFull, Options, Policy, Reason};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let options = Options::new().max_keys(1)?.on_full(OnFull::Deny);
    /// let mut limiter = Limiter::<u64, _>::with_options(Policy::fix_window(9, "1s")?, ManualClock::new(0), options)?;
    /// limiter.hit(&1, 1)?;
    /// assert_eq!(limiter.hit(&2, 1)?.reason, Some(Reason::Full));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_options(policies: impl IntoPolicies, clock: C, options: Options) -> Result<Self, Error> {
        let policies = policies.into_policies()?;
        check_reachable(&policies, false)?;
        let slots = Slots::new(policies.algorithms(), policies.denied(), options)?;
        let names = Names::new(policies.clone());
        Ok(Self { policies, names, slots, index: Index::new(), clock, before_clean: None })
    }

    /// Decides whether the key may act now, and charges the cost if it fits.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// assert!(limiter.hit("user:42", 2)?.allowed);
    /// assert_eq!(limiter.hit("user:42", 1)?.retry_after, Some(1_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hit<Q>(&mut self, key: &Q, cost: u64) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        self.check_hit()?;
        self.hit_by(key, None, &PositionCosts::All(check_cost(cost)?), now)
    }

    /// The same with a cost for each policy.
    ///
    /// ```
    /// # use tollgate::{Costs, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(60, "1m")?.named("rpm")?, Policy::fix_window(9_000, "1m")?.named("tpm")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// assert!(limiter.hit_costs("user:42", Costs::ByPolicy(&[("rpm", 1), ("tpm", 1_500)]))?.allowed);
    /// assert!(limiter.hit_costs("user:42", Costs::ByPolicy(&[("tokens", 1_500)])).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn hit_costs<Q>(&mut self, key: &Q, costs: Costs<'_>) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        self.check_hit()?;
        self.hit_by(key, None, &costs.at_positions(&self.policies, 1)?, now)
    }

    /// The same with other numbers, for this call only: the same algorithms and `scale`s, but another limit, capacity or
    /// rate, which may be higher or lower than the limiter's own.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policies, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1m")?, ManualClock::new(0))?;
    /// let paying = Policies::from(Policy::fix_window(100, "1m")?);
    /// limiter.hit("user:42", 1)?;
    /// assert!(limiter.hit_with("user:42", 1, &paying)?.allowed);
    /// assert!(!limiter.hit("user:42", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hit_with<Q>(&mut self, key: &Q, cost: u64, policies: &Policies) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        self.check_hit()?;
        let costs = PositionCosts::All(check_cost(cost)?);
        let call = self.adjusted(policies)?;
        self.hit_by(key, Some(&call), &costs, now)
    }

    /// Returns what a hit would return. Changes no state.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<u32, _>::new(Policy::fix_window(1, "1m")?, ManualClock::new(0))?;
    /// assert_eq!(limiter.peek(&42, 1)?, limiter.peek(&42, 1)?);
    /// assert_eq!(limiter.peek(&42, 1)?, limiter.hit(&42, 1)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn peek<Q>(&self, key: &Q, cost: u64) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        Ok(self.slots.peek(self.index.get(key), None, &PositionCosts::All(check_cost(cost)?), now)?)
    }

    /// Returns what a hit with a cost for each policy would return. Changes no state.
    ///
    /// ```
    /// # use tollgate::{Costs, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let limiter = Limiter::<u32, _>::new(Policy::fix_window(1, "1m")?.named("rpm")?, ManualClock::new(0))?;
    /// assert!(!limiter.peek_costs(&42, Costs::ByPolicy(&[("rpm", 2)]))?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn peek_costs<Q>(&self, key: &Q, costs: Costs<'_>) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let costs = costs.at_positions(&self.policies, 1)?;
        Ok(self.slots.peek(self.index.get(key), None, &costs, now)?)
    }

    /// Charges a cost whether it fits or not, and returns the count. A negative cost gives back, at most what is used;
    /// a window does not restart.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// // Only failures count: peek, then inc.
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(3, "1m")?, ManualClock::new(0))?;
    /// assert!(limiter.peek("login:42", 1)?.allowed);
    /// assert_eq!(limiter.inc("login:42", 1)?, 1);
    /// assert_eq!(limiter.inc("login:42", -1)?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inc<Q>(&mut self, key: &Q, cost: i64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.inc_policy(key, cost, None)
    }

    /// Sets the key's count, as if `count` had just been used, or its tokens. Returns the count.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::token_bucket(10, 1, "1s")?, ManualClock::new(0))?;
    /// assert_eq!(limiter.set("login:42", 3)?, 3);
    /// assert!(limiter.set("login:42", 11).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set<Q>(&mut self, key: &Q, count: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.set_policy(key, count, None)
    }

    /// Returns the key's count.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let limiter = Limiter::<String, _>::new(Policy::token_bucket(10, 1, "1s")?, ManualClock::new(0))?;
    /// assert_eq!(limiter.get("nobody")?, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get<Q>(&self, key: &Q) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get_policy(key, None)
    }

    /// Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1m")?, ManualClock::new(5_000))?;
    /// assert_eq!(limiter.expires_at("login:42")?, 0);
    /// limiter.hit("login:42", 1)?;
    /// assert_eq!(limiter.expires_at("login:42")?, 60_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_at<Q>(&self, key: &Q) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.expires_at_policy(key, None)
    }

    /// Removes the key's states. Returns whether there were any. Reservations stay open, and an exception stays.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1m")?, ManualClock::new(0))?;
    /// limiter.hit("login:42", 9)?;
    /// assert!(limiter.reset("login:42")?);
    /// assert_eq!(limiter.get("login:42")?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset<Q>(&mut self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let is_left = self.change_slot(key, now, |slots, slot| slots.reset(slot, false, now))?;
        Ok(is_left == Some(true) || self.remove(key))
    }

    /// Removes the key with its open reservations. Returns whether it was there. An exception stays.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1m")?, ManualClock::new(0))?;
    /// let reservation = limiter.reserve("login:42", Reserve::new(1))?.reservation;
    /// assert!(reservation.is_some() && limiter.reset_all("login:42"));
    /// assert_eq!(limiter.get("login:42")?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_all<Q>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.clock.now().min(MAX);
        // Without reservations to charge, it cannot run out of memory.
        let is_left = self.change_slot(key, now, |slots, slot| slots.reset(slot, true, now));
        is_left == Ok(Some(true)) || self.remove(key)
    }

    /// Removes the key with all that it has. Returns whether it was there.
    fn remove<Q>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(slot) = self.index.get(key) else { return false };
        self.slots.release(slot);
        self.index.remove(slot).is_some()
    }

    /// Returns the number of keys, including expired ones that have not been cleaned yet.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// limiter.hit("user:42", 1)?;
    /// assert_eq!(limiter.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> u32 {
        self.slots.len()
    }

    /// Returns whether there are no keys.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// limiter.peek("user:42", 1)?;
    /// assert!(limiter.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many live keys were evicted because the limiter was full.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Options, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let (policy, options) = (Policy::fix_window(9, "1m")?, Options::new().max_keys(1)?);
    /// let mut limiter = Limiter::<u32, _>::with_options(policy, ManualClock::new(0), options)?;
    /// limiter.hit(&1, 1)?;
    /// limiter.hit(&2, 1)?;
    /// assert_eq!((limiter.len(), limiter.evicted()), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn evicted(&self) -> u64 {
        self.slots.evicted()
    }

    /// Returns the policies.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// assert_eq!(limiter.policies().name(0), "fix_window");
    /// # Ok(())
    /// # }
    /// ```
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Checks that no policy counts reservations alone.
    #[inline]
    fn check_hit(&self) -> Result<(), Error> {
        self.slots.policy_states().check_hit().map_err(|rejected| rejected.error(&self.policies, "hit"))
    }

    /// Returns the algorithms of one call.
    fn adjusted(&self, policies: &Policies) -> Result<Vec<AnyAlgorithm>, Error> {
        let mut call = collect(policies.iter().map(|policy| policy.algorithm))?;
        if self.slots.adjust(&mut call) {
            return Ok(call);
        }
        Err(Error::PolicyMismatch(mismatch(self.slots.policy_states().algorithms(), &call)))
    }

    #[inline]
    fn hit_by<Q>(
        &mut self,
        key: &Q,
        algorithms: Option<&[AnyAlgorithm]>,
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(slot) = self.index.get(key) {
            // Swept before the hit, so that the decision is returned without a copy.
            self.slots.sweep(slot, now);
            if !self.slots.freed.is_empty() {
                self.forget();
            }
            return self.slots.hit_slot(slot, algorithms, costs, now);
        }
        self.change_at(key, None, now, |slots| slots.hit(None, algorithms, costs, now))
    }

    /// Runs an operation that may change a key, and takes over the moves, also if it failed. The key may be given a slot.
    #[inline]
    fn change<Q, T, E: From<OutOfMemory>>(
        &mut self,
        key: &Q,
        now: u64,
        work: impl FnOnce(&mut Slots, Option<u32>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let slot = self.index.get(key);
        self.change_at(key, slot, now, |slots| work(slots, slot))
    }

    /// The same for a key whose slot is known.
    #[inline]
    fn change_at<Q, T, E: From<OutOfMemory>>(
        &mut self,
        key: &Q,
        slot: Option<u32>,
        now: u64,
        work: impl FnOnce(&mut Slots) -> Result<T, E>,
    ) -> Result<T, E>
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        if slot.is_none() {
            self.index.reserve(self.slots.slots_with_one_more())?;
        }
        let result = self.slots.operate(slot, now, work);
        self.take_moves(key);
        result
    }

    /// The same for an operation that gives the key no slot; `None` if it has none.
    fn change_slot<Q, T, E>(
        &mut self,
        key: &Q,
        now: u64,
        work: impl FnOnce(&mut Slots, u32) -> Result<T, E>,
    ) -> Result<Option<T>, E>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(slot) = self.index.get(key) else { return Ok(None) };
        let result = self.slots.operate(Some(slot), now, |slots| work(slots, slot));
        if !self.slots.freed.is_empty() {
            self.forget();
        }
        result.map(Some)
    }

    /// Removes the keys of freed slots, and only then assigns the key of this operation its slot. The index must have
    /// room for it.
    #[inline]
    fn take_moves<Q: ToOwned<Owned = K> + ?Sized>(&mut self, key: &Q) {
        let has_freed = !self.slots.freed.is_empty();
        if has_freed {
            self.remove_freed();
        }
        if let Some(slot) = self.slots.taken.take() {
            self.index.insert(key.to_owned(), slot);
        }
        if has_freed {
            self.report_removed();
        }
    }
}

impl<K, C> fmt::Debug for Limiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("policies", &self.policies)
            .field("len", &self.slots.len())
            .finish_non_exhaustive()
    }
}
