//! The small wasm behind `tollgate/throttle`: decides hits on states that JavaScript keeps.
//!
//! It has no state of its own between two calls, so it needs no slots and no handles, and a trap loses nothing. All exports
//! take and return numbers.

// Exports must be `pub`, though no crate uses them.
#![allow(unreachable_pub)]
#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

mod exports;

#[cfg(all(target_arch = "wasm32", not(test)))]
mod platform;
