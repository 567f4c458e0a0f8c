//! Policies from JSON, as a store outside the process takes them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tollgate::redis_log::{self, ReplayError};
use tollgate::{Error, Policies, Policy, PolicyDraft};
use wasm_bindgen::prelude::*;

/// Reads a list of policies.
pub(crate) fn read(json: &str) -> Result<Policies, JsValue> {
    let drafts: Vec<PolicyDraft> = serde_json::from_str(json).map_err(|error| thrown("invalid_policy", &error))?;
    let list: Result<Vec<Policy>, Error> = drafts.iter().map(PolicyDraft::build).collect();
    Policies::new(list.map_err(|error| coded(&error))?).map_err(|error| coded(&error))
}

/// Returns policies, as JSON, that allow so many millionths of what these allow.
#[wasm_bindgen]
pub fn share(json: &str, millionths: u32) -> Result<String, JsValue> {
    let shared = redis_log::share(&read(json)?, millionths.into()).map_err(|error| coded(&error))?;
    let list: Vec<&Policy> = shared.iter().collect();
    serde_json::to_string(&list).map_err(|error| thrown("invalid_policy", &error))
}

/// Returns what a value says of its key at `now`, as JSON, under the policies of its last operation, or under these in JSON.
/// Entries after `since` are counted.
#[wasm_bindgen]
pub fn inspect(value: &str, now: f64, since: f64, policies: Option<String>) -> Result<String, JsValue> {
    let policies = policies.map(|json| read(&json)).transpose()?;
    let inspection = redis_log::inspect(value, now as u64, since as u64, policies.as_ref()).map_err(unreadable)?;
    serde_json::to_string(&inspection).map_err(|error| thrown("invalid_state", &error))
}

fn unreadable(error: ReplayError) -> JsValue {
    match error {
        ReplayError::Malformed => thrown("invalid_state", &"the value is not a log that this library wrote"),
        ReplayError::UnsupportedVersion => thrown("unsupported_version", &"the value is of another version"),
        ReplayError::OutOfMemory => thrown("out_of_memory", &"there is no memory for the value"),
    }
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
    fn a_share_keeps_the_other_fields() {
        let window = r#"{"algorithm":"fix_window","limit":8,"scale":"1m","unit":"tokens"}"#;
        let counting = r#"{"algorithm":"fix_window","limit":8,"scale":"1m","denied":"count"}"#;
        let shared = |json: &str| share(json, 500_000).unwrap();
        assert_eq!(
            shared(&format!("[{window}]")),
            r#"[{"algorithm":"fix_window","limit":4,"scale":60000,"unit":"tokens"}]"#
        );
        assert_eq!(
            shared(&format!("[{counting}]")),
            r#"[{"algorithm":"fix_window","limit":4,"scale":60000,"denied":"count"}]"#
        );
        let slots = r#"[{"algorithm":"concurrency","limit":8,"ttl":"1m"}]"#;
        assert_eq!(shared(slots), r#"[{"algorithm":"concurrency","limit":4,"ttl":60000}]"#);
    }
}
