//! The policies of a request to an object, from JSON.

use crate::cloudflare::thrown::ThrownError;
use crate::{Error, Policies, Policy, PolicyDraft};

/// Parses one policy, or a list of them.
pub(crate) fn read(json: &str) -> Result<Policies, ThrownError> {
    let drafts: Result<Vec<PolicyDraft>, _> = match json.trim_ascii_start().starts_with('[') {
        true => serde_json::from_str(json),
        false => serde_json::from_str(json).map(|draft| vec![draft]),
    };
    let Ok(drafts) = drafts else {
        let message = "policies: the text is not JSON; give a policy, or a list of policies".into();
        return Err(ThrownError::Coded { code: "invalid_policy", message });
    };
    let policies: Result<Vec<Policy>, Error> = drafts.iter().map(PolicyDraft::build).collect();
    Ok(Policies::new(policies?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: &str = r#"{"algorithm":"fix_window","limit":5,"scale":"1m"}"#;

    #[test]
    fn one_policy_or_a_list() {
        assert_eq!(read(WINDOW).unwrap().len(), 1);
        assert_eq!(read(&format!("[{WINDOW},{WINDOW}]")).unwrap().len(), 2);
    }

    #[test]
    fn anything_else_is_an_error_with_a_code() {
        for (json, expected) in
            [("", "policies"), ("7", "policy"), ("[7]", "policy"), ("[]", "policies"), ("{}", "algorithm")]
        {
            let Err(ThrownError::Coded { message, .. }) = read(json) else { panic!("{json} was accepted") };
            assert!(message.starts_with(expected), "{json}: {message}");
        }
    }
}
