//! The Durable Object of one key, on Cloudflare Workers.
//!
//! `object` and `row` touch the platform; the other modules are plain Rust and have native tests.

mod codec;
mod fault;
mod object;
mod policies;
mod row;
mod states;
#[doc(hidden)]
pub mod wire;

pub use object::RateLimiterObject;
