//! The layer counts requests by key, denies with 429, charges by the response, and never loses a request to an error.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, Ready, ready};
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::{Request, Response, StatusCode};
use tollgate::tower::{AsyncLimiter, OnError, RateLimitLayer, key};
use tollgate::{
    Decision, Error, ManualClock, Policies, Policy, Reservation, Reserving, Settlement, SharedLimiter, Span,
};
use tower_layer::Layer;
use tower_service::Service;

/// A service that responds with the status that the request names in a header, and counts its calls.
#[derive(Clone, Default)]
struct Named(Arc<AtomicU32>);

impl Service<Request<()>> for Named {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        self.0.fetch_add(1, Ordering::Relaxed);
        let status = request.headers().get("status").map_or(200, |status| status.to_str().unwrap().parse().unwrap());
        ready(Ok(Response::builder().status(status).body("inside".into()).unwrap()))
    }
}

/// Returns the output of a future that never waits.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("all in memory"),
    }
}

fn request(client: &str, status: &str) -> Request<()> {
    Request::builder().header("client", client).header("status", status).body(()).unwrap()
}

type Limiter = Arc<SharedLimiter<String, Arc<ManualClock>>>;

fn with_clock(policy: Policy) -> (Limiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(0));
    (Arc::new(SharedLimiter::new(policy, Arc::clone(&clock)).unwrap()), clock)
}

fn limiter(limit: u64) -> Limiter {
    with_clock(Policy::fix_window(limit, "1m").unwrap()).0
}

#[test]
fn a_request_over_the_limit_gets_a_429_and_does_not_reach_the_service() {
    let inside = Named::default();
    let mut service = RateLimitLayer::new(limiter(2), key::header("client")).unwrap().layer(inside.clone());
    let responses: Vec<_> = (0..3).map(|_| now(service.call(request("a", "200"))).unwrap()).collect();
    assert_eq!(responses[1].headers()["RateLimit"], r#""fix_window";r=0;t=60"#);
    let denied = &responses[2];
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.headers()["Retry-After"], "60");
    assert_eq!(denied.headers()["Content-Type"], "application/problem+json");
    assert!(denied.body().contains(r#""violated-policies":["fix_window"]"#));
    assert_eq!(inside.0.load(Ordering::Relaxed), 2);
    // Another key has a budget of its own.
    assert_eq!(now(service.call(request("b", "200"))).unwrap().status(), 200);
}

#[test]
fn only_what_the_response_says_is_charged() {
    let limiter = limiter(3);
    let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |response| {
        u64::from(response.status == StatusCode::UNAUTHORIZED)
    });
    let mut service = layer.layer(Named::default());
    for status in ["200", "401", "200", "401", "200"] {
        assert_eq!(now(service.call(request("a", status))).unwrap().status().as_str(), status);
    }
    assert_eq!(limiter.get("a").unwrap(), 2);
    assert_eq!(now(service.call(request("a", "401"))).unwrap().status(), 401);
    assert_eq!(now(service.call(request("a", "200"))).unwrap().status(), 429);
}

/// Starts a request to a service, and lets its client go away.
fn abandon<S>(service: &mut S)
where
    S: Service<Request<()>>,
    S::Future: Unpin,
{
    let mut call = service.call(request("a", "200"));
    assert!(pin!(&mut call).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn a_request_whose_client_goes_away_is_charged_its_cost_at_once() {
    let (limiter, clock) = with_clock(Policy::fix_window(3, "10s").unwrap());
    let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |_| 0);
    clock.set(9_000);
    abandon(&mut layer.layer(Never));
    assert_eq!(limiter.get("a").unwrap(), 1);
    // In the window of the request, not in that of its reservation's end.
    clock.set(10_000);
    assert_eq!(limiter.get("a").unwrap(), 0);
    clock.set(70_000);
    assert_eq!(limiter.get("a").unwrap(), 0);
}

#[test]
fn a_slot_is_free_when_the_client_goes_away_or_the_service_fails_or_panics() {
    let (limiter, _) = with_clock(Policy::concurrency(1, "1h").unwrap());
    let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |_| 1);
    abandon(&mut layer.layer(Never));
    assert_eq!(limiter.get("a").unwrap(), 0);
    assert!(now(layer.layer(Broken { panics: false }).call(request("a", "200"))).is_err());
    assert_eq!(limiter.get("a").unwrap(), 0);
    let mut panics = layer.layer(Broken { panics: true });
    let call = panic::catch_unwind(AssertUnwindSafe(|| now(panics.call(request("a", "200"))).is_ok()));
    assert!(call.is_err());
    assert_eq!(limiter.get("a").unwrap(), 0);
    assert_eq!(now(layer.layer(Named::default()).call(request("a", "200"))).unwrap().status(), 200);
}

#[test]
fn the_cost_is_reserved_for_the_ttl() {
    let (limiter, clock) = with_clock(Policy::fix_window(3, "10s").unwrap());
    let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |_| 0).ttl("5s").unwrap();
    let mut service = layer.layer(Never);
    let mut call = service.call(request("a", "200"));
    assert!(pin!(&mut call).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(limiter.peek("a", 0).unwrap().remaining, 2);
    clock.set(10_000);
    assert_eq!(limiter.peek("a", 0).unwrap().remaining, 3, "its end has charged it in the window before");
    drop(call);
    assert_eq!(limiter.peek("a", 0).unwrap().remaining, 3, "and it is charged once");
    for ttl in ["0ms", "25h"] {
        let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |_| 0);
        assert_eq!(layer.ttl(ttl).unwrap_err().code(), "invalid_option", "{ttl}");
    }
}

