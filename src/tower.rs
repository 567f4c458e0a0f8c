//! A layer for tower services, such as axum's: a limit in front of a router or a route.
//!
//! [`RateLimitLayer`] works with any service of HTTP messages whose response body can be made of a `String`, in a server
//! over a [`SharedLimiter`](crate::SharedLimiter), and in a Worker over [`Limits`](crate::cloudflare::Limits).
//!
//! ```
//! use std::net::SocketAddr;
//! use std::sync::Arc;
//! use tollgate::tower::{RateLimitLayer, key};
//! use tollgate::{ManualClock, Policy, SharedLimiter};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let clock = Arc::new(ManualClock::new(0)); // in a server: SystemClock
//! let limiter = Arc::new(SharedLimiter::new(Policy::sliding_window(100, "1m")?, clock)?);
//! let layer = RateLimitLayer::new(limiter, key::extension(|client: &SocketAddr| key::address(client.ip())))?;
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! With axum, `Router::new().route(…).layer(layer)` is all; the address is in its extension `ConnectInfo`.

pub mod key;
mod layer;
mod limiter;
mod respond;
mod service;

pub use key::NoKey;
pub use layer::{OnError, RateLimitLayer};
pub use limiter::AsyncLimiter;
pub use service::RateLimit;
