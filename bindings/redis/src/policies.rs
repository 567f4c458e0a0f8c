//! Policies from JSON, as a store outside the process takes them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use tollgate::replay;
use tollgate::{Denied, Error, Policies, Policy, PolicyDraft};
use wasm_bindgen::prelude::*;

/// Reads a list of policies. A single one whose denied hits were not chosen to count has them free, as in every store
/// outside the process.
pub(crate) fn read(json: &str) -> Result<Policies, JsValue> {
    let drafts: Vec<PolicyDraft> = serde_json::from_str(json).map_err(|error| thrown("invalid_policy", &error))?;
    let list: Result<Vec<Policy>, Error> = drafts.iter().map(PolicyDraft::build).collect();
    let mut list = list.map_err(|error| coded(&error))?;
    if let [policy] = &mut list[..] {
        *policy = free_by_default(policy.clone()).map_err(|error| coded(&error))?;
    }
    Policies::new(list).map_err(|error| coded(&error))
}

fn free_by_default(policy: Policy) -> Result<Policy, Error> {
    // Under a concurrency policy nothing is ever counted that was denied.
    let is_free = policy.has_choice() || policy.algorithm() == "concurrency";
    if is_free { Ok(policy) } else { policy.denied(Denied::Free) }
}

/// Returns policies, as JSON, that allow so many millionths of what these allow.
#[wasm_bindgen]
pub fn share(json: &str, millionths: u32) -> Result<String, JsValue> {
    let shared = replay::share(&read(json)?, millionths.into()).map_err(|error| coded(&error))?;
    let list: Vec<&Policy> = shared.iter().collect();
    serde_json::to_string(&list).map_err(|error| thrown("invalid_policy", &error))
}

/// Returns 64 bits of a text's SHA-256.
pub(crate) fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    digest.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// Returns an error as JavaScript catches it: its code and its message in two lines.
pub(crate) fn coded(error: &Error) -> JsValue {
    thrown(error.code(), error)
}

fn thrown(code: &str, message: &dyn core::fmt::Display) -> JsValue {
    JsValue::from_str(&format!("{code}\n{message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_start_of_sha_256() {
        assert_eq!(hash("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn denied_hits_of_one_policy_are_free_unless_they_count() {
        let window = r#"{"algorithm":"fix_window","limit":8,"scale":"1m"}"#;
        let counting = r#"{"algorithm":"fix_window","limit":8,"scale":"1m","denied":"count"}"#;
        let shared = |json: &str| share(json, 500_000).unwrap();
        assert_eq!(
            shared(&format!("[{window}]")),
            r#"[{"algorithm":"fix_window","limit":4,"scale":60000,"denied":"free"}]"#
        );
        assert_eq!(
            shared(&format!("[{counting}]")),
            r#"[{"algorithm":"fix_window","limit":4,"scale":60000,"denied":"count"}]"#
        );
        assert!(!shared(&format!("[{window},{window}]")).contains("denied"));
        let slots = r#"[{"algorithm":"concurrency","limit":8,"ttl":"1m"}]"#;
        assert_eq!(shared(slots), r#"[{"algorithm":"concurrency","limit":4,"ttl":60000}]"#);
    }
}
