//! The client of the objects, for Workers in Rust.

use serde_json::value::RawValue;
use worker::{Env, Headers, Method, ObjectNamespace, Request, RequestInit, Response};

use super::error::LimitsError;
use super::message::{Message, Question};
use crate::{Decision, Error, IntoPolicies, Policies, check_key, problem_body, rate_limit_headers};

/// Limits by key, exact everywhere: each key is a [`RateLimiterObject`](super::RateLimiterObject).
///
/// Each operation asks the key's object once, over `fetch`; a second time if the platform says that this helps.
///
/// ```no_run
/// use tollgate::Policy;
/// use tollgate::cloudflare::Limits;
///
/// # async fn example(env: worker::Env) -> worker::Result<()> {
/// let policies = [
///     Policy::token_bucket(10, 2, "1s")?.named("burst")?,
///     Policy::fix_window(1_000, "1d")?.named("daily")?,
/// ];
/// let limits = Limits::new(&env, "LIMITERS", policies)?;
/// let decision = limits.hit("user:42", 1).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    namespace: ObjectNamespace,
    policies: Policies,
    /// The policies in JSON, as the objects take them.
    json: Box<RawValue>,
}

impl Limits {
    /// Returns the limits under these policies, by the objects of a binding.
    ///
    /// # Errors
    ///
    /// If the policies do not go together, or there is no such binding.
    pub fn new(env: &Env, binding: &str, policies: impl IntoPolicies) -> Result<Self, LimitsError> {
        let policies = policies.into_policies()?;
        crate::Ledger::new(policies.clone())?;
        let list: Vec<_> = policies.iter().collect();
        let json = serde_json::value::to_raw_value(&list).map_err(worker::Error::from)?;
        Ok(Self { namespace: env.durable_object(binding)?, policies, json })
    }

    /// Returns the policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Decides whether a key may act now, and takes `cost` if so. Several policies are one decision.
    ///
    /// # Errors
    ///
    /// If the key or the cost is invalid, or the object does not answer. It is for the caller to decide what an object
    /// that does not answer means.
    pub async fn hit(&self, key: &str, cost: u64) -> Result<Decision, LimitsError> {
        self.decision("hit", key, cost).await
    }

    /// Returns the decision that [`hit`](Self::hit) would make. Changes nothing.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn peek(&self, key: &str, cost: u64) -> Result<Decision, LimitsError> {
        self.decision("peek", key, cost).await
    }

    /// Adds `cost` without asking, and returns the count. With several policies, `policy` names one.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit), and if no policy has that name.
    pub async fn inc(&self, key: &str, cost: u64, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number("inc", key, cost, policy).await
    }

    /// Makes a key as if `count` had just been used, or leaves it `count` tokens. Returns the count.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc), and if the policy cannot be set to that count.
    pub async fn set(&self, key: &str, count: u64, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number("set", key, count, policy).await
    }

    /// Returns a key's count.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc).
    pub async fn get(&self, key: &str, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number("get", key, 0, policy).await
    }

    /// Returns when a key's state ends, in milliseconds since the epoch; 0 if it has none.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc).
    pub async fn expires_at(&self, key: &str, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number("expires_at", key, 0, policy).await
    }

    /// Forgets what a key has used. Returns whether it had used anything.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn reset(&self, key: &str) -> Result<bool, LimitsError> {
        match self.ask("reset", key, 0, None).await? {
            Message::Reset(was_used) => Ok(was_used),
            _ => Err(unexpected()),
        }
    }

    /// Returns the headers that tell a client of a decision: `RateLimit-Policy`, `RateLimit`, and `Retry-After` on a
    /// denial that ends.
    ///
    /// # Errors
    ///
    /// Fails only if the platform does.
    pub fn headers(&self, decision: &Decision) -> worker::Result<Headers> {
        let headers = Headers::new();
        self.set_headers(&headers, decision)?;
        Ok(headers)
    }

    /// Returns a response with the headers of a decision.
    ///
    /// # Errors
    ///
    /// Fails only if the platform does.
    pub fn with_headers(&self, response: Response, decision: &Decision) -> worker::Result<Response> {
        // A copy: the headers of a response that was fetched cannot be changed.
        let headers = response.headers().clone();
        self.set_headers(&headers, decision)?;
        Ok(response.with_headers(headers))
    }

    /// Returns the response to a denied request: 429, with headers and a body of type `application/problem+json`.
    ///
    /// # Errors
    ///
    /// Fails only if the platform does.
    pub fn denial(&self, decision: &Decision) -> worker::Result<Response> {
        let response = Response::ok(problem_body(decision, &self.policies))?.with_status(429);
        let headers = self.headers(decision)?;
        headers.set("Content-Type", "application/problem+json")?;
        headers.set("Cache-Control", "no-store")?;
        Ok(response.with_headers(headers))
    }

    fn set_headers(&self, headers: &Headers, decision: &Decision) -> worker::Result<()> {
        for (name, value) in rate_limit_headers(decision, &self.policies) {
            headers.set(name, &value)?;
        }
        Ok(())
    }

    async fn decision(&self, operation: &str, key: &str, cost: u64) -> Result<Decision, LimitsError> {
        match self.ask(operation, key, cost, None).await? {
            Message::Decision(decision) => decision.under(&self.policies).ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }

    async fn number(&self, operation: &str, key: &str, amount: u64, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.policies.position(policy)?;
        match self.ask(operation, key, amount, policy).await? {
            Message::Number(number) => Ok(number),
            _ => Err(unexpected()),
        }
    }

    async fn ask(&self, operation: &str, key: &str, amount: u64, policy: Option<&str>) -> Result<Message, LimitsError> {
        check_key(key)?;
        let question = Question { operation, policies: &self.json, amount, policy: policy.map(Into::into) };
        let question = serde_json::to_string(&question).map_err(worker::Error::from)?;
        let answer = match self.fetch(key, &question).await.map_err(LimitsError::from) {
            // More requests only make an overload worse.
            Err(error) if error.is_retryable() && !error.is_overloaded() => self.fetch(key, &question).await?,
            other => other?,
        };
        match serde_json::from_str(&answer).map_err(worker::Error::from)? {
            Message::Error { code, message } => Err(LimitsError::Rejected { code, message }),
            message => Ok(message),
        }
    }

    async fn fetch(&self, key: &str, question: &str) -> worker::Result<String> {
        let mut init = RequestInit::new();
        init.with_method(Method::Post).with_body(Some(question.into()));
        // The object's name is its address; a URL is only what `fetch` needs.
        let request = Request::new_with_init("https://tollgate.invalid/", &init)?;
        self.namespace.get_by_name(key)?.fetch_with_request(request).await?.text().await
    }
}

fn unexpected() -> LimitsError {
    LimitsError::Invalid(Error::state("the object's answer is not one to this operation"))
}
