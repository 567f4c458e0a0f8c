//! The wasm behind the Cloudflare Worker: the gateway and its configuration.
//!
//! `gateway` and `binding_error` use the platform; the other modules are plain Rust and have native tests.

mod binding_error;
mod config;
mod cors;
mod crash;
mod credential;
mod digest;
mod fold;
mod gateway;
mod items;
mod key;
mod leases;
mod method;
mod path;
mod pattern;
mod plan;
mod policies;
mod reader;
mod reading;
mod request_error;
mod rule_key;
mod rules;
mod text;
mod tokens;
mod tree;

/// Smaller than the standard library's allocator.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

pub use crash::crash;
pub use gateway::Gateway;
pub use tollgate::cloudflare::RateLimiterObject;
pub use tollgate_lease::Leases;
