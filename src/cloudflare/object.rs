//! The Durable Object of one key.

pub(crate) mod account;
mod codec;
mod credit;
pub(crate) mod error;
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
use crate::cloudflare::object::error::ObjectError;
use crate::cloudflare::protocol::{message, wire};

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
    /// Applies one operation under policies in JSON. Returns a decision as nine numbers in a string, followed by the id
    /// of a reservation, and any other result as one field.
    #[doc(hidden)]
    pub fn apply(
        &self,
        operation: &str,
        policies: &str,
        amount: f64,
        of: Option<String>,
        credit: bool,
        now: f64,
    ) -> Result<String, ObjectError> {
        let now = wire::time(now)?;
        let settles = &wire::settled_first(operation, of.as_deref())?;
        let operation = wire::operation(operation, amount, of.as_deref())?;
        let request = AccountRequest { operation, settles, policies, credit };
        Ok(self.account.borrow_mut().apply(request, now)?.to_text())
    }

    /// Applies one operation in JSON, and returns the result in JSON.
    #[doc(hidden)]
    pub fn answer(&self, question: &str, now: f64) -> Result<String, ObjectError> {
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
    pub fn expire(&self, now: f64) -> Result<Array, ObjectError> {
        let Expired { ended, empty } = self.account.borrow_mut().expire(wire::time(now)?)?;
        Ok(Array::of2(&ended.to_json().into(), &empty.into()))
    }
}
