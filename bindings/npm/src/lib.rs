//! The wasm behind the npm package.
//!
//! All exports are plain functions of numbers: `hot` has the hits, `limiter` the cold operations. JavaScript maps keys to
//! slots and copies its arguments before a call, so that no function here calls foreign code.

// Exports must be `pub`, though no crate uses them.
#![allow(unreachable_pub)]
#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

pub mod generated;
pub mod handles;
mod hot;
mod limiter;
mod result_buffer;

#[cfg(all(target_arch = "wasm32", not(test)))]
mod platform {
    tollgate_platform::platform!();
    tollgate_platform::grow_ahead!();
}
