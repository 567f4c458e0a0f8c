//! A limiter that threads share: shards, each a limiter behind a lock of its own.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use hashbrown::DefaultHashBuilder;

use crate::{
    Clock, Costs, Decision, Error, Exception, IntoPolicies, Limiter, Options, Policies, Reservation, ReservationId,
    Reserve, Reserving, Settlement, Span,
};

/// Shards for each thread that can run at once, so that two threads rarely want the same one.
const SHARDS_PER_THREAD: usize = 16;

/// A shard holds at least this many keys: the keys of fewer would not spread evenly.
const FEWEST_KEYS_OF_A_SHARD: u32 = 1_024;

/// A limiter in memory that threads share: the methods of [`Limiter`], by `&self`.
///
/// Keys are spread over shards, each a [`Limiter`] behind a lock of its own. A key always belongs to the same shard, so
/// each key is as exact as in a [`Limiter`]: no two threads decide about it at once.
///
/// Each shard holds an equal part of [`Options::max_keys`]. Keys do not spread quite evenly, so the first shard is full
/// shortly before the limiter is: set some per cent more than you need.
///
/// ```
/// use std::thread;
/// use tollgate::{ManualClock, Policy, SharedLimiter};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let clock = ManualClock::new(0);
/// let limiter = SharedLimiter::<String, _>::new(Policy::fix_window(100, "1m")?, &clock)?;
/// let allowed = || (0..80).filter(|_| limiter.hit("user:42", 1).is_ok_and(|decision| decision.allowed)).count();
/// let both = thread::scope(|scope| {
///     let other = scope.spawn(allowed);
///     allowed() + other.join().unwrap()
/// });
/// assert_eq!(both, 100);
/// # Ok(())
/// # }
/// ```
pub struct SharedLimiter<K, C> {
    policies: Policies,
    shards: Box<[Shard<K, C>]>,
    hasher: DefaultHashBuilder,
}

/// A shard on cache lines of its own: a thread that takes its lock does not slow down the others.
#[repr(align(128))]
struct Shard<K, C>(Mutex<Limiter<K, C>>);

impl<K, C> Shard<K, C> {
    /// Waits for the shard. A thread that panicked in it left a limiter as usable as one that runs out of memory does.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Limiter<K, C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, C: Clock + Clone> SharedLimiter<K, C> {
    /// Returns a limiter with one policy or several, for up to a million keys. Each shard reads a clone of the clock.
    ///
    /// # Errors
    ///
    /// If the policies are invalid together.
    pub fn new(policies: impl IntoPolicies, clock: C) -> Result<Self, Error> {
        Self::with_options(policies, clock, Options::default())
    }

    /// Returns a limiter with other [`Options`].
    ///
    /// ```
    /// # use tollgate::{ManualClock, Options, Policy, SharedLimiter};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let options = Options::new().max_keys(10_000)?;
    /// let clock = ManualClock::new(0);
    /// let limiter = SharedLimiter::<u64, _>::with_options(Policy::fix_window(9, "1s")?, &clock, options)?;
    /// assert!(limiter.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the policies are invalid together.
    pub fn with_options(policies: impl IntoPolicies, clock: C, mut options: Options) -> Result<Self, Error> {
        let policies = policies.into_policies()?;
        let count = shards_for(options.max_keys);
        options.max_keys = options.max_keys.div_ceil(count);
        let shard = |_| {
            let limiter = Limiter::with_options(policies.clone(), clock.clone(), options.clone())?;
            Ok(Shard(Mutex::new(limiter)))
        };
        let shards = (0..count).map(shard).collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { policies, shards: shards.into_boxed_slice(), hasher: DefaultHashBuilder::default() })
    }
}

