//! Exact limits on Cloudflare Workers: a Durable Object for each key, and a client for it.
//!
//! A Rust Worker exports the object with one line, and asks it through [`Limits`]:
//!
//! ```no_run
//! use tollgate::Policy;
//! use tollgate::cloudflare::Limits;
//! use worker::{Context, Env, Request, Response, Result, event};
//!
//! pub use tollgate::cloudflare::RateLimiterObject;
//!
//! #[event(fetch)]
//! async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
//!     let limits = Limits::new(&env, "LIMITERS", Policy::sliding_window(100, "1m")?)?;
//!     let decision = limits.hit(&tollgate::cloudflare::client_address(&request)?, 1).await?;
//!     if !decision.allowed {
//!         return limits.denial(&decision);
//!     }
//!     limits.with_headers(Response::ok("Hello")?, &decision)
//! }
//! # fn main() {}
//! ```
//!
//! The binding and the migration in `wrangler.toml`:
//!
//! ```toml
//! [[durable_objects.bindings]]
//! name = "LIMITERS"
//! class_name = "RateLimiterObject"
//!
//! [[migrations]]
//! tag = "v1"
//! new_sqlite_classes = ["RateLimiterObject"]
//! ```
//!
//! `object`, `row` and `client` touch the platform; the other modules are plain Rust and have native tests.

mod account;
mod address;
mod client;
mod codec;
mod error;
mod fault;
mod message;
#[allow(missing_docs, reason = "what #[durable_object] generates has no documentation")]
mod object;
mod policies;
mod row;
mod states;
#[doc(hidden)]
pub mod wire;

pub use address::{client_address, client_key};
pub use client::Limits;
pub use error::LimitsError;
pub use object::RateLimiterObject;
