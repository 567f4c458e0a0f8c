//! Exceptions of a limiter's keys.

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::hash::Hash;

use super::Limiter;
use crate::key::exceptions::Exceptions;
use crate::number::check_time;
use crate::policy::exception::{check_until, end_after};
use crate::{Clock, Error, Exception, Span};

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Sets the exception of a key until a time, in milliseconds since the epoch, in the place of the one that it has. Returns
    /// that time. It ends then, even if the clock steps.
    ///
    /// A key with an exception is never evicted, and [`Limiter::reset`] leaves the exception.
    ///
    /// ```
    /// # use tollgate::{Exception, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1h")?, &clock)?;
    /// limiter.except("customer:42", &Exception::new().with("", "limit", 10_u64)?, 5_000)?;
    /// assert!(limiter.hit("customer:42", 10)?.allowed);
    /// clock.advance(5_000);
    /// assert!(!limiter.hit("customer:42", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the end is not within [`MAX_EXCEPTION`](crate::MAX_EXCEPTION), the exception names no policy of the limiter, or
    /// half of the keys that the limiter holds have exceptions.
    pub fn except<Q>(&mut self, key: &Q, exception: &Exception, until: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        self.except_until(key, exception, check_until(until, now)?, now)
    }

    /// The same for `length` from now.
    ///
    /// ```
    /// # use tollgate::{Exception, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1h")?, ManualClock::new(0))?;
    /// assert_eq!(limiter.except_for("office", &Exception::allow(), "1d")?, 86_400_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Limiter::except`].
    pub fn except_for<Q>(&mut self, key: &Q, exception: &Exception, length: impl Into<Span>) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        self.except_until(key, exception, end_after(length.into(), now)?, now)
    }

    /// Lifts the exception of a key. Returns whether one was in force.
    ///
    /// ```
    /// # use tollgate::{Exception, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1h")?, ManualClock::new(0))?;
    /// limiter.except_for("token:7", &Exception::deny(), "1d")?;
    /// assert!(limiter.lift_exception("token:7")?);
    /// assert!(limiter.hit("token:7", 1)?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lift_exception<Q>(&mut self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let lifted = self.change_slot(key, now, |slots, slot| slots.except(Some(slot), Exceptions::default(), now));
        Ok(lifted.map_err(|error| self.slots.error(error))? > Some(0))
    }

    /// Returns the exception of a key and its end; `None` if none is in force.
    ///
    /// ```
    /// # use tollgate::{Exception, Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1h")?, ManualClock::new(0))?;
    /// limiter.except("token:7", &Exception::deny(), 5_000)?;
    /// assert_eq!(limiter.exception("token:7")?, Some((Exception::deny(), 5_000)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn exception<Q>(&self, key: &Q) -> Result<Option<(Exception, u64)>, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = check_time(self.clock.now())?;
        let exceptions = self.index.get(key).and_then(|slot| self.slots.exceptions(slot));
        Ok(exceptions.and_then(|exceptions| exceptions.exception(&self.names, now)))
    }

    fn except_until<Q>(&mut self, key: &Q, exception: &Exception, until: u64, now: u64) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let exceptions = Exceptions::new(exception, &mut self.names, &self.policies, (until, now))?;
        if let Some(unfit) = self.slots.unfit(&exceptions) {
            return Err(unfit.error(&self.policies));
        }
        let ends_at = self.change(key, now, |slots, slot| slots.except(slot, exceptions, now));
        ends_at.map_err(|error| self.slots.error(error))
    }
}