impl<K: Hash + Eq, C: Clock> SharedLimiter<K, C> {
    /// Decides whether the key may act now, and charges the cost if it fits: [`Limiter::hit`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn hit<Q>(&self, key: &Q, cost: u64) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).hit(key, cost)
    }

    /// The same with a cost for each policy: [`Limiter::hit_costs`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn hit_costs<Q>(&self, key: &Q, costs: Costs<'_>) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).hit_costs(key, costs)
    }

    /// The same with other numbers, for this call only: [`Limiter::hit_with`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn hit_with<Q>(&self, key: &Q, cost: u64, policies: &Policies) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).hit_with(key, cost, policies)
    }

    /// Returns what a hit would return. Changes no state: [`Limiter::peek`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn peek<Q>(&self, key: &Q, cost: u64) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).peek(key, cost)
    }

    /// The same with a cost for each policy: [`Limiter::peek_costs`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn peek_costs<Q>(&self, key: &Q, costs: Costs<'_>) -> Result<Decision, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).peek_costs(key, costs)
    }

    /// Charges a cost whether it fits or not, and returns the count: [`Limiter::inc`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn inc<Q>(&self, key: &Q, cost: i64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).inc(key, cost)
    }

    /// The same under one policy, by its name: [`Limiter::inc_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn inc_policy<Q>(&self, key: &Q, cost: i64, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).inc_policy(key, cost, policy)
    }

    /// Sets the key's count, or its tokens: [`Limiter::set`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn set<Q>(&self, key: &Q, count: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).set(key, count)
    }

    /// The same under one policy, by its name: [`Limiter::set_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn set_policy<Q>(&self, key: &Q, count: u64, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).set_policy(key, count, policy)
    }

    /// Returns the key's count: [`Limiter::get`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).get(key)
    }

    /// The same under one policy, by its name: [`Limiter::get_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn get_policy<Q>(&self, key: &Q, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).get_policy(key, policy)
    }

    /// Returns when the key's state ends; 0 if it has none: [`Limiter::expires_at`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn expires_at<Q>(&self, key: &Q) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).expires_at(key)
    }

    /// The same under one policy, by its name: [`Limiter::expires_at_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn expires_at_policy<Q>(&self, key: &Q, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).expires_at_policy(key, policy)
    }

    /// Bans the key, or changes the end of its ban. Returns the end: [`Limiter::ban`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ban<Q>(&self, key: &Q, length: impl Into<Span>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).ban(key, length)
    }

    /// The same for one of several bans, by its name: [`Limiter::ban_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ban_policy<Q>(&self, key: &Q, length: impl Into<Span>, policy: Option<&str>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).ban_policy(key, length, policy)
    }

    /// Lifts the ban of the key. Returns whether one held: [`Limiter::unban`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn unban<Q>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).unban(key)
    }

    /// The same for one of several bans, by its name: [`Limiter::unban_policy`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn unban_policy<Q>(&self, key: &Q, policy: Option<&str>) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).unban_policy(key, policy)
    }

    /// Sets the exception of the key until a time. Returns that time: [`Limiter::except`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn except<Q>(&self, key: &Q, exception: &Exception, until: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).except(key, exception, until)
    }

    /// The same for `length` from now: [`Limiter::except_for`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn except_for<Q>(&self, key: &Q, exception: &Exception, length: impl Into<Span>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).except_for(key, exception, length)
    }

    /// Lifts the exception of the key. Returns whether one was in force: [`Limiter::lift_exception`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn lift_exception<Q>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).lift_exception(key)
    }

    /// Returns the exception of the key and its end: [`Limiter::exception`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn exception<Q>(&self, key: &Q) -> Result<Option<(Exception, u64)>, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).exception(key)
    }

    /// Removes the key's states. Returns whether there were any: [`Limiter::reset`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn reset<Q>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).reset(key)
    }

    /// Decides as a hit does and, if allowed, reserves the costs: [`Limiter::reserve`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn reserve<Q>(&self, key: &Q, reserve: Reserve<'_>) -> Result<Reserving<K>, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.shard(key).reserve(key, reserve)
    }

    /// Closes a reservation that is known by its id: [`Limiter::settle_by_id`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn settle_by_id<Q>(&self, key: &Q, id: &ReservationId, used: Option<Costs<'_>>) -> Result<Settlement, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).settle_by_id(key, id, used)
    }

    /// Removes the key with its open reservations. Returns whether it was there: [`Limiter::reset_all`].
    pub fn reset_all<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shard(key).reset_all(key)
    }

    /// Closes a reservation and charges the used amounts, by default the reserved ones: [`Limiter::settle`].
    ///
    /// ```
    /// # use tollgate::{ManualClock, Policy, Reserve, SharedLimiter};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let limiter = SharedLimiter::<String, _>::new(Policy::token_bucket(9_000, 150, "1s")?, &clock)?;
    /// let reservation = limiter.reserve("user:42", Reserve::new(4_000))?.reservation.unwrap();
    /// limiter.settle(reservation, Some(1_234.into()))?;
    /// assert_eq!(limiter.get("user:42")?, 7_766);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub fn settle(&self, reservation: Reservation<K>, used: Option<Costs<'_>>) -> Result<Settlement, Error> {
        self.shard(&reservation.key).settle(reservation, used)
    }

    /// Closes a reservation without a charge: [`Limiter::cancel`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn cancel(&self, reservation: Reservation<K>) -> Result<Settlement, Error> {
        self.shard(&reservation.key).cancel(reservation)
    }

    /// Moves the end of a reservation to `ttl` from now: [`Limiter::extend`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn extend(&self, reservation: &mut Reservation<K>, ttl: impl Into<Span>) -> Result<Settlement, Error> {
        self.shard(&reservation.key).extend(reservation, ttl)
    }

    /// Removes every expired key now, one shard after the other, and returns how many there were: [`Limiter::clean`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn clean(&self) -> Result<u32, Error> {
        self.shards.iter().map(|shard| shard.lock().clean()).sum()
    }

    /// Returns the number of keys, including expired ones that have not been cleaned yet. Other threads may change it
    /// meanwhile.
    pub fn len(&self) -> u32 {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }

    /// Returns how many live keys were evicted because their shard was full.
    pub fn evicted(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().evicted()).sum()
    }

    /// Returns the policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Waits for the shard of a key.
    #[inline]
    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> MutexGuard<'_, Limiter<K, C>> {
        // The number of shards is a power of two. A hash table takes its low and its highest bits from a hash of its own.
        let position = self.hasher.hash_one(key) as usize & (self.shards.len() - 1);
        self.shards[position].lock()
    }
}

/// Returns how many shards there are, a power of two: enough for all threads, but none of too few keys.
fn shards_for(max_keys: u32) -> u32 {
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let wanted = (threads * SHARDS_PER_THREAD).next_power_of_two() as u32;
    let most = (max_keys / FEWEST_KEYS_OF_A_SHARD).max(1);
    wanted.min(1 << most.ilog2())
}

impl<K, C> fmt::Debug for SharedLimiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimiter")
            .field("policies", &self.policies)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}
