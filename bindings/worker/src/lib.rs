//! The wasm behind the Cloudflare Worker: the gateway and its configuration.
