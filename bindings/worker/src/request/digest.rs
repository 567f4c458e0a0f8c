//! Digests of keys: of keys that are too long for a name, and of keys in logs.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a message in hexadecimal.
pub(crate) fn digest(message: &str) -> String {
    hex(&Sha256::digest(message))
}

/// Returns the first 12 bytes of a message's HMAC-SHA-256 in hexadecimal. Without the secret nobody can test guesses.
pub(crate) fn keyed_digest(secret: &str, message: &str) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(message.as_bytes());
    hex(&mac.finalize().into_bytes()[..12])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha_256() {
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_keyed_digest_is_hmac_sha_256() {
        // The second case of RFC 4231.
        assert_eq!(keyed_digest("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426");
    }
}
