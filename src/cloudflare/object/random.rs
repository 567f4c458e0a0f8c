//! Random bits from the platform: the core has no source of randomness.

use wasm_bindgen::prelude::*;

use crate::cloudflare::thrown::ThrownError;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &mut [u8]) -> Result<JsValue, JsValue>;
}

/// Returns 128 cryptographically random bits.
pub(crate) fn random_bits() -> Result<u128, ThrownError> {
    let mut bytes = [0; 16];
    get_random_values(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
