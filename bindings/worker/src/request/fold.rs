//! Case folding.

/// Folds the letter case of a text: `ß` and `SS`, `K` and the sign for kelvin become the same.
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { folded_beyond_ascii(text) }
}

/// Folds by the platform: tables of all letters would be a fifth of the wasm's data.
#[cfg(target_arch = "wasm32")]
fn folded_beyond_ascii(text: &str) -> String {
    js_sys::JsString::from(text).to_upper_case().to_lower_case().into()
}

#[cfg(not(target_arch = "wasm32"))]
fn folded_beyond_ascii(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_folded_beyond_ascii() {
        for (one, other) in [("Login", "lOGIN"), ("CAFÉ", "café"), ("straße", "STRASSE"), ("\u{212a}é", "ké")] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
    }
}
