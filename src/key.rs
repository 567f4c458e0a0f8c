//! What a key must be before it may leave the process.

use crate::Error;
use crate::text::{digits, text};

/// The longest key, in UTF-8 bytes, that a store outside the process takes.
pub const MAX_KEY_BYTES: usize = 1024;

/// What such a key may be, for error messages.
pub(crate) const ACCEPTS: &str = "a string of 1 to 1024 UTF-8 bytes";

/// Passes a key that may leave the process: 1 to 1,024 bytes of UTF-8.
///
/// ```
/// use tollgate::check_key;
///
/// assert_eq!(check_key("login:42"), Ok("login:42"));
/// assert!(check_key("").is_err());
/// assert!(check_key(&"k".repeat(1025)).is_err());
/// ```
pub fn check_key(key: &str) -> Result<&str, Error> {
    match key.len() {
        0 => Err(Error::key("an empty string")),
        1..=MAX_KEY_BYTES => Ok(key),
        bytes => Err(Error::key(&text(&["a string of ", &digits(bytes as u64), " bytes"]))),
    }
}
