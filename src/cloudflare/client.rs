//! The client of the objects, for Workers in Rust.

use serde_json::value::RawValue;
use worker::{Env, Headers, Method, ObjectNamespace, Request, RequestInit, Response};

use crate::cloudflare::error::LimitsError;
use crate::cloudflare::protocol::message::{Amount, Amounts, Message, Question};
use crate::cloudflare::protocol::wire;
use crate::{
    Costs, Decision, Error, Exception, HitId, IntoPolicies, Policies, Reservation, Reserving, Settlement, Span, Value,
    check_key, problem_body, rate_limit_headers,
};

/// Limits by key, exact everywhere: each key is a [`RateLimiterObject`](super::RateLimiterObject).
///
/// Each operation is one `fetch` to the key's object. The platform retries it by itself, so that no hit counts twice.
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
    /// The policies as JSON, for requests to the objects.
    json: Box<RawValue>,
    has_credit: bool,
}

impl Limits {
    /// Returns the limits of these policies, which the objects of a binding count.
    ///
    /// # Errors
    ///
    /// If the policies are invalid together, or there is no such binding.
    pub fn new(env: &Env, binding: &str, policies: impl IntoPolicies) -> Result<Self, LimitsError> {
        let policies = policies.into_policies()?;
        crate::Ledger::new(policies.clone())?;
        let json = wire::json_of(&policies)?;
        Ok(Self { namespace: env.durable_object(binding)?, json, policies, has_credit: false })
    }

    /// Returns the same limits with credit: an object writes one row for many hits of a hot key.
    ///
    /// The row then holds an amount beyond what was used. If the object loses its memory, that amount is charged after 30
    /// seconds, or with the window: no hit is forgotten, and a restart costs the client at most that amount.
    ///
    /// ```no_run
    /// # use tollgate::{Policy, cloudflare::Limits};
    /// # fn example(env: worker::Env) -> worker::Result<()> {
    /// let limits = Limits::new(&env, "LIMITERS", Policy::fix_window(10_000, "1m")?)?.with_credit();
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_credit(self) -> Self {
        Self { has_credit: true, ..self }
    }

    /// Returns the policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Decides whether a key may act now, and charges `cost` if so. Several policies are one decision.
    ///
    /// # Errors
    ///
    /// If the key or the cost is invalid, or the object does not respond. The caller decides what to do then.
    pub async fn hit(&self, key: &str, cost: u64) -> Result<Decision, LimitsError> {
        self.decision("hit", key, cost.into()).await
    }

    /// The same as [`hit`](Self::hit) with a cost for each policy.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit), and if a name in the costs is not that of a policy.
    pub async fn hit_costs(&self, key: &str, costs: Costs<'_>) -> Result<Decision, LimitsError> {
        self.decision("hit", key, costs).await
    }

    /// The same as [`hit_costs`](Self::hit_costs) for one of several keys that are charged together or not at all. Returns the
    /// decision, and an id with which [`undo`](Self::undo) undoes the hit; none if it charged nothing.
    ///
    /// ```no_run
    /// # async fn example(limits: tollgate::cloudflare::Limits) -> worker::Result<()> {
    /// let (user, hit) = limits.hit_undoable("user:42", 1.into()).await?;
    /// if user.allowed && !limits.hit("team:7", 1).await?.allowed && let Some(hit) = hit {
    ///     limits.undo("user:42", &hit, 1.into()).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`hit_costs`](Self::hit_costs).
    pub async fn hit_undoable(&self, key: &str, costs: Costs<'_>) -> Result<(Decision, Option<HitId>), LimitsError> {
        match self.send(key, Question { undoable: true, ..self.question("hit", Some(costs)) }).await? {
            Message::Undoable { decision, id } => {
                let decision = decision.under(&self.policies).ok_or_else(unexpected)?;
                Ok((decision, id.map(|id| id.parse::<HitId>()).transpose()?))
            }
            _ => Err(unexpected()),
        }
    }

