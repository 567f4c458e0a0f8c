//! The wasm behind the Cloudflare Worker: the gateway and its configuration.
//!
//! `gateway` uses the platform; the other modules are plain Rust and have native tests: `config` reads the
//! configuration, `request` matches requests with it, `api` reads the items of the HTTP API.

mod api;
mod config;
mod crash;
mod gateway;
mod reader;
mod request;
mod text;
mod tree;

/// Smaller than the standard library's allocator.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

pub use crash::crash;
pub use gateway::Gateway;
pub use tollgate::cloudflare::RateLimiterObject;
pub use tollgate_lease::Leases;
