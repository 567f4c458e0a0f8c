//! The Durable Object of one key.

pub(crate) mod account;
mod codec;
mod credit;
pub(super) mod in_memory;
#[cfg(test)]
mod many_policies;
pub(crate) mod random;
mod row;
#[cfg(test)]
mod simulation;
mod states;

use std::cell::RefCell;

use js_sys::Array;
use wasm_bindgen::prelude::*;
use worker::{Date, DurableObject, Env, Request, Response, State, console_log, durable_object};

use crate::cloudflare::object::account::{Account, Expired, Request as AccountRequest};
use crate::cloudflare::object::random::random_bits;
use crate::cloudflare::protocol::{message, wire};
use crate::cloudflare::thrown::ThrownError;
use crate::{Costs, Operation};

/// The Durable Object of one key. Its name is the key.
///
/// A Rust Worker exports it with one line, `pub use tollgate::cloudflare::RateLimiterObject;`, and calls it through
/// [`Limits`](super::Limits). The platform calls its methods.
#[durable_object(alarm)]
#[derive(Debug)]
pub struct RateLimiterObject {
    state: State,
    account: RefCell<Account>,
}

impl DurableObject for RateLimiterObject {
    fn new(state: State, _env: Env) -> Self {
        Self { account: RefCell::new(Account::new(&state)), state }
    }

    async fn fetch(&self, mut request: Request) -> worker::Result<Response> {
        let question = request.text().await?;
        let answer = self.answer(&question, Date::now().as_millis() as f64).map_err(JsValue::from)?;
        let mut response = Response::ok(answer)?;
        response.headers_mut().set("Content-Type", "application/json")?;
        Ok(response)
    }

    async fn alarm(&self) -> worker::Result<Response> {
        let expired = self.account.borrow_mut().expire(Date::now().as_millis()).map_err(JsValue::from)?;
        for line in expired.ended.log_lines(&self.state.id().to_string()) {
            console_log!("{line}");
        }
        if expired.empty {
            self.state.storage().delete_all().await?;
        }
        Response::empty()
    }
}

/// The methods that JavaScript calls. Their arguments are numbers and strings, which cross the boundary fastest.
#[wasm_bindgen]
impl RateLimiterObject {
    /// Decides a hit under policies in JSON. Returns a decision as nine numbers in a string. With `credit`, allowed hits
    /// may be kept in memory.
    #[doc(hidden)]
    pub fn hit(&self, policies: &str, cost: f64, credit: bool, now: f64) -> Result<String, ThrownError> {
        self.apply(Operation::Hit { cost: wire::amount(cost)? }, policies, credit, now)
    }

    /// Performs `peek`, `inc`, `set`, `get`, `expires_at` or `reset`; `policy` is the name of one of several policies.
    /// Returns a decision, or one field.
    #[doc(hidden)]
    pub fn count(
        &self,
        operation: &str,
        policies: &str,
        amount: f64,
        policy: Option<String>,
        credit: bool,
        now: f64,
    ) -> Result<String, ThrownError> {
        self.apply(wire::counted(operation, amount, policy.as_deref())?, policies, credit, now)
    }

    /// Charges what the holder of a lease reports, decides a hit, and makes the lease larger and longer. Returns a
    /// decision, followed by the lease.
    #[doc(hidden)]
    pub fn lease(
        &self,
        policies: &str,
        cost: f64,
        report: &str,
        credit: bool,
        now: f64,
    ) -> Result<String, ThrownError> {
        let operation = Operation::Lease { cost: wire::amount(cost)?, renewal: wire::renewal(report)? };
        self.apply(operation, policies, credit, now)
    }

    /// Decides a hit of a decision over several keys. Returns a decision, followed by the id of the hit if it can be undone.
    #[doc(hidden)]
    #[wasm_bindgen(js_name = hitUndoable)]
    pub fn hit_undoable(&self, policies: &str, cost: f64, now: f64) -> Result<String, ThrownError> {
        let (costs, random) = (Costs::All(wire::amount(cost)?), random_bits()? as u64);
        self.apply(Operation::HitUndoable { costs, random }, policies, false, now)
    }

    /// Undoes such a hit of this cost. Returns what was given back.
    #[doc(hidden)]
    pub fn undo(&self, policies: &str, cost: f64, id: &str, now: f64) -> Result<String, ThrownError> {
        let operation = Operation::Undo { id: id.parse()?, costs: Costs::All(wire::amount(cost)?) };
        self.apply(operation, policies, false, now)
    }

    /// Returns whether nothing is stored of the key, and keeps what is stored from now on for `kept_for` at least.
    #[doc(hidden)]
    #[wasm_bindgen(js_name = isNew)]
    pub fn is_new(&self, policies: &str, kept_for: f64, now: f64) -> Result<bool, ThrownError> {
        self.account.borrow_mut().is_new(policies, wire::time(kept_for)?, wire::time(now)?)
    }

    /// Applies one operation in JSON, and returns the result in JSON.
    #[doc(hidden)]
    pub fn answer(&self, question: &str, now: f64) -> Result<String, ThrownError> {
        message::answer(&mut self.account.borrow_mut(), question, wire::time(now)?)
    }

    /// Returns the names of the policies of the last operation.
    #[doc(hidden)]
    pub fn names(&self) -> Vec<String> {
        let account = self.account.borrow();
        account.policies().map(|policies| policies.names().map(Into::into).collect()).unwrap_or_default()
    }

    /// Handles the alarm: returns unspent credit, the states that have ended, as JSON, and whether the storage can be
    /// deleted. Otherwise the alarm is set again, because the key is in use.
    #[doc(hidden)]
    pub fn expire(&self, now: f64) -> Result<Array, ThrownError> {
        let Expired { ended, empty } = self.account.borrow_mut().expire(wire::time(now)?)?;
        Ok(Array::of2(&ended.to_json().into(), &empty.into()))
    }
}

impl RateLimiterObject {
    /// Not inlined into each method, for the size of the wasm.
    #[inline(never)]
    fn apply(&self, operation: Operation<'_>, policies: &str, credit: bool, now: f64) -> Result<String, ThrownError> {
        let request = AccountRequest { operation, policies, credit };
        Ok(self.account.borrow_mut().apply(request, wire::time(now)?)?.to_text())
    }
}
