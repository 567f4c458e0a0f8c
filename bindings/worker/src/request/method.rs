//! The methods of a request: the one that was sent, and those that an origin may read from it.

use crate::request::key::Source;

/// The methods that a rule can name.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

const GET: Methods = Methods(1);
const HEAD: Methods = Methods(1 << 1);
const OPTIONS: Methods = Methods(1 << 6);
/// Every method that a rule cannot name.
const OTHER: Methods = Methods(1 << 7);

/// Headers by which frameworks let a client name another method.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// A set of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Methods(u8);

impl Methods {
    /// Returns the set of one method that a rule can name; `None` for another.
    pub(crate) fn named(name: &str) -> Option<Self> {
        METHODS.iter().position(|known| *known == name).map(|position| Self(1 << position))
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the methods one by one.
    pub(crate) fn each(self) -> impl Iterator<Item = Self> {
        (0..8).map(|bit| Self(1 << bit)).filter(move |one| self.0 & one.0 != 0)
    }

    /// Returns whether a rule with these methods applies to `one`. Servers handle HEAD as GET, so GET includes HEAD.
    pub(crate) fn include(self, one: Self) -> bool {
        self.0 & one.0 != 0 || one == HEAD && self.0 & GET.0 != 0
    }
}

/// The methods that an origin may read from a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestMethods {
    pub(crate) all: Methods,
    /// Whether it is a CORS preflight. The browser sends it on its own, and no handler of the origin runs.
    pub(crate) preflight: bool,
}

/// The parts of the configuration that decide which headers are read for methods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MethodOptions {
    /// Whether any rule names methods.
    pub(crate) named: bool,
    /// Whether the origin reads the method from a header.
    pub(crate) overrides: bool,
}

/// Returns the methods of a request. `has_body` matters for OPTIONS only.
pub(crate) fn request_methods(
    method: &str,
    has_body: bool,
    options: MethodOptions,
    source: &impl Source,
) -> RequestMethods {
    let sent = Methods::named(&method.to_ascii_uppercase()).unwrap_or(OTHER);
    let mut all = sent;
    // The platform forwards every request that asks for a WebSocket as GET.
    if sent != GET && (options.named || sent == OPTIONS) && source.header("upgrade").is_some() {
        all = all.with(GET);
    }
    if options.overrides {
        for name in OVERRIDES {
            let named = source.header(name).unwrap_or_default().to_ascii_uppercase();
            all = named.split(',').filter_map(|name| Methods::named(name.trim())).fold(all, Methods::with);
        }
    }
    let given = |name: &str| source.header(name).is_some_and(|value| !value.trim().is_empty());
    let preflight = all == OPTIONS && !has_body && given("origin") && given("access-control-request-method");
    RequestMethods { all, preflight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::key::testing::Request;

    fn methods(method: &str, overrides: bool, headers: &[(&'static str, &'static str)]) -> Vec<Methods> {
        request_methods(method, false, MethodOptions { named: true, overrides }, &Request(headers.to_vec()))
            .all
            .each()
            .collect()
    }

    fn named(names: &[&str]) -> Vec<Methods> {
        names.iter().map(|name| Methods::named(name).unwrap()).collect()
    }

    #[test]
    fn an_upgrade_is_a_get_too() {
        assert_eq!(methods("POST", false, &[]), named(&["POST"]));
        assert_eq!(methods("post", false, &[("upgrade", "websocket")]), named(&["GET", "POST"]));
        assert_eq!(methods("GET", false, &[("upgrade", "websocket")]), named(&["GET"]));
        assert_eq!(methods("PROPFIND", false, &[]), [OTHER]);
    }

    #[test]
    fn a_method_in_a_header_counts_with_method_override_only() {
        let headers = [("x-http-method-override", "delete, PUT"), ("x-http-method", "nonsense")];
        assert_eq!(methods("POST", false, &headers), named(&["POST"]));
        assert_eq!(methods("POST", true, &headers), named(&["POST", "PUT", "DELETE"]));
        assert_eq!(methods("POST", true, &[("x-method-override", " get ")]), named(&["GET", "POST"]));
    }

    #[test]
    fn a_preflight_is_what_browsers_send_and_nothing_else() {
        let real = [("origin", "https://page.example"), ("access-control-request-method", "POST")];
        let is_one = |method: &str, has_body: bool, headers: &[(&'static str, &'static str)]| {
            request_methods(
                method,
                has_body,
                MethodOptions { named: false, overrides: true },
                &Request(headers.to_vec()),
            )
            .preflight
        };
        assert!(is_one("OPTIONS", false, &real));
        assert!(!is_one("GET", false, &real) && !is_one("OPTIONS", true, &real));
        assert!(!is_one("OPTIONS", false, &real[..1]) && !is_one("OPTIONS", false, &real[1..]));
        for more in [("upgrade", "websocket"), ("x-http-method-override", "POST")] {
            assert!(!is_one("OPTIONS", false, &[real[0], real[1], more]), "{more:?}");
        }
        assert!(!is_one("OPTIONS", false, &[real[0], ("access-control-request-method", " ")]));
    }

    #[test]
    fn get_includes_head() {
        let get = Methods::named("GET").unwrap();
        assert!(get.include(HEAD) && get.include(GET) && !get.include(OTHER) && !HEAD.include(GET));
    }
}
