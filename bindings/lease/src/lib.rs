//! The holder's side of leases in wasm.
//!
//! The clients of the HTTP API use it as a wasm of its own; the bindings of the Worker and of Redis contain it.

// wasm-bindgen's exports must be `pub`, though no crate reaches them.
#![allow(unreachable_pub)]
#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

mod leases;

#[cfg(all(feature = "standalone", target_arch = "wasm32", not(test)))]
mod platform {
    tollgate_platform::platform!();
}

pub use leases::Leases;
