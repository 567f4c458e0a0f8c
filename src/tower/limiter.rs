//! A limiter as the layer calls it: asynchronous, whether it is in memory or elsewhere.

use core::fmt::Display;
use core::future::{Future, ready};
use core::hash::{BuildHasher, Hasher};
use std::collections::hash_map::RandomState;
use std::sync::Arc;

use crate::{Clock, Decision, Error, Policies, Reservation, Reserve, Reserving, Settlement, SharedLimiter, Span};

/// A limiter that a layer can call from any task.
pub trait AsyncLimiter: Clone + Send + Sync + 'static {
    /// Why an operation failed.
    type Error: Display + Send + 'static;

    /// Returns the policies.
    fn policies(&self) -> &Policies;

    /// Decides whether the key may act now, and charges the cost if it fits.
    fn hit(&self, key: String, cost: u64) -> impl Future<Output = Result<Decision, Self::Error>> + Send;

    /// Decides as a hit does and, if allowed, reserves the cost for `ttl`, or for the default duration of the policies.
    fn reserve(
        &self,
        key: String,
        cost: u64,
        ttl: Option<Span>,
    ) -> impl Future<Output = Result<Reserving<String>, Self::Error>> + Send;

    /// Closes a reservation and charges what was used.
    fn settle(
        &self,
        reservation: Reservation<String>,
        used: u64,
    ) -> impl Future<Output = Result<Settlement, Self::Error>> + Send;

    /// Charges all of a reservation where nobody can wait for it: its request was dropped. If that fails, its end charges
    /// it.
    fn settle_dropped(&self, reservation: Reservation<String>);
}

impl<C: Clock + Send + 'static> AsyncLimiter for Arc<SharedLimiter<String, C>> {
    type Error = Error;

    fn policies(&self) -> &Policies {
        SharedLimiter::policies(self)
    }

    fn hit(&self, key: String, cost: u64) -> impl Future<Output = Result<Decision, Error>> + Send {
        ready(SharedLimiter::hit(self, key.as_str(), cost))
    }

    fn reserve(
        &self,
        key: String,
        cost: u64,
        ttl: Option<Span>,
    ) -> impl Future<Output = Result<Reserving<String>, Error>> + Send {
        let reserve = Reserve::new(random()).cost(cost);
        let reserve = match ttl {
            Some(ttl) => reserve.ttl(ttl),
            None => reserve,
        };
        ready(SharedLimiter::reserve(self, key.as_str(), reserve))
    }

    fn settle(
        &self,
        reservation: Reservation<String>,
        used: u64,
    ) -> impl Future<Output = Result<Settlement, Error>> + Send {
        ready(SharedLimiter::settle(self, reservation, Some(used.into())))
    }

    fn settle_dropped(&self, reservation: Reservation<String>) {
        let _charged_at_its_end = SharedLimiter::settle(self, reservation, None);
    }
}

/// Returns random bits for an id, from the standard library's source of them.
fn random() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}
