//! The policies that an object is asked about, from JSON.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::fault::Fault;
use super::wire::free_by_default;
use crate::{Policies, PolicyDraft};

/// Reads one policy, or a list of them.
pub(super) fn read(json: &str) -> Result<Policies, Fault> {
    let Ok(Drafts(drafts)) = serde_json::from_str(json) else {
        let message = "policies: expected a policy, or a list of policies".into();
        return Err(Fault::Coded { code: "invalid_policy", message });
    };
    let mut policies = Vec::new();
    for draft in &drafts {
        let policy = draft.build()?;
        policies.push(if drafts.len() > 1 { policy } else { free_by_default(policy)? });
    }
    Ok(Policies::new(policies)?)
}

/// The drafts of one policy or several.
struct Drafts(Vec<PolicyDraft>);

impl<'de> Deserialize<'de> for Drafts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DraftsVisitor)
    }
}

struct DraftsVisitor;

impl<'de> Visitor<'de> for DraftsVisitor {
    type Value = Drafts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy, or a list of policies")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Drafts, A::Error> {
        PolicyDraft::deserialize(MapAccessDeserializer::new(map)).map(|draft| Drafts(vec![draft]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Drafts, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Drafts)
    }
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
            [("", "policies"), ("7", "policies"), ("[7]", "policies"), ("[]", "policies"), ("{}", "algorithm")]
        {
            let Err(Fault::Coded { message, .. }) = read(json) else { panic!("{json} was accepted") };
            assert!(message.starts_with(expected), "{json}: {message}");
        }
    }
}
