//! The service: key → limiter → the service inside → headers.

use std::fmt;
use std::future::Future;
use std::mem::replace;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::respond::{add_headers, denial, undecided, without_key};
use super::{AsyncLimiter, OnError, RateLimitLayer};
use crate::{Decision, Reservation};

/// A reservation that is charged in full when it is dropped: the client went away, or the service failed or panicked.
struct Open<L: AsyncLimiter> {
    limiter: L,
    reservation: Option<Reservation<String>>,
}

impl<L: AsyncLimiter> Drop for Open<L> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.settle_dropped(reservation);
        }
    }
}

/// A service behind a [`RateLimitLayer`].
#[derive(Clone)]
pub struct RateLimit<S, L: AsyncLimiter> {
    pub(super) inner: S,
    pub(super) layer: RateLimitLayer<L>,
}

impl<S: fmt::Debug, L: AsyncLimiter> fmt::Debug for RateLimit<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<S, L, In, Out> Service<Request<In>> for RateLimit<S, L>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send,
    L: AsyncLimiter,
    In: Send + 'static,
    Out: From<String> + Send + 'static,
{
    type Response = Response<Out>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Out>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        // The service that is ready, not its clone.
        let clone = self.inner.clone();
        let inner = replace(&mut self.inner, clone);
        Box::pin(respond(inner, self.layer.clone(), request))
    }
}

/// Responds to a request: by the service inside if it may go on.
async fn respond<S, L, In, Out>(
    mut inner: S,
    layer: RateLimitLayer<L>,
    request: Request<In>,
) -> Result<Response<Out>, S::Error>
where
    S: Service<Request<In>, Response = Response<Out>>,
    L: AsyncLimiter,
    Out: From<String>,
{
    let (parts, body) = request.into_parts();
    let key = match (layer.key)(&parts) {
        Ok(key) => key,
        Err(missing) => return Ok(without_key(missing)),
    };
    let cost = layer.cost.as_ref().map_or(1, |cost| cost(&parts));
    let decided = layer.decide(key, cost).await;
    let request = Request::from_parts(parts, body);
    match decided {
        Ok((decision, _)) if !decision.allowed => Ok(denial(&decision, layer.limiter.policies())),
        Ok((decision, open)) => {
            let response = inner.call(request).await?;
            let mut response = layer.settle(response, open).await;
            add_headers(response.headers_mut(), &decision, layer.limiter.policies());
            Ok(response)
        }
        Err(error) => match layer.on_error.as_ref().map_or(OnError::Deny, |on_error| on_error(error)) {
            OnError::Allow => inner.call(request).await,
            OnError::Deny => Ok(undecided()),
        },
    }
}

impl<L: AsyncLimiter> RateLimitLayer<L> {
    /// Returns the decision; if the response determines the charge, the cost is only reserved.
    async fn decide(&self, key: String, cost: u64) -> Result<(Decision, Option<Open<L>>), L::Error> {
        if self.charge.is_none() {
            return Ok((self.limiter.hit(key, cost).await?, None));
        }
        let reserving = self.limiter.reserve(key, cost, self.ttl.clone()).await?;
        Ok((reserving.decision, Some(Open { limiter: self.limiter.clone(), reservation: reserving.reservation })))
    }

    /// Charges what the response says; all of the cost if that fails.
    async fn settle<Out>(&self, response: Response<Out>, open: Option<Open<L>>) -> Response<Out> {
        let (Some(charge), Some(mut open)) = (&self.charge, open) else { return response };
        let (parts, body) = response.into_parts();
        let used = charge(&parts);
        let settling =
            open.reservation.as_ref().map(|Reservation { key, id }| Reservation { key: key.clone(), id: *id });
        if let Some(reservation) = settling {
            match self.limiter.settle(reservation, used).await {
                Ok(_) => open.reservation = None,
                Err(error) => self.note(error),
            }
        }
        Response::from_parts(parts, body)
    }

    /// Reports that a charge failed.
    fn note(&self, error: L::Error) {
        match &self.on_error {
            Some(on_error) => _ = on_error(error),
            None => {
                eprintln!("tollgate: a request could not be charged by its response, and is charged in full: {error}")
            }
        }
    }
}
