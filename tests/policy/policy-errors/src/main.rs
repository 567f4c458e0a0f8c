//! Reads policies, a line of JSON each, and prints what the crate makes of each, also as JSON: the headers of its
//! first decision, or the error. `tests/policy/policies.test.mjs` compares that with the other readers of policies.

use std::io::{BufRead, Result, Write, stdin, stdout};

use serde_json::{Value, json};
use tollgate::{Error, Ledger, Limiter, ManualClock, Policies, Policy, rate_limit_headers};

/// As in the other readers: a time that lies in another day, week or month at some offsets from UTC.
const NOW: u64 = 1_772_323_200_000;

fn main() -> Result<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let verdict = verdict(&line?).unwrap_or_else(|error| described(&error));
        writeln!(out, "{verdict}")?;
    }
    Ok(())
}

fn verdict(json: &str) -> std::result::Result<Value, Error> {
    let policy = Policy::from_json(json)?;
    let policies = Policies::from(policy.clone());
    let decision = Limiter::<u8, _>::new(policy.clone(), ManualClock::new(NOW))?.peek(&0, 1)?;
    let headers: Vec<_> = rate_limit_headers(&decision, &policies).into_iter().map(|(_, value)| value).collect();
    Ok(json!({ "headers": headers, "stored": Ledger::new(policy).err().as_ref().map(described) }))
}

/// Returns an error, and its parts as a configuration shows them under a path.
fn described(error: &Error) -> Value {
    json!({
        "code": error.code(),
        "field": error.field(),
        "message": error.to_string(),
        "problem": error.problem().to_string(),
    })
}
