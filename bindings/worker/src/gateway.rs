//! The Worker's configuration and what is asked of it, request by request.

use js_sys::Array;
use tollgate::cloudflare::wire;
use tollgate::{DEFAULT_LEASE_TTL, Decision, Policies, legacy_headers, problem_body, rate_limit_headers};
use wasm_bindgen::prelude::*;

use crate::config::{Config, Headers, OnError, open_gate};
use crate::digest::keyed_digest;
use crate::fault::Fault;
use crate::items::{self, Item, Refusal};
use crate::key::{Part, Source};
use crate::plan::{self, Ask, Plan, plan};
use crate::policies::PolicySet;
use crate::reader::FieldError;
use crate::rules::{Limit, Mode, Rule};
use crate::tokens;
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

/// What an isolate knows of its configuration.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    tokens: PolicySet,
}

#[wasm_bindgen]
impl Gateway {
    /// Reads the configuration. Throws all mistakes at once: a list of paths and problems.
    #[wasm_bindgen(constructor)]
    pub fn new(config: JsValue) -> Result<Gateway, JsValue> {
        let tree = serde_wasm_bindgen::from_value(config).unwrap_or(Tree::Nothing);
        let config = Config::read(tree).map_err(|errors| listed(&errors))?;
        let tokens = tokens::policy().map_err(Fault::from)?;
        Ok(Self { tokens, config })
    }

    /// Returns the upstream and the prefix of a configuration that has errors, if requests are to pass all the same.
    #[wasm_bindgen(js_name = openGate)]
    pub fn open_gate(config: JsValue) -> Option<Array> {
        let (upstream, prefix) = open_gate(serde_wasm_bindgen::from_value(config).ok()?)?;
        Some(Array::of2(&upstream.into(), &prefix.into()))
    }

    /// Upstream, prefix, timeout, whether logs may hold keys, the origins that may call the API, the origins that may
    /// read the gateway's own answers, and whether with credentials; whether denials are remembered, how long leases
    /// last, and whether other Workers' hits are leased and have credit.
    pub fn settings(&self) -> Array {
        let Config { upstream, prefix, timeout, plain_keys, origins, cors, deny_cache, leases, credit, .. } =
            &self.config;
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
        ])
    }

    /// The sets of policies that rules have: each as JSON, their names, and whether denied hits are counted. The last is
    /// that of wrong tokens.
    pub fn sets(&self) -> Result<Array, Fault> {
        let mut sets = Array::new();
        for set in self.config.sets.iter().chain([&self.tokens]) {
            sets.extend([Array::of3(&json(&set.policies)?, &names(&set.policies), &set.counts_denied().into())]);
        }
        Ok(sets)
    }

    /// Returns the facts of each limit of each rule: the rule, the set of policies, the cost, whether the rule only
    /// reports, whether it lets through what could not be asked, the headers in the key, and whether hits are leased and
    /// have credit.
    pub fn limits(&self) -> Array {
        let mut limits = Array::new();
        for (position, &Rule { mode, on_error, leases, credit, limits: ref own, .. }) in
            self.config.rules.iter().enumerate()
        {
            limits.extend(own.iter().map(|&Limit { set, cost, ref key }| {
                list([
                    (position as f64).into(),
                    (set as f64).into(),
                    (cost as f64).into(),
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

    /// Returns what is to be done with a request: nothing; or a line for each question, a limit and an object; or a
    /// rule alone, which refuses the request. `has_body` is looked at for OPTIONS only.
    pub fn plan(&self, method: &str, path: &str, has_body: bool, headers: &RequestHeaders) -> Option<String> {
        match plan(&self.config, plan::Request { method, path, has_body }, headers) {
            Plan::Pass => None,
            Plan::Refuse { rule } => Some(rule.to_string()),
            Plan::Ask(asks) => {
                let line = |Ask { rule, limit, object }: &Ask| format!("{} {object}", self.config.limit(*rule, *limit));
                Some(asks.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Returns the name of the object that counts the wrong tokens of a request's address.
    #[wasm_bindgen(js_name = tokenObject)]
    pub fn token_object(&self, headers: &RequestHeaders) -> String {
        tokens::object(headers)
    }

    /// What an HTTP client is told of a decision under a rule's policies, a line for each word: which policies denied,
    /// as bits; names and values in turn; the body. One text crosses to JavaScript much faster than several.
    pub fn told(&self, set: usize, decision: &str) -> Result<String, Fault> {
        Ok(told(&decided(decision)?, &self.set(set)?.policies, self.config.headers))
    }

    /// The items of a request's body: each as what is to be asked of an object, or as why it is refused.
    /// The last says whether they came as a batch.
    pub fn items(&self, operation: &str, body: JsValue) -> Result<Array, Fault> {
        let body = serde_wasm_bindgen::from_value(body).map_err(|_| mistake("the body is nested too deeply"))?;
        let (items, batch) = items::read(&self.config, operation, body)?;
        let mut list = Array::new();
        for item in items {
            list.extend([match item {
                Ok(item) => asked(&item)?,
                Err(Refusal { code, message }) => Array::of2(&code.into(), &message.into()),
            }]);
        }
        list.extend([JsValue::from(batch)]);
        Ok(list)
    }

    /// The same for one item whose parts are of the right kind: what comes by RPC.
    pub fn item(
        &self,
        operation: &str,
        names: Vec<String>,
        key: &str,
        amount: f64,
        of: Option<String>,
    ) -> Result<Array, Fault> {
        asked(&items::made(&self.config, operation, &names, key, wire::amount_of(operation, amount)?, of)?)
    }

    /// A key as logs may hold it: a digest that only who has the secret can compare.
    pub fn digest(&self, secret: &str, key: &str) -> String {
        keyed_digest(secret, key)
    }
}

impl Gateway {
    fn set(&self, position: usize) -> Result<&PolicySet, Fault> {
        let sets = &self.config.sets;
        let set = if position == sets.len() { Some(&self.tokens) } else { sets.get(position) };
        set.ok_or_else(|| mistake("there is no such set of policies"))
    }
}

fn told(decision: &Decision, policies: &Policies, style: Headers) -> String {
    let mut fields = match style {
        Headers::None => Vec::new(),
        _ => rate_limit_headers(decision, policies),
    };
    if style == Headers::Legacy {
        fields.extend(legacy_headers(decision));
    }
    let mut words = decision.violated.iter().fold(0_u32, |bits, position| bits | 1 << position).to_string();
    for (name, value) in &fields {
        for line in [name, value.as_str()] {
            words.push('\n');
            words.push_str(line);
        }
    }
    words.push('\n');
    if !decision.allowed {
        words.push_str(&problem_body(decision, policies));
    }
    words
}

/// An object, the policies as JSON with their names, an amount, which of the policies, the question if it says more, and
/// whether denied hits are counted.
fn asked(Item { object, policies, amount, of, question }: &Item) -> Result<Array, Fault> {
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

fn json(policies: &Policies) -> Result<JsValue, Fault> {
    Ok(wire::json_of(policies)?.get().into())
}

fn decided(written: &str) -> Result<Decision, Fault> {
    wire::to_decision(written).ok_or_else(|| mistake("these numbers are no decision"))
}

fn mistake(message: &str) -> Fault {
    Fault::Mistake { code: "invalid_request", message: message.into() }
}

fn listed(errors: &[FieldError]) -> JsValue {
    let pair = |error: &FieldError| Array::of2(&error.path.as_str().into(), &error.problem.as_str().into());
    errors.iter().map(pair).collect::<Array>().into()
}
