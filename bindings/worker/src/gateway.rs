//! The wasm interface of the gateway: the configuration, and the plan and the response of each request.

use js_sys::Array;
use serde::Serialize;
use tollgate::cloudflare::{ThrownError, wire};
use tollgate::{DEFAULT_LEASE_TTL, Decision, Error, Policies, legacy_headers, problem_body, rate_limit_headers};
use wasm_bindgen::prelude::*;

use crate::api::items::{self, Item, ItemKey};
use crate::api::request_error::RequestError;
use crate::api::tokens;
use crate::config::policies::PolicySet;
use crate::config::rules::{Limit, Mode};
use crate::config::{Config, Headers, OnError, open_gate};
use crate::reader::FieldError;
use crate::request::digest::keyed_digest;
use crate::request::key::{Part, Source};
use crate::request::plan::{self, LimitCheck, Plan, Rejection, plan};
use crate::tree::Tree;

#[wasm_bindgen]
extern "C" {
    /// The headers of a request.
    pub type RequestHeaders;

    #[wasm_bindgen(method)]
    fn get(this: &RequestHeaders, name: &str) -> Option<String>;
}

impl Source for RequestHeaders {
    fn header(&self, name: &str) -> Option<String> {
        self.get(name)
    }
}

/// The checked configuration of an isolate.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    tokens: PolicySet,
}

#[wasm_bindgen]
impl Gateway {
    /// Reads the configuration, a text of JSON: reading an object field by field takes several times as long, and every
    /// isolate does it before its first response. Throws all its errors at once: a list of paths and problems.
    #[wasm_bindgen(constructor)]
    pub fn new(json: &str) -> Result<Gateway, JsValue> {
        let tree = serde_json::from_str::<Tree>(json).map_err(|error| {
            let problem = format!("TOLLGATE is not JSON: {error}");
            listed(&[FieldError { path: String::new(), problem }])
        })?;
        let config = Config::read(tree).map_err(|errors| listed(&errors))?;
        let tokens = tokens::policy().map_err(ThrownError::from)?;
        Ok(Self { tokens, config })
    }

    /// Returns the upstream and the prefix of a configuration that has errors, if its `onMisconfigured` is `"pass"`.
    #[wasm_bindgen(js_name = openGate)]
    pub fn open_gate(json: &str) -> Option<Array> {
        let (upstream, prefix) = open_gate(serde_json::from_str(json).ok()?)?;
        Some(Array::of2(&upstream.into(), &prefix.into()))
    }

    /// Returns the settings as JSON.
    pub fn settings(&self) -> String {
        let config = &self.config;
        json(&Settings {
            upstream: config.upstream.as_deref(),
            prefix: &config.prefix,
            timeout: config.timeout,
            plain_keys: config.plain_keys,
            origins: &config.origins,
            readers: &config.cors.origins,
            credentials: config.cors.credentials,
            remembers_denials: config.deny_cache,
            lease_ttl: config.leases.unwrap_or(DEFAULT_LEASE_TTL),
            leases: config.leases.is_some(),
            credit: config.credit,
            forwards_rewrites: config.forward_rewrites,
        })
    }

    /// Returns the rules' sets of policies as JSON. The last is that of wrong tokens.
    pub fn sets(&self) -> Result<String, ThrownError> {
        let sets = self.config.sets.iter().chain([&self.tokens]);
        let described: Result<Vec<_>, _> = sets.map(|set| DescribedPolicies::new(&set.policies)).collect();
        Ok(json(&described?))
    }

    /// Returns each limit of each rule as JSON.
    pub fn limits(&self) -> String {
        let mut limits = Vec::new();
        for (position, rule) in self.config.rules.iter().enumerate() {
            limits.extend(rule.limits.iter().map(|Limit { set, key, .. }| DescribedLimit {
                rule: position,
                set: *set,
                shadow: rule.mode == Mode::Shadow,
                allow_on_error: rule.on_error == OnError::Allow,
                headers: key.iter().filter_map(Part::header).collect(),
                leases: rule.leases,
                credit: rule.credit,
            }));
        }
        json(&limits)
    }

