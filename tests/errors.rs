//! The errors in `tests/errors.json`, in the same words as in the npm package, which has a reader of its own.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use tollgate::{Error, Limiter, ManualClock, Operation, Policies, PolicyDraft, Record, step};

#[derive(Deserialize)]
struct Errors {
    policies: Vec<(Drafts, String, String)>,
    calls: Vec<(Drafts, Drafts, String, String)>,
    states: Vec<(Drafts, Option<Record>, String, String)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Drafts {
    Many(Vec<PolicyDraft>),
    One(PolicyDraft),
}

impl Drafts {
    fn read(&self) -> Result<Policies, Error> {
        let drafts = match self {
            Self::Many(drafts) => drafts.as_slice(),
            Self::One(draft) => core::slice::from_ref(draft),
        };
        Policies::new(drafts.iter().map(PolicyDraft::build).collect::<Result<Vec<_>, _>>()?)
    }
}

fn errors() -> Errors {
    serde_json::from_str(include_str!("errors.json")).unwrap()
}

#[track_caller]
fn assert_error(error: &Error, code: &str, message: &str) {
    assert_eq!((error.code(), error.to_string().as_str()), (code, message));
}

#[test]
fn in_policies() {
    for (policies, code, message) in errors().policies {
        assert_error(&policies.read().unwrap_err(), &code, &message);
    }
}

#[test]
fn in_policies_for_one_call() {
    for (own, call, code, message) in errors().calls {
        let mut limiter = Limiter::<String, _>::new(own.read().unwrap(), ManualClock::new(0)).unwrap();
        assert_error(&limiter.hit_with("key", 1, &call.read().unwrap()).unwrap_err(), &code, &message);
    }
}

#[test]
fn in_stored_states() {
    for (policies, state, code, message) in errors().states {
        let stepped = step(&policies.read().unwrap(), state.as_ref(), Operation::Hit { cost: 1 }, 500);
        assert_error(&stepped.unwrap_err(), &code, &message);
    }
}

#[test]
fn guides_in_messages_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = tollgate::boundary::TEXTS.iter().flat_map(|(_, text)| text.split(' '));
    let guides: Vec<_> = words.filter(|word| word.starts_with("docs/")).collect();
    assert!(!guides.is_empty());
    for guide in guides {
        assert!(root.join(guide).is_file(), "{guide}");
    }
}
