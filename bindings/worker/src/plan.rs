//! What is to be done with a request: method, path and header values in, a plan out.

use crate::config::Config;
use crate::key::{self, Part, Source};
use crate::path::normalise;
use crate::rules::{Missing, Mode, Rule};

/// What is to be done with a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// No limit applies.
    Pass,
    /// Its key lacks a part, and the rule says that this is no way to come in.
    Refuse {
        /// The position of the rule.
        rule: usize,
    },
    /// An object decides.
    Ask {
        /// The position of the rule.
        rule: usize,
        /// The object's name.
        object: String,
    },
}

/// The plan of the first rule that matches.
pub(crate) fn plan(config: &Config, method: &str, path: &str, source: &impl Source) -> Plan {
    let (plain, method) = (normalise(path), &*method.to_ascii_uppercase());
    let preflight = method == "OPTIONS" && source.header("access-control-request-method").is_some();
    let Some((position, rule)) =
        config.rules.iter().enumerate().find(|(_, rule)| applies(rule, method, preflight, path, &plain))
    else {
        return Plan::Pass;
    };
    if rule.mode == Mode::Skip {
        return Plan::Pass;
    }
    let mut key = String::new();
    for part in &rule.key {
        let encoded = part.encoded(path, source).or_else(|| match rule.missing {
            Missing::Ip => Part::Ip.encoded(path, source),
            _ => None,
        });
        match (encoded, rule.missing) {
            (Some(encoded), _) => key.push_str(&encoded),
            (None, Missing::Deny) if rule.mode == Mode::Enforce => return Plan::Refuse { rule: position },
            (None, _) => return Plan::Pass,
        }
    }
    Plan::Ask { rule: position, object: key::object_name(key) }
}

fn applies(rule: &Rule, method: &str, preflight: bool, path: &str, plain: &str) -> bool {
    // Servers answer HEAD by what they do for GET.
    let named = rule.methods.iter().any(|known| known == method || known == "GET" && method == "HEAD");
    // A browser asks before it asks: that is not the client's doing, unless a rule is about just that.
    if !(named || rule.methods.is_empty() && !preflight) {
        return false;
    }
    // A path that has to be read twice to be let off is not let off.
    rule.pattern.matches(plain) && (rule.mode != Mode::Skip || rule.pattern.matches(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    struct Request(&'static [(&'static str, &'static str)]);

    impl Source for Request {
        fn header(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        }
    }

    const RULES: &str = r#"
        upstream = "ORIGIN"
        [policies]
        api = { algorithm = "fix_window", limit = 5, scale = "1m" }
        [[rules]]
        path = "/public/*"
        mode = "skip"
        [[rules]]
        method = "POST"
        path = "/login"
        key = ["ip", "constant:login"]
        policies = "api"
        on_error = "deny"
        [[rules]]
        path = "/keyed"
        key = "header:x-key"
        missing = "deny"
        policies = "api"
        [[rules]]
        path = "/maybe"
        key = "header:x-key"
        missing = "skip"
        policies = "api"
        [[rules]]
        path = "/else"
        key = "cookie:id"
        policies = "api"
        mode = "shadow"
        [[rules]]
        method = "OPTIONS"
        path = "/asked"
        policies = "api"
        [[rules]]
        path = "/*"
        policies = "api"
        cost = 3
    "#;

    fn planned(method: &str, path: &str, headers: &'static [(&'static str, &'static str)]) -> Plan {
        let config = Config::read(toml::from_str::<Tree>(RULES).unwrap()).unwrap();
        plan(&config, method, path, &Request(headers))
    }

    fn object(plan: Plan) -> String {
        match plan {
            Plan::Ask { object, .. } => object,
            other => format!("{other:?}"),
        }
    }

    const ADDRESS: &[(&str, &str)] = &[("cf-connecting-ip", "192.0.2.1")];

    #[test]
    fn the_first_rule_that_matches_decides() {
        let login = Plan::Ask { rule: 1, object: "/ip=9:192.0.2.1/constant=5:login".into() };
        assert_eq!(planned("POST", "/login", ADDRESS), login);
        assert_eq!(planned("GET", "/login", ADDRESS), Plan::Ask { rule: 6, object: "/ip=9:192.0.2.1".into() });
    }

    #[test]
    fn a_method_is_the_same_in_every_spelling_and_get_is_head_too() {
        assert_eq!(object(planned("post", "/login", ADDRESS)), "/ip=9:192.0.2.1/constant=5:login");
        let only_get = "upstream = \"ORIGIN\"\n[policies]\napi = { algorithm = \"fix_window\", limit = 5, scale = \"1m\" }\n[[rules]]\n\
            method = \"GET\"\npath = \"/*\"\npolicies = \"api\"";
        let config = Config::read(toml::from_str::<Tree>(only_get).unwrap()).unwrap();
        for (method, asked) in [("GET", true), ("HEAD", true), ("POST", false)] {
            assert_eq!(plan(&config, method, "/", &Request(ADDRESS)) != Plan::Pass, asked, "{method}");
        }
    }

    #[test]
    fn only_a_plain_spelling_is_let_off() {
        assert_eq!(planned("GET", "/public/a", ADDRESS), Plan::Pass);
        for path in ["/public/../login", "/public%2fa", "/%70ublic/a", "/public/%2e%2e/x", "/public;x/a"] {
            assert_eq!(object(planned("GET", path, ADDRESS)), "/ip=9:192.0.2.1", "{path}");
        }
    }

    #[test]
    fn a_missing_part_follows_the_rule() {
        assert_eq!(planned("GET", "/keyed", ADDRESS), Plan::Refuse { rule: 2 });
        assert_eq!(planned("GET", "/maybe", ADDRESS), Plan::Pass);
        assert_eq!(object(planned("GET", "/else", ADDRESS)), "/ip=9:192.0.2.1");
        assert_eq!(object(planned("GET", "/keyed", &[("x-key", "k")])), "/header:x-key=1:k");
    }

    #[test]
    fn preflights_pass_unless_a_rule_names_options() {
        const PREFLIGHT: &[(&str, &str)] = &[("access-control-request-method", "POST")];
        assert_eq!(planned("OPTIONS", "/login", PREFLIGHT), Plan::Pass);
        assert_eq!(object(planned("OPTIONS", "/asked", PREFLIGHT)), "/ip=7:unknown");
        assert_eq!(object(planned("OPTIONS", "/login", &[])), "/ip=7:unknown");
    }
}