#[test]
fn a_charge_out_of_range_is_reported_and_charges_the_cost() {
    let limiter = limiter(9);
    let reported = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&reported);
    let layer = RateLimitLayer::charging(limiter.clone(), key::header("client"), |_| u64::MAX).cost(|_| 2).on_error(
        move |error| {
            log.lock().unwrap().push(error.code());
            OnError::Allow
        },
    );
    assert_eq!(now(layer.layer(Named::default()).call(request("a", "200"))).unwrap().status(), 200);
    assert_eq!((reported.lock().unwrap().as_slice(), limiter.get("a").unwrap()), (["invalid_cost"].as_slice(), 2));
}

#[test]
fn a_concurrency_limit_without_a_charge_is_an_error_when_the_layer_is_made() {
    let (limiter, _) = with_clock(Policy::concurrency(1, "1h").unwrap().named("running").unwrap());
    let error = RateLimitLayer::new(limiter, key::header("client")).unwrap_err();
    assert_eq!(error.code(), "reserve_only");
    assert!(error.to_string().contains("running"), "{error}");
}

/// A service that fails, or panics.
#[derive(Clone)]
struct Broken {
    panics: bool,
}

impl Service<Request<()>> for Broken {
    type Response = Response<String>;
    type Error = fmt::Error;
    type Future = Ready<Result<Response<String>, fmt::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), fmt::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        assert!(!self.panics, "the service panics");
        ready(Err(fmt::Error))
    }
}

/// A service that never responds.
#[derive(Clone)]
struct Never;

impl Service<Request<()>> for Never {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Pending<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        std::future::pending()
    }
}

#[test]
fn cost_by_request() {
    let limiter = limiter(10);
    let layer = RateLimitLayer::new(limiter.clone(), key::header("client"))
        .unwrap()
        .cost(|request| if request.method == http::Method::POST { 4 } else { 1 });
    let mut service = layer.layer(Named::default());
    let mut post = request("a", "200");
    *post.method_mut() = http::Method::POST;
    now(service.call(post)).unwrap();
    now(service.call(request("a", "200"))).unwrap();
    assert_eq!(limiter.get("a").unwrap(), 5);
}

#[test]
fn two_layers_add_their_lines() {
    let inner = RateLimitLayer::new(limiter(5), key::header("client")).unwrap().layer(Named::default());
    let mut service = RateLimitLayer::new(limiter(9), key::header("client")).unwrap().layer(inner);
    let response = now(service.call(request("a", "200"))).unwrap();
    let lines: Vec<_> = response.headers().get_all("RateLimit").iter().map(|line| line.to_str().unwrap()).collect();
    assert_eq!(lines, [r#""fix_window";r=4;t=60"#, r#""fix_window";r=8;t=60"#]);
}

#[test]
fn a_request_without_a_key_is_rejected_with_the_reason() {
    let inside = Named::default();
    let mut service = RateLimitLayer::new(limiter(2), key::header("client")).unwrap().layer(inside.clone());
    let rejected = |request: Request<()>, service: &mut _| {
        let service: &mut tollgate::tower::RateLimit<_, _> = service;
        let response = now(service.call(request)).unwrap();
        (response.status().as_u16(), response.into_body())
    };
    let twice = Request::builder().header("client", "a").header("client", "b").body(()).unwrap();
    for request in [Request::new(()), twice] {
        let (status, body) = rejected(request, &mut service);
        assert_eq!(status, 400);
        assert!(body.contains("the header client is required, once"), "{body}");
    }
    for value in ["", " ", "é", &"x".repeat(1_025)] {
        let odd = Request::builder().header("client", value).body(()).unwrap();
        let (status, body) = rejected(odd, &mut service);
        assert_eq!(status, 400, "{value}");
        assert!(body.contains("1 to 1024 visible ASCII characters"), "{body}");
    }
    assert_eq!(inside.0.load(Ordering::Relaxed), 0);
}

/// A limiter that always fails.
#[derive(Clone)]
struct Failing(Policies);

impl AsyncLimiter for Failing {
    type Error = Error;

    fn policies(&self) -> &Policies {
        &self.0
    }

    fn hit(&self, _key: String, _cost: u64) -> impl Future<Output = Result<Decision, Error>> + Send {
        ready(Err(Error::OutOfMemory))
    }

    fn reserve(
        &self,
        _key: String,
        _cost: u64,
        _ttl: Option<Span>,
    ) -> impl Future<Output = Result<Reserving<String>, Error>> + Send {
        ready(Err(Error::OutOfMemory))
    }

    fn settle(
        &self,
        _reservation: Reservation<String>,
        _used: u64,
    ) -> impl Future<Output = Result<Settlement, Error>> + Send {
        ready(Err(Error::OutOfMemory))
    }

    fn settle_dropped(&self, _reservation: Reservation<String>) {}
}

#[test]
fn a_limiter_that_fails_denies_unless_on_error_allows() {
    let failing = || Failing(Policy::fix_window(1, "1s").unwrap().into());
    let mut denies = RateLimitLayer::new(failing(), key::header("client")).unwrap().layer(Named::default());
    let response = now(denies.call(request("a", "200"))).unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.body().contains("the rate limiter failed"));

    let layer = RateLimitLayer::new(failing(), key::header("client")).unwrap().on_error(|error| {
        assert_eq!(error.code(), "out_of_memory");
        OnError::Allow
    });
    let response = now(layer.layer(Named::default()).call(request("a", "201"))).unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get("RateLimit")), (201, None));
}