    /// Returns the plan of a request: `undefined` if no limit applies; a line with a limit, a cost and an object for each
    /// check; or only the position of a rule that rejects the request because a part of its key is missing, or ambiguous,
    /// which `?` marks. `has_body` matters for OPTIONS only.
    pub fn plan(&self, method: &str, path: &str, has_body: bool, headers: &RequestHeaders) -> Option<String> {
        match plan(&self.config, plan::Request { method, path, has_body }, headers) {
            Plan::Pass => None,
            Plan::Reject { rule, reason: Rejection::Missing } => Some(rule.to_string()),
            Plan::Reject { rule, reason: Rejection::Ambiguous } => Some(format!("{rule}?")),
            Plan::Check(checks) => {
                let line = |LimitCheck { rule, limit, object, cost }: &LimitCheck| {
                    format!("{} {cost} {object}", self.config.limit(*rule, *limit))
                };
                Some(checks.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Returns the name of the object that counts the wrong tokens of a request's address.
    #[wasm_bindgen(js_name = tokenObject)]
    pub fn token_object(&self, headers: &RequestHeaders) -> String {
        tokens::object(headers)
    }

    /// Returns the response to a decision in lines: the violated policies as bits; the names and values of the headers in
    /// turn; the body of a denial. One string crosses to JavaScript much faster than several.
    #[wasm_bindgen(js_name = clientResponse)]
    pub fn client_response(&self, set: usize, decision: &str) -> Result<String, ThrownError> {
        Ok(client_response(&parsed(decision)?, &self.set(set)?.policies, self.config.headers))
    }

    /// Returns the items of a request's body as JSON, each valid or the code and message of its error, and whether they
    /// came as a batch.
    pub fn items(&self, operation: &str, body: JsValue) -> Result<String, ThrownError> {
        let body =
            serde_wasm_bindgen::from_value(body).map_err(|_| invalid_request("the body is nested too deeply"))?;
        let (items, batch) = items::read(&self.config, operation, body)?;
        let described = |item: &Result<Item, RequestError>| match item {
            Ok(item) => DescribedItem::new(item).map(|item| json(&item)),
            Err(error) => Ok(json(error)),
        };
        let items: Result<Vec<_>, Error> = items.iter().map(described).collect();
        Ok(format!(r#"{{"items":[{}],"batch":{batch}}}"#, items?.join(",")))
    }

    /// Returns one item of a call by RPC as JSON. Its arguments have the right types.
    pub fn item(
        &self,
        operation: &str,
        names: Vec<String>,
        key: &str,
        amount: f64,
        policy: Option<String>,
    ) -> Result<String, ThrownError> {
        let (key, amount) = (ItemKey::Own(key.into()), wire::amount_of(operation, amount)?);
        let item = Item::new(&self.config, operation, &names, &key, amount, policy)?;
        Ok(json(&DescribedItem::new(&item)?))
    }

    /// Returns the digest of a key for logs. Only the owner of the secret can compute it.
    pub fn digest(&self, secret: &str, key: &str) -> String {
        keyed_digest(secret, key)
    }
}

impl Gateway {
    fn set(&self, position: usize) -> Result<&PolicySet, ThrownError> {
        let sets = &self.config.sets;
        let set = if position == sets.len() { Some(&self.tokens) } else { sets.get(position) };
        set.ok_or_else(|| invalid_request("there is no such set of policies"))
    }
}

fn client_response(decision: &Decision, policies: &Policies, style: Headers) -> String {
    let mut fields = match style {
        Headers::None => Vec::new(),
        _ => rate_limit_headers(decision, policies),
    };
    if style == Headers::Legacy {
        fields.extend(legacy_headers(decision));
    }
    let mut lines = decision.violated.iter().fold(0_u32, |bits, position| bits | 1 << position).to_string();
    for (name, value) in &fields {
        for line in [name, value.as_str()] {
            lines.push('\n');
            lines.push_str(line);
        }
    }
    lines.push('\n');
    if !decision.allowed {
        lines.push_str(&problem_body(decision, policies));
    }
    lines
}

/// The settings that JavaScript needs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Settings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    prefix: &'a str,
    timeout: u64,
    /// Whether logs contain keys in plain text.
    plain_keys: bool,
    /// The origins that may call the API.
    origins: &'a [String],
    /// The origins that may read the gateway's own responses, and whether with credentials.
    readers: &'a [String],
    credentials: bool,
    remembers_denials: bool,
    lease_ttl: u64,
    /// Whether hits by the API and by RPC are leased and have credit.
    leases: bool,
    credit: bool,
    /// Whether headers that rewrite the URL are forwarded.
    forwards_rewrites: bool,
}

/// Policies as JSON, for the messages to an object, and what JavaScript needs to know of them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedPolicies<'a> {
    policies: String,
    names: Vec<&'a str>,
    /// Whether denied hits are counted, so that each must reach the object.
    counts_denied: bool,
}

impl<'a> DescribedPolicies<'a> {
    fn new(policies: &'a Policies) -> Result<Self, Error> {
        let names = policies.names().collect();
        Ok(Self {
            policies: wire::json_of(policies)?.get().into(),
            names,
            counts_denied: wire::counts_denied(policies),
        })
    }
}

/// A limit of a rule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedLimit<'a> {
    /// The position of the rule.
    rule: usize,
    /// The position of the set of policies.
    set: usize,
    shadow: bool,
    allow_on_error: bool,
    /// The headers in the key.
    headers: Vec<&'a str>,
    leases: bool,
    credit: bool,
}

/// An item of the API.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedItem<'a> {
    object: &'a str,
    policies: String,
    names: Vec<&'a str>,
    counts_denied: bool,
    amount: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
}

impl<'a> DescribedItem<'a> {
    fn new(item: &'a Item) -> Result<Self, Error> {
        let Item { object, policies, amount, policy, question } = item;
        // Not flattened by serde, which takes several kilobytes of code.
        let DescribedPolicies { policies, names, counts_denied } = DescribedPolicies::new(policies)?;
        let (policy, question) = (policy.as_deref(), question.as_deref());
        Ok(Self { object, policies, names, counts_denied, amount: *amount, policy, question })
    }
}

/// Returns a value as JSON. All keys are strings and all numbers are finite, so it cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn parsed(written: &str) -> Result<Decision, ThrownError> {
    wire::to_decision(written).ok_or_else(|| invalid_request("these numbers are no decision"))
}

fn invalid_request(message: &str) -> ThrownError {
    ThrownError::Coded { code: "invalid_request", message: message.into() }
}

fn listed(errors: &[FieldError]) -> JsValue {
    let pair = |error: &FieldError| Array::of2(&error.path.as_str().into(), &error.problem.as_str().into());
    errors.iter().map(pair).collect::<Array>().into()
}
