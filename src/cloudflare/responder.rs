//! From a decision to what an HTTP client is told.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::fault::Fault;
use super::message::{self, DecisionMessage};
use crate::{Policies, problem_body, rate_limit_headers};

/// Tells clients about decisions under some policies, which are read once.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Responder {
    policies: Policies,
}

/// The parts of a response: its body only where the core has one to give.
#[derive(Serialize)]
struct Parts {
    status: u16,
    headers: Vec<(&'static str, String)>,
    problem: Option<String>,
}

#[wasm_bindgen]
impl Responder {
    /// Policies as JSON, as the object is given them.
    #[wasm_bindgen(constructor)]
    pub fn new(policies: &str) -> Result<Responder, Fault> {
        Ok(Self { policies: message::policies(policies)? })
    }

    /// A decision as the object answered it, in JSON; status, headers and problem body out, in JSON.
    pub fn parts(&self, decision: &str) -> Result<String, Fault> {
        let decision = serde_json::from_str::<DecisionMessage>(decision)?.decision(&self.policies)?;
        let mut headers = rate_limit_headers(&decision, &self.policies);
        let problem = (!decision.allowed).then(|| problem_body(&decision, &self.policies));
        if problem.is_some() {
            headers.push(("Content-Type", "application/problem+json".into()));
        }
        Ok(serde_json::to_string(&Parts { status: if decision.allowed { 200 } else { 429 }, headers, problem })?)
    }
}
