//! The wasm behind the npm package.
