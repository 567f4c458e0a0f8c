//! A Worker that calls `Limits` as its tests ask it to: an operation in JSON, and what it returned in JSON.

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::cloudflare::{Limits, LimitsError};
use tollgate::{Policies, Policy};
use worker::{Context, Env, Request, Response, Result, event};

/// The Durable Object that holds the states of one key.
pub use tollgate::cloudflare::RateLimiterObject;

#[derive(Deserialize)]
struct Call {
    operation: String,
    key: String,
    policies: Vec<Policy>,
    cost: u64,
    credit: bool,
    /// The id of a hit that is undone.
    id: Option<String>,
}

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _context: Context) -> Result<Response> {
    let call: Call = request.json().await?;
    let answer = match perform(&env, &call).await {
        Ok(answer) => answer,
        Err(error) => json!({ "code": error.code() }),
    };
    Response::from_json(&answer)
}

async fn perform(env: &Env, call: &Call) -> std::result::Result<Value, LimitsError> {
    let Call { key, cost, .. } = call;
    let limits = Limits::new(env, "LIMITERS", Policies::new(call.policies.iter().cloned())?)?;
    let limits = if call.credit { limits.with_credit() } else { limits };
    Ok(match &call.operation[..] {
        "hit" => json!({ "allowed": limits.hit(key, *cost).await?.allowed }),
        "hit_undoable" => {
            let (decision, id) = limits.hit_undoable(key, (*cost).into()).await?;
            json!({ "allowed": decision.allowed, "id": id.map(|id| id.to_string()) })
        }
        "undo" => {
            let id = call.id.as_deref().unwrap_or_default().parse()?;
            json!({ "undone": limits.undo(key, &id, (*cost).into()).await? })
        }
        _ => json!({ "count": limits.get(key, None).await? }),
    })
}