    /// Undoes a hit of these costs within [`MAX_UNDO`](crate::MAX_UNDO), once: gives back what of it still counts. Returns
    /// whether anything was given back. To repeat it, since no reply came, gives back nothing more.
    ///
    /// # Errors
    ///
    /// As for [`hit_costs`](Self::hit_costs).
    pub async fn undo(&self, key: &str, id: &HitId, costs: Costs<'_>) -> Result<bool, LimitsError> {
        let id = Some(id.to_string().into());
        match self.send(key, Question { id, ..self.question("undo", Some(costs)) }).await? {
            Message::Undone(given) => Ok(given > 0),
            _ => Err(unexpected()),
        }
    }

    /// Returns what [`hit`](Self::hit) would return. Changes no state.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn peek(&self, key: &str, cost: u64) -> Result<Decision, LimitsError> {
        self.decision("peek", key, cost.into()).await
    }

    /// Returns what [`hit_costs`](Self::hit_costs) would return. Changes no state.
    ///
    /// # Errors
    ///
    /// As for [`hit_costs`](Self::hit_costs).
    pub async fn peek_costs(&self, key: &str, costs: Costs<'_>) -> Result<Decision, LimitsError> {
        self.decision("peek", key, costs).await
    }

    /// Decides as a hit does and, if allowed, reserves the costs: they count as used until the reservation is settled, or
    /// until its `ttl` ends and it is charged in full. The default is the `ttl` of a concurrency policy, or a minute.
    ///
    /// ```no_run
    /// # async fn example(limits: tollgate::cloudflare::Limits) -> worker::Result<()> {
    /// let reserving = limits.reserve("user:42", 4_000.into(), Some("2m".into())).await?;
    /// let Some(reservation) = reserving.reservation else {
    ///     return Ok(()); // Denied: retry after `reserving.decision.retry_after`.
    /// };
    /// // To settle it after a restart, store `reservation.to_string()`, and `parse` it again.
    /// limits.settle(reservation, Some(1_234.into())).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`hit_costs`](Self::hit_costs), and if `ttl` is out of range.
    pub async fn reserve(
        &self,
        key: &str,
        costs: Costs<'_>,
        ttl: Option<Span>,
    ) -> Result<Reserving<String>, LimitsError> {
        let ttl = ttl.map(crate::key::reservation::check_ttl).transpose()?.map(|ttl| Value::Number(ttl as f64));
        match self.send(key, Question { ttl, ..self.question("reserve", Some(costs)) }).await? {
            Message::Reserved { decision, id, .. } => {
                let decision = decision.under(&self.policies).ok_or_else(unexpected)?;
                let made = |id: String| Ok::<_, Error>(Reservation { key: key.into(), id: id.parse()? });
                Ok(Reserving { decision, reservation: id.map(made).transpose()? })
            }
            _ => Err(unexpected()),
        }
    }

    /// Closes a reservation and charges the used amounts, by default the reserved ones.
    ///
    /// # Errors
    ///
    /// If the object does not respond, or `used` is one number and the costs were by policy. A reservation that has expired
    /// or was settled before is not an error.
    pub async fn settle(
        &self,
        reservation: Reservation<String>,
        used: Option<Costs<'_>>,
    ) -> Result<Settlement, LimitsError> {
        reservation.id.check_used(used)?;
        self.close("settle", &reservation, used, None).await
    }

    /// Closes a reservation without a charge.
    ///
    /// # Errors
    ///
    /// If the object does not respond.
    pub async fn cancel(&self, reservation: Reservation<String>) -> Result<Settlement, LimitsError> {
        self.close("cancel", &reservation, None, None).await
    }

    /// Moves the end of a reservation to `ttl` from now.
    ///
    /// # Errors
    ///
    /// If the object does not respond, or `ttl` is out of range.
    pub async fn extend(
        &self,
        reservation: &Reservation<String>,
        ttl: impl Into<Span>,
    ) -> Result<Settlement, LimitsError> {
        let ttl = crate::key::reservation::check_ttl(ttl.into())?;
        self.close("extend", reservation, None, Some(Value::Number(ttl as f64))).await
    }

    /// Charges `cost` whether it fits or not, and returns the count; a negative cost gives back. With several policies,
    /// `policy` names one.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit), and if no policy has that name.
    pub async fn inc(&self, key: &str, cost: i64, policy: Option<&str>) -> Result<u64, LimitsError> {
        let cost = Some(Amounts::All(Amount(cost as f64)));
        self.number_of(key, policy, Question { cost, ..self.question("inc", None) }).await
    }

    /// Sets a key's count, as if `count` had just been used, or its tokens. Returns the count.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc), and if `count` is out of the policy's range.
    pub async fn set(&self, key: &str, count: u64, policy: Option<&str>) -> Result<u64, LimitsError> {
        let count = Some(Amount(count as f64));
        self.number_of(key, policy, Question { count, ..self.question("set", None) }).await
    }

    /// Returns a key's count.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc).
    pub async fn get(&self, key: &str, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number_of(key, policy, self.question("get", None)).await
    }

    /// Returns when a key's state ends, in milliseconds since the epoch; 0 if it has none.
    ///
    /// # Errors
    ///
    /// As for [`inc`](Self::inc).
    pub async fn expires_at(&self, key: &str, policy: Option<&str>) -> Result<u64, LimitsError> {
        self.number_of(key, policy, self.question("expires_at", None)).await
    }

    /// Denies every hit of a key for `length`, or changes the end of the ban that holds. Returns the end, in milliseconds
    /// since the epoch. With several bans, `policy` names one.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit), if no policy is a ban of that name, and if `length` is out of range.
    pub async fn ban(&self, key: &str, length: impl Into<Span>, policy: Option<&str>) -> Result<u64, LimitsError> {
        let length = crate::store::ledger::check_ban(length.into())?;
        let length = Some(Value::Number(length as f64));
        self.number_of_ban(key, policy, Question { length, ..self.question("ban", None) }).await
    }

    /// Lifts the ban of a key and forgets its past ones. Returns whether one held.
    ///
    /// # Errors
    ///
    /// As for [`ban`](Self::ban).
    pub async fn unban(&self, key: &str, policy: Option<&str>) -> Result<bool, LimitsError> {
        Ok(self.number_of_ban(key, policy, self.question("unban", None)).await? > 0)
    }

    /// Gives a key other numbers, or allows or denies it, until a time in milliseconds since the epoch; without an
    /// exception, lifts the one that it has. Returns the end, of the former one if it is lifted; 0 if there was none.
    ///
    /// ```no_run
    /// use tollgate::Exception;
    ///
    /// # async fn example(limits: tollgate::cloudflare::Limits, friday: u64) -> worker::Result<()> {
    /// limits.except("customer:42", Some(&Exception::new().with("api", "limit", 1_000_u64)?), friday).await?;
    /// limits.except("customer:42", None, 0).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit), if the end is not within the next 400 days, and if a policy of these limits cannot take
    /// a number.
    pub async fn except(&self, key: &str, exception: Option<&Exception>, until: u64) -> Result<u64, LimitsError> {
        let exception = exception.map(wire::raw_exception).transpose()?;
        let until = exception.as_ref().map(|_| Amount(until as f64));
        self.number(key, Question { until, exception: exception.as_deref(), ..self.question("except", None) }).await
    }

    /// The same for a time from now, by the clock of the key's object.
    ///
    /// # Errors
    ///
    /// As for [`except`](Self::except).
    pub async fn except_for(
        &self,
        key: &str,
        exception: &Exception,
        length: impl Into<Span>,
    ) -> Result<u64, LimitsError> {
        let length = crate::store::ledger::check_ban(length.into())?;
        let (exception, length) = (wire::raw_exception(exception)?, Some(Value::Number(length as f64)));
        self.number(key, Question { length, exception: Some(&exception), ..self.question("except", None) }).await
    }

    /// Returns the exception of a key that is in force, with its end in milliseconds since the epoch; `None` if there is
    /// none.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn exception(&self, key: &str) -> Result<Option<(Exception, u64)>, LimitsError> {
        match self.send(key, self.question("exceptions", None)).await? {
            Message::Excepted { exception, until } => Ok(exception.map(|exception| (exception, until))),
            _ => Err(unexpected()),
        }
    }

    /// Removes a key's states. Returns whether there were any. Reservations stay open.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn reset(&self, key: &str) -> Result<bool, LimitsError> {
        self.remove(key, false).await
    }

    /// Removes a key's states and its reservations. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// As for [`hit`](Self::hit).
    pub async fn reset_all(&self, key: &str) -> Result<bool, LimitsError> {
        self.remove(key, true).await
    }

    /// Returns the headers of a decision: `RateLimit-Policy`, `RateLimit`, and `Retry-After` on a denial that ends.
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

    async fn decision(&self, operation: &str, key: &str, costs: Costs<'_>) -> Result<Decision, LimitsError> {
        match self.send(key, self.question(operation, Some(costs))).await? {
            Message::Decision(decision) => decision.under(&self.policies).ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }

    /// Sends an operation on one of these policies, and returns its number.
    async fn number_of(&self, key: &str, policy: Option<&str>, question: Question<'_>) -> Result<u64, LimitsError> {
        self.policies.position(policy)?;
        self.number(key, Question { of: policy.map(Into::into), ..question }).await
    }

    /// The same for an operation on a ban.
    async fn number_of_ban(&self, key: &str, ban: Option<&str>, question: Question<'_>) -> Result<u64, LimitsError> {
        self.policies.ban_position(ban)?;
        self.number(key, Question { of: ban.map(Into::into), ..question }).await
    }

    async fn number(&self, key: &str, question: Question<'_>) -> Result<u64, LimitsError> {
        match self.send(key, question).await? {
            Message::Number(number) => Ok(number),
            _ => Err(unexpected()),
        }
    }

    async fn remove(&self, key: &str, reservations: bool) -> Result<bool, LimitsError> {
        match self.send(key, Question { reservations, ..self.question("reset", None) }).await? {
            Message::Reset(was_used) => Ok(was_used),
            _ => Err(unexpected()),
        }
    }

    async fn close(
        &self,
        operation: &str,
        reservation: &Reservation<String>,
        used: Option<Costs<'_>>,
        ttl: Option<Value>,
    ) -> Result<Settlement, LimitsError> {
        let id = Some(reservation.id.to_string().into());
        let used = used.map(Into::into);
        match self.send(&reservation.key, Question { id, ttl, used, ..self.question(operation, None) }).await? {
            Message::Settled { settlement, .. } => Settlement::named(&settlement).ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }

    fn question<'a>(&'a self, operation: &'a str, costs: Option<Costs<'a>>) -> Question<'a> {
        Question { credit: self.has_credit, cost: costs.map(Into::into), ..Question::new(operation, &self.json) }
    }

    async fn send(&self, key: &str, question: Question<'_>) -> Result<Message, LimitsError> {
        check_key(key)?;
        let question = question.to_json();
        let answer = self.fetch(key, &question).await?;
        match serde_json::from_str(&answer).map_err(worker::Error::from)? {
            Message::Error { code, message } => Err(LimitsError::Rejected { code, message }),
            message => Ok(message),
        }
    }

    async fn fetch(&self, key: &str, question: &str) -> worker::Result<String> {
        let mut init = RequestInit::new();
        init.with_method(Method::Post).with_body(Some(question.into()));
        // The object's name is its address; `fetch` only needs some URL.
        let request = Request::new_with_init("https://tollgate.invalid/", &init)?;
        self.namespace.get_by_name(key)?.fetch_with_request(request).await?.text().await
    }
}

fn unexpected() -> LimitsError {
    LimitsError::Invalid(Error::state("the object's answer is not one to this operation"))
}
