//! The wasm behind the Redis limiter: the states of keys, kept by replaying their logs.
//!
//! Apart from the limiter's in memory, so that a page which uses no Redis does not ship it.

// wasm-bindgen's exports must be `pub`, though no crate reaches them.
#![allow(unreachable_pub)]
#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

mod policies;
mod replicas;

pub use tollgate_lease::Leases;

#[cfg(all(target_arch = "wasm32", not(test)))]
mod platform {
    tollgate_platform::platform!();
    tollgate_platform::grow_ahead!();
}
