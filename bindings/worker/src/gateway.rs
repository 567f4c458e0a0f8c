//! The wasm interface of the gateway: the configuration, and the plan and the response of each request.

use js_sys::Array;
use tollgate::cloudflare::wire;
use tollgate::{DEFAULT_LEASE_TTL, Decision, Policies, legacy_headers, problem_body, rate_limit_headers};
use wasm_bindgen::prelude::*;

use crate::api::items::{self, Item, ItemKey};
use crate::api::request_error::RequestError;
use crate::api::tokens;
use crate::binding_error::BindingError;
use crate::config::policies::PolicySet;
use crate::config::rules::{Limit, Mode, Rule};
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
        let tokens = tokens::policy().map_err(BindingError::from)?;
        Ok(Self { tokens, config })
    }

    /// Returns the upstream and the prefix of a configuration that has errors, if its `onMisconfigured` is `"pass"`.
    #[wasm_bindgen(js_name = openGate)]
    pub fn open_gate(json: &str) -> Option<Array> {
        let (upstream, prefix) = open_gate(serde_json::from_str(json).ok()?)?;
        Some(Array::of2(&upstream.into(), &prefix.into()))
    }

    /// Returns the settings: upstream, prefix, timeout, whether logs contain keys in plain text, the origins that may call
    /// the API, the origins that may read the gateway's own responses, and whether with credentials; whether denials are
    /// remembered, the duration of leases, and whether hits by the API and by RPC are leased and have credit; whether
    /// headers that rewrite the URL are forwarded.
    pub fn settings(&self) -> Array {
        let Config { upstream, prefix, timeout, plain_keys, origins, cors, deny_cache, leases, credit, .. } =
            &self.config;
        let forward_rewrites = self.config.forward_rewrites;
        let upstream = upstream.as_deref().map_or(JsValue::UNDEFINED, JsValue::from);
        list([
            upstream,
            prefix.as_str().into(),
            (*timeout as f64).into(),
            (*plain_keys).into(),
            texts(origins).into(),
            texts(&cors.origins).into(),
            cors.credentials.into(),
            (*deny_cache).into(),
            (leases.unwrap_or(DEFAULT_LEASE_TTL) as f64).into(),
            leases.is_some().into(),
            (*credit).into(),
            forward_rewrites.into(),
        ])
    }

    /// Returns the rules' sets of policies: each as JSON, their names, and whether denied hits are counted. The last is
    /// that of wrong tokens.
    pub fn sets(&self) -> Result<Array, BindingError> {
        let mut sets = Array::new();
        for set in self.config.sets.iter().chain([&self.tokens]) {
            sets.extend([Array::of3(&json(&set.policies)?, &names(&set.policies), &set.counts_denied().into())]);
        }
        Ok(sets)
    }

    /// Returns for each limit of each rule: the position of the rule, the set of policies, whether the rule is in shadow
    /// mode, whether it allows a hit when the object fails, the headers in the key, and whether hits are leased and have
    /// credit.
    pub fn limits(&self) -> Array {
        let mut limits = Array::new();
        for (position, &Rule { mode, on_error, leases, credit, limits: ref own, .. }) in
            self.config.rules.iter().enumerate()
        {
            limits.extend(own.iter().map(|&Limit { set, ref key, .. }| {
                list([
                    (position as f64).into(),
                    (set as f64).into(),
                    (mode == Mode::Shadow).into(),
                    (on_error == OnError::Allow).into(),
                    key.iter().filter_map(Part::header).map(JsValue::from).collect::<Array>().into(),
                    leases.into(),
                    credit.into(),
                ])
            }));
        }
        limits
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
    pub fn client_response(&self, set: usize, decision: &str) -> Result<String, BindingError> {
        Ok(client_response(&parsed(decision)?, &self.set(set)?.policies, self.config.headers))
    }

    /// Returns the items of a request's body, each valid or as the code and message of its error. The last element is
    /// whether they came as a batch.
    pub fn items(&self, operation: &str, body: JsValue) -> Result<Array, BindingError> {
        let body =
            serde_wasm_bindgen::from_value(body).map_err(|_| invalid_request("the body is nested too deeply"))?;
        let (items, batch) = items::read(&self.config, operation, body)?;
        let mut list = Array::new();
        for item in items {
            list.extend([match item {
                Ok(item) => item_parts(&item)?,
                Err(RequestError { code, message }) => Array::of2(&code.into(), &message.into()),
            }]);
        }
        list.extend([JsValue::from(batch)]);
        Ok(list)
    }

    /// Returns one item of a call by RPC, whose arguments have the right types.
    pub fn item(
        &self,
        operation: &str,
        names: Vec<String>,
        key: &str,
        amount: f64,
        of: Option<String>,
    ) -> Result<Array, BindingError> {
        let (key, amount) = (ItemKey::Own(key.into()), wire::amount_of(operation, amount)?);
        item_parts(&Item::new(&self.config, operation, &names, &key, amount, of)?)
    }

    /// Returns the digest of a key for logs. Only the owner of the secret can compute it.
    pub fn digest(&self, secret: &str, key: &str) -> String {
        keyed_digest(secret, key)
    }
}

impl Gateway {
    fn set(&self, position: usize) -> Result<&PolicySet, BindingError> {
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

/// Returns an item as a list: the object, the policies as JSON, their names, the amount, the name of one policy, the
/// question in JSON if the item has more than an amount, and whether denied hits are counted.
fn item_parts(Item { object, policies, amount, of, question }: &Item) -> Result<Array, BindingError> {
    let counts_denied = wire::counts_denied(policies);
    let [of, question] = [of, question].map(|text| text.as_deref().map_or(JsValue::UNDEFINED, JsValue::from));
    Ok(list([
        object.as_str().into(),
        json(policies)?,
        names(policies).into(),
        (*amount as f64).into(),
        of,
        question,
        counts_denied.into(),
    ]))
}

fn texts(list: &[String]) -> Array {
    list.iter().map(|text| JsValue::from(text.as_str())).collect()
}

fn names(policies: &Policies) -> Array {
    policies.names().map(JsValue::from).collect()
}

fn list<const N: usize>(values: [JsValue; N]) -> Array {
    values.into_iter().collect()
}

fn json(policies: &Policies) -> Result<JsValue, BindingError> {
    Ok(wire::json_of(policies)?.get().into())
}

fn parsed(written: &str) -> Result<Decision, BindingError> {
    wire::to_decision(written).ok_or_else(|| invalid_request("these numbers are no decision"))
}

fn invalid_request(message: &str) -> BindingError {
    BindingError::Coded { code: "invalid_request", message: message.into() }
}

fn listed(errors: &[FieldError]) -> JsValue {
    let pair = |error: &FieldError| Array::of2(&error.path.as_str().into(), &error.problem.as_str().into());
    errors.iter().map(pair).collect::<Array>().into()
}
