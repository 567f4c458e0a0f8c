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
        Ok((decision, reservation)) => {
            let response = inner.call(request).await?;
            let mut response = layer.settle(response, reservation).await;
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
    async fn decide(&self, key: String, cost: u64) -> Result<(Decision, Option<Reservation<String>>), L::Error> {
        if self.charge.is_none() {
            return Ok((self.limiter.hit(key, cost).await?, None));
        }
        let reserving = self.limiter.reserve(key, cost).await?;
        Ok((reserving.decision, reserving.reservation))
    }

    /// Charges what the response says. If the limiter fails now, the reservation's end charges the cost.
    async fn settle<Out>(&self, response: Response<Out>, reservation: Option<Reservation<String>>) -> Response<Out> {
        let (Some(charge), Some(reservation)) = (&self.charge, reservation) else { return response };
        let (parts, body) = response.into_parts();
        let _unsettled = self.limiter.settle(reservation, charge(&parts)).await;
        Response::from_parts(parts, body)
    }
}
