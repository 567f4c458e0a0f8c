//! Exact limits on Cloudflare Workers: a Durable Object for each key, and a client for it.
//!
//! A Worker in Rust exports the object with one line, `pub use tollgate::cloudflare::RateLimiterObject;`, and calls it
//! through [`Limits`]. The [guide](crate::guide#on-cloudflare-workers) shows a whole Worker.
//!
//! The binding and the migration in `wrangler.toml`:
//!
//! ```toml
//! [[durable_objects.bindings]]
//! name = "LIMITERS"
//! class_name = "RateLimiterObject"
//!
//! [exports.RateLimiterObject]
//! type = "durable-object"
//! storage = "sqlite"
//! ```
//!
//! `object`, `row`, `random` and `client` use the platform; the other modules are plain Rust and have native tests.

mod address;
mod client;
mod error;
#[cfg(feature = "tower")]
mod layer;
#[allow(missing_docs, reason = "the code that #[durable_object] generates has no documentation")]
mod object;
mod protocol;
mod thrown;

pub use address::{client_address, client_key};
pub use client::Limits;
pub use error::LimitsError;
pub use object::RateLimiterObject;
#[doc(hidden)]
pub use object::in_memory::ObjectInMemory;
#[doc(hidden)]
pub use protocol::wire;
#[doc(hidden)]
pub use thrown::ThrownError;
