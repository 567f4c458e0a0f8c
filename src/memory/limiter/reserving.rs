//! Reservations of a limiter: reserve, settle and extend.

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::hash::Hash;

use super::Limiter;
use crate::growth::OutOfMemory;
use crate::key::open_reservations::Bits;
use crate::key::reservation::check_ttl;
use crate::memory::slots::Slots;
use crate::number::check_time;
use crate::policy::costs::AS_RESERVED;
use crate::{Clock, Costs, Error, Reservation, ReservationId, Reserve, Reserving, Settlement, Span};

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Decides as a hit does and, if allowed, reserves the amount: it counts as used until it is settled or expires.
    ///
    /// A reservation that is not settled by its end is charged in full, so that a crash never admits more.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve, Settlement};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// // A login counts only if it fails.
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1h")?, ManualClock::new(0))?;
    /// let reservation = limiter.reserve("login:42", Reserve::new(1))?.reservation.unwrap();
    /// assert!(!limiter.hit("login:42", 1)?.allowed);
    /// assert_eq!(limiter.cancel(reservation)?, Settlement::Settled);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve<Q>(&mut self, key: &Q, reserve: Reserve<'_>) -> Result<Reserving<K>, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let (costs, reserved) =
            (reserve.costs.at_positions(&self.policies, 1)?, reserve.at(self.slots.policy_states(), now)?);
        let algorithms = reserve.policies.map(|policies| self.adjusted(policies)).transpose()?;
        let decision = self.change::<_, _, Error>(key, now, |slots, slot| {
            slots.reserve_costs(slot, algorithms.as_deref(), &costs, reserved, now)
        })?;
        let reservation = decision.allowed.then(|| Reservation { key: key.to_owned(), id: reserve.id(reserved.end()) });
        Ok(Reserving { decision, reservation })
    }

    /// Closes a reservation and charges the used amount, by default all that was reserved. An amount above the reserved
    /// one is charged as [`Limiter::inc`] does.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve, Settlement};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1h")?, &clock)?;
    /// let reservation = limiter.reserve("user:42", Reserve::new(1).cost(5).ttl("1m"))?.reservation.unwrap();
    /// clock.advance(60_000);
    /// assert_eq!(limiter.settle(reservation, Some(2.into()))?, Settlement::Expired);
    /// assert_eq!(limiter.get("user:42")?, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle(&mut self, reservation: Reservation<K>, used: Option<Costs<'_>>) -> Result<Settlement, Error> {
        self.settle_by_id(&reservation.key, &reservation.id, used)
    }

    /// Closes a reservation without a charge.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1h")?, ManualClock::new(0))?;
    /// let reservation = limiter.reserve("user:42", Reserve::new(1).cost(5))?.reservation.unwrap();
    /// limiter.cancel(reservation)?;
    /// assert_eq!(limiter.get("user:42")?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&mut self, reservation: Reservation<K>) -> Result<Settlement, Error> {
        self.settle(reservation, Some(Costs::All(0)))
    }

    /// The same as [`Limiter::settle`] for a reservation that is known by its key and id: after a restart, or
    /// elsewhere.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve, Settlement};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1h")?, ManualClock::new(0))?;
    /// let id = limiter.reserve("user:42", Reserve::new(1))?.reservation.unwrap().id;
    /// assert_eq!(limiter.settle_by_id("user:42", &id, None)?, Settlement::Settled);
    /// assert_eq!(limiter.settle_by_id("user:42", &id, None)?, Settlement::Closed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle_by_id<Q>(&mut self, key: &Q, id: &ReservationId, used: Option<Costs<'_>>) -> Result<Settlement, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        id.check_used(used)?;
        let used = used.unwrap_or(Costs::ByPolicy(&[])).at_positions(&self.policies, AS_RESERVED)?;
        self.on_reservation(key, id, |slots, slot, bits, now| slots.settle_reservation(slot, bits, &used, now))
    }

    /// Moves the end of a reservation to `ttl` from now, but never to an earlier time.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, Reserve, Settlement};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::concurrency(1, "1m")?, &clock)?;
    /// let mut reservation = limiter.reserve("user:42", Reserve::new(1))?.reservation.unwrap();
    /// clock.advance(30_000);
    /// assert_eq!(limiter.extend(&mut reservation, "5m")?, Settlement::Extended);
    /// assert_eq!(reservation.id.end(), 330_000);
    /// # limiter.cancel(reservation)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn extend(&mut self, reservation: &mut Reservation<K>, ttl: impl Into<Span>) -> Result<Settlement, Error> {
        let ttl = check_ttl(ttl.into())?;
        let now = check_time(self.clock.now())?;
        let Reservation { key, id } = reservation;
        let extended =
            self.on_reservation(&*key, id, |slots, slot, bits, now| slots.extend_reservation(slot, bits, ttl, now))?;
        if extended == Settlement::Extended {
            id.end = id.end.max(now + ttl);
        }
        Ok(extended)
    }

    fn on_reservation<Q>(
        &mut self,
        key: &Q,
        id: &ReservationId,
        work: impl FnOnce(&mut Slots, u32, Bits, u64) -> Result<Option<Settlement>, OutOfMemory>,
    ) -> Result<Settlement, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let found = self.change_slot(key, now, |slots, slot| work(slots, slot, id.bits(), now))?;
        Ok(found.flatten().unwrap_or_else(|| self.slots.missing(id.bits(), id.end(), now)))
    }
}
