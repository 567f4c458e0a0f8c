//! The wasm interface of the gateway: the configuration, and the plan and the response of each request.

use js_sys::{Array, Object, Reflect};
use tollgate::cloudflare::{ThrownError, wire};
use tollgate::{DEFAULT_LEASE_TTL, Decision, Error, Policies, legacy_headers, problem_body, rate_limit_headers};
use wasm_bindgen::prelude::*;

use crate::api::items::{self, Item, ItemKey};
use crate::api::request_error::RequestError;
use crate::api::tokens;
use crate::config::new_keys;
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

    /// Returns the settings.
    pub fn settings(&self) -> Object {
        let Config {
            upstream,
            prefix,
            timeout,
            place,
            plain_keys,
            origins,
            cors,
            deny_cache,
            leases,
            credit,
            watch,
            ..
        } = &self.config;
        object(&[
            ("upstream", upstream.as_deref().into()),
            ("prefix", prefix.as_str().into()),
            ("timeout", (*timeout as f64).into()),
            ("locationHint", place.location_hint.into()),
            ("jurisdiction", place.jurisdiction.into()),
            // Logs contain keys in plain text.
            ("plainKeys", (*plain_keys).into()),
            // The origins that may call the API.
            ("origins", texts(origins.iter().map(String::as_str))),
            // The origins that may read the gateway's own responses, and whether with credentials.
            ("readers", texts(cors.origins.iter().map(String::as_str))),
            ("credentials", cors.credentials.into()),
            ("remembersDenials", (*deny_cache).into()),
            ("leaseTtl", (leases.unwrap_or(DEFAULT_LEASE_TTL) as f64).into()),
            // Hits by the API and by RPC are leased, and have credit.
            ("leases", leases.is_some().into()),
            ("credit", (*credit).into()),
            ("forwardsRewrites", self.config.forward_rewrites.into()),
            // Decisions are counted for the live page.
            ("watches", (*watch).into()),
        ])
    }

    /// Returns the rules' sets of policies. The last is that of wrong tokens.
    pub fn sets(&self) -> Result<Array, ThrownError> {
        let sets = Array::new();
        for set in self.config.sets.iter().chain([&self.tokens]) {
            sets.push(&object(&described(&set.policies)?));
        }
        Ok(sets)
    }

    /// Returns each limit of each rule.
    pub fn limits(&self) -> Array {
        let limits = Array::new();
        for (position, rule) in self.config.rules.iter().enumerate() {
            for Limit { set, key, cost } in &rule.limits {
                let is_limited = *cost > 0 && key.iter().any(new_keys::is_made_up);
                let new_keys = rule.new_keys.filter(|_| is_limited);
                limits.push(&object(&[
                    ("rule", (position as f64).into()),
                    ("set", (*set as f64).into()),
                    ("shadow", (rule.mode == Mode::Shadow).into()),
                    ("allowOnError", (rule.on_error == OnError::Allow).into()),
                    // The headers in the key.
                    ("headers", texts(key.iter().filter_map(Part::header))),
                    ("leases", rule.leases.into()),
                    ("credit", rule.credit.into()),
                    // The set and the period of the limit on new keys, if a client can make up a key.
                    ("newKeys", new_keys.map_or(JsValue::UNDEFINED, |limit| (limit.set as f64).into())),
                    ("keptFor", new_keys.map_or(0.0, |limit| limit.scale as f64).into()),
                ]));
            }
        }
        limits
    }

    /// Returns the plan of a request: `undefined` if no limit applies; a line with a limit, a cost and an object for each
    /// check; or only the position of a rule that rejects the request because a part of its key is missing, or ambiguous,
    /// which `?` marks; `!` if the client's address is denied. `has_body` matters for OPTIONS only.
    pub fn plan(&self, method: &str, path: &str, has_body: bool, headers: &RequestHeaders) -> Option<String> {
        match plan(&self.config, plan::Request { method, path, has_body }, headers) {
            Plan::Pass => None,
            Plan::Deny => Some("!".into()),
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

    /// Returns the name of the object that counts the new keys of a request's address.
    #[wasm_bindgen(js_name = newKeysObject)]
    pub fn new_keys_object(&self, headers: &RequestHeaders) -> String {
        new_keys::object(headers)
    }

    /// Returns the response to a decision in lines: the violated policies as bits; the names and values of the headers in
    /// turn; the body of a denial. One string crosses to JavaScript much faster than several.
    #[wasm_bindgen(js_name = clientResponse)]
    pub fn client_response(&self, set: usize, decision: &str) -> Result<String, ThrownError> {
        Ok(client_response(&parsed(decision)?, &self.set(set)?.policies, self.config.headers))
    }

    /// Returns the items of a request's body, each valid or the code and message of its error, and whether they came as a
    /// batch.
    pub fn items(&self, operation: &str, body: JsValue) -> Result<Object, ThrownError> {
        let body =
            serde_wasm_bindgen::from_value(body).map_err(|_| invalid_request("the body is nested too deeply"))?;
        let (items, batch) = items::read(&self.config, operation, body)?;
        let list = Array::new();
        for item in items {
            let item = match item {
                Ok(item) => described_item(&item)?,
                Err(RequestError { code, message }) => object(&[("code", code.into()), ("message", message.into())]),
            };
            list.push(&item);
        }
        Ok(object(&[("items", list.into()), ("batch", batch.into())]))
    }

    /// Returns one item of a call by RPC. Its arguments have the right types.
    pub fn item(
        &self,
        operation: &str,
        names: Vec<String>,
        key: &str,
        amount: f64,
        policy: Option<String>,
    ) -> Result<Object, ThrownError> {
        let (key, amount) = (ItemKey::Own(key.into()), wire::amount_of(operation, amount)?);
        Ok(described_item(&Item::new(&self.config, items::schema(operation)?, &names, &key, amount, policy)?)?)
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

/// The fields of an object in JavaScript.
type Fields<const N: usize> = [(&'static str, JsValue); N];

/// Returns policies as JSON, for the messages to an object, their names, and whether denied hits are counted, so that
/// each must reach the object.
fn described(policies: &Policies) -> Result<Fields<3>, Error> {
    Ok([
        ("policies", wire::json_of(policies)?.get().into()),
        ("names", texts(policies.names())),
        ("countsDenied", wire::counts_denied(policies).into()),
    ])
}

/// Returns an item with its policies.
fn described_item(Item { object: name, policies, amount, policy, question }: &Item) -> Result<Object, Error> {
    let [json, names, counts_denied] = described(policies)?;
    Ok(object(&[
        ("object", name.as_str().into()),
        json,
        names,
        counts_denied,
        ("amount", (*amount as f64).into()),
        ("policy", policy.as_deref().into()),
        ("question", question.as_deref().into()),
    ]))
}

fn object(fields: &[(&str, JsValue)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        // Setting a property on a new object cannot fail.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object
}

fn texts<'a>(list: impl Iterator<Item = &'a str>) -> JsValue {
    list.map(JsValue::from).collect::<Array>().into()
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
