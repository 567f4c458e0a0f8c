//! The layer: a limiter, the key of a request, and what happens at the edges.

use std::fmt;
use std::sync::Arc;

use http::{request, response};
use tower_layer::Layer;

use super::{AsyncLimiter, NoKey, RateLimit};
use crate::key::reservation::check_ttl;
use crate::{Error, Span};

/// What happens to a request when the limiter fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It goes on, uncounted.
    Allow,
    /// It gets a 503.
    Deny,
}

type KeyOf = dyn Fn(&request::Parts) -> Result<String, NoKey> + Send + Sync;
type CostOf = dyn Fn(&request::Parts) -> u64 + Send + Sync;
type ChargeOf = dyn Fn(&response::Parts) -> u64 + Send + Sync;
type OnErrorOf<E> = dyn Fn(E) -> OnError + Send + Sync;

/// Limits the requests to a service: each is counted by its key, and a denied one gets a 429 with headers and a problem
/// body.
///
/// Responses get `RateLimit` and `RateLimit-Policy`. Several layers on one route add theirs.
pub struct RateLimitLayer<L: AsyncLimiter> {
    pub(super) limiter: L,
    pub(super) key: Arc<KeyOf>,
    pub(super) cost: Option<Arc<CostOf>>,
    pub(super) charge: Option<Arc<ChargeOf>>,
    pub(super) ttl: Option<Span>,
    pub(super) on_error: Option<Arc<OnErrorOf<L::Error>>>,
}

impl<L: AsyncLimiter> RateLimitLayer<L> {
    /// Returns a layer that counts each request by the key that the function returns; [`key`](super::key) has some.
    ///
    /// # Errors
    ///
    /// If a policy is a `concurrency` limit, which counts only requests that are under way: use
    /// [`charging`](Self::charging).
    pub fn new(
        limiter: L,
        key: impl Fn(&request::Parts) -> Result<String, NoKey> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let policies = limiter.policies();
        if let Some(position) = policies.iter().position(|policy| policy.algorithm.is_concurrency()) {
            return Err(Error::ReserveOnly {
                policy: policies.name(position).into(),
                operation: "RateLimitLayer::new",
            });
        }
        Ok(Self::of(limiter, Arc::new(key), None))
    }

    /// Returns a layer that charges what `charge` returns for the response instead of the request's cost: for example 1 for
    /// a failed login and 0 for a successful one. Until then the cost is reserved, so that requests at once cannot exceed
    /// the limit, and a `concurrency` limit counts them. If the service fails or panics, or the client goes away, the whole
    /// cost is charged at once.
    pub fn charging(
        limiter: L,
        key: impl Fn(&request::Parts) -> Result<String, NoKey> + Send + Sync + 'static,
        charge: impl Fn(&response::Parts) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::of(limiter, Arc::new(key), Some(Arc::new(charge)))
    }

    fn of(limiter: L, key: Arc<KeyOf>, charge: Option<Arc<ChargeOf>>) -> Self {
        Self { limiter, key, cost: None, charge, ttl: None, on_error: None }
    }

    /// Sets how much a request counts, 1 by default. A cost of 0 is never denied.
    pub fn cost(self, cost: impl Fn(&request::Parts) -> u64 + Send + Sync + 'static) -> Self {
        Self { cost: Some(Arc::new(cost)), ..self }
    }

    /// Sets how long a layer that [charges](Self::charging) reserves the cost of a request: longer than a response may take,
    /// since the end of the reservation charges it. By default it is the `ttl` of a `concurrency` limit, or a minute.
    ///
    /// # Errors
    ///
    /// If it is not from a millisecond to a day.
    pub fn ttl(self, ttl: impl Into<Span>) -> Result<Self, Error> {
        Ok(Self { ttl: Some(check_ttl(ttl.into())?.into()), ..self })
    }

    /// Sets what happens when the limiter fails, [`OnError::Deny`] by default. The function is the place for a log line: it is
    /// also called when a charge fails, as one above [`MAX`](crate::MAX) does; the whole cost is charged then, and what the
    /// function returns does not matter. Without it, a charge that fails is a line in the standard error.
    pub fn on_error(self, on_error: impl Fn(L::Error) -> OnError + Send + Sync + 'static) -> Self {
        Self { on_error: Some(Arc::new(on_error)), ..self }
    }
}

impl<L: AsyncLimiter> Clone for RateLimitLayer<L> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            key: self.key.clone(),
            cost: self.cost.clone(),
            charge: self.charge.clone(),
            ttl: self.ttl.clone(),
            on_error: self.on_error.clone(),
        }
    }
}

impl<L: AsyncLimiter> fmt::Debug for RateLimitLayer<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("policies", self.limiter.policies()).finish_non_exhaustive()
    }
}

impl<S, L: AsyncLimiter> Layer<S> for RateLimitLayer<L> {
    type Service = RateLimit<S, L>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit { inner, layer: self.clone() }
    }
}
