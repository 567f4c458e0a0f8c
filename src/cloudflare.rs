//! What the Worker's entry asks of Rust: strings and numbers in, a plan or an answer out.
//!
//! Nothing here is arithmetic of rates: it converts and delegates to the core. What touches the platform is in
//! `gateway`, `object`, `row`, `from_js` and `fault`; the rest is plain Rust, and tested as such.

#![cfg_attr(not(feature = "cloudflare"), allow(dead_code))]

mod address;
mod codec;
mod config;
mod deny_cache;
mod items;
mod key;
mod numbers;
mod path;
mod pattern;
mod plan;
mod policies;
mod reader;
mod rules;
mod sha256;
mod states;
mod tree;

#[cfg(feature = "cloudflare")]
mod fault;
#[cfg(feature = "cloudflare")]
mod from_js;
#[cfg(feature = "cloudflare")]
mod gateway;
#[cfg(feature = "cloudflare")]
mod object;
#[cfg(feature = "cloudflare")]
mod row;
