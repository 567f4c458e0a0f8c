//! One key: its states, its reservations, and every operation on them.

pub(crate) mod bans;
pub(crate) mod decide;
pub(crate) mod exceptions;
pub(crate) mod open_reservations;
pub(crate) mod operate;
pub(crate) mod perform;
pub(crate) mod policy_states;
pub(crate) mod reservation;
pub(crate) mod rows;
pub(crate) mod shapes;
pub(crate) mod states;
pub(crate) mod undo;

use crate::policy::schema::MAX_KEY_BYTES;
use crate::{Error, Found};

/// Checks a key for a store outside the process: 1 to 1,024 bytes of UTF-8. Returns the key.
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
        0 => Err(Error::InvalidKey { found: Found::Described("an empty string") }),
        1..=MAX_KEY_BYTES => Ok(key),
        bytes => Err(Error::InvalidKey { found: Found::Bytes(bytes) }),
    }
}
