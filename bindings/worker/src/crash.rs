//! A panic on purpose, for the test of what happens after one.

use wasm_bindgen::prelude::*;

/// Panics.
#[wasm_bindgen]
#[allow(clippy::panic, reason = "the test needs a real one")]
pub fn crash() {
    panic!("a panic on purpose");
}
