//! Servers of every kind, each as a few plain steps on a text, against the plan: what a server finds, the plan finds.

use super::tests::{rules, with_rules};
use super::*;
use crate::request::key::testing;

const RULES: &str = r#"
    [[rules]]
    path = "/public/*"
    mode = "skip"
    [[rules]]
    path = "/api/*"
    policies = "api"
    [[rules]]
    path = "/login"
    key = "constant:login"
    policies = "api"
    [[rules]]
    path = "/users/:id/files"
    key = "constant:users"
    policies = "api"
    [[rules]]
    path = "/*"
    key = "constant:rest"
    policies = "api"
"#;

/// Which rule the handler of a path belongs to.
fn handler(path: &str) -> usize {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match segments[..] {
        ["public", ..] => 0,
        ["api", ..] => 1,
        ["login"] => 2,
        ["users", _, "files"] => 3,
        _ => 4,
    }
}

/// Decodes a text once; what cannot be decoded stays.
fn decoded(text: &str) -> String {
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match escape {
            Some(digits) if bytes[at] == b'%' => {
                found.push(u8::from_str_radix(digits, 16).unwrap());
                at += 3;
            }
            _ => {
                found.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(found).unwrap()
}

fn decoded_fully(text: &str) -> String {
    let once = decoded(text);
    if once == text { once } else { decoded_fully(&once) }
}

/// Decodes everything but separators, as Fastify and Hono do.
fn decoded_but_separators(text: &str) -> String {
    let kept = text.replace("%25", "%2525").replace("%2f", "%252f").replace("%3b", "%253b");
    decoded(&kept)
}

fn cut(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').map(|segment| segment.split(';').next().unwrap()).collect();
    segments.join("/")
}

fn ended(path: &str) -> String {
    path.split(';').next().unwrap().into()
}

fn merged(path: &str) -> String {
    let mut path: String = path.into();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    path
}

fn resolved(path: &str) -> String {
    let mut kept = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        match *segment {
            "." => {}
            ".." => drop(kept.pop()),
            plain => kept.push(plain),
        }
        if at + 1 == segments.len() && matches!(*segment, "." | "..") {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

fn slashed(path: &str) -> String {
    path.replace('\\', "/")
}

fn without_slash(path: &str) -> String {
    path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path).into()
}

fn in_lower_case(path: &str) -> String {
    path.to_ascii_lowercase()
}

fn as_it_is(path: &str) -> String {
    path.into()
}

type Step = fn(&str) -> String;

/// Every server: what it does, in this order. It looks for parameters before it decodes or after, not twice.
fn servers() -> Vec<Vec<Step>> {
    let parameters: [[Step; 2]; 5] =
        [[as_it_is, as_it_is], [cut, as_it_is], [ended, as_it_is], [as_it_is, cut], [as_it_is, ended]];
    let decodings: [Step; 4] = [as_it_is, decoded, decoded_fully, decoded_but_separators];
    let others: [Step; 5] = [slashed, merged, resolved, without_slash, in_lower_case];
    let mut servers = Vec::new();
    for [before, after] in parameters {
        for decoding in decodings {
            for chosen in 0..1_u32 << others.len() {
                let taken = |at: usize| if chosen >> at & 1 == 1 { others[at] } else { as_it_is };
                let [slashes, merging, dots, end, case] = std::array::from_fn(taken);
                servers.push(vec![before, decoding, slashes, after, merging, dots, end, case]);
            }
        }
    }
    servers
}

const PLACES: [&[&str]; 5] = [&["api", "x"], &["login"], &["users", "42", "files"], &["public", "x"], &["x"]];
const SEPARATORS: [&str; 12] = ["/", "/", "//", "%2f", "%252f", "\\", "%5c", "%255c", ";/", ";v/", "%3b/", "%253b%2f"];
const DOTS: [&str; 7] = ["..", ".", "%2e%2e", ".%2e", "%252e%252e", "..;", "..%3b"];
const ENDS: [&str; 8] = ["", "", "", "/", "//", ";", "%2f", ";v/y"];

/// Numbers at random, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A separator, which is plain more often than not.
    fn separator(&mut self) -> &'static str {
        if self.below(3) > 0 { "/" } else { self.one_of(&SEPARATORS) }
    }

    fn segment(&mut self, plain: &str) -> String {
        let first = u32::from(plain.as_bytes()[0]);
        match self.below(10) {
            0 => plain.to_ascii_uppercase(),
            1 => format!("%{first:x}{}", &plain[1..]),
            2 => format!("%25{first:x}{}", &plain[1..]),
            3 => format!("{plain};v"),
            4 => format!("{plain}%2fy"),
            _ => plain.into(),
        }
    }

    /// From one place to the next, up and down.
    fn path(&mut self) -> String {
        let mut path = String::new();
        for step in 0..=self.below(3) {
            for _ in 0..if step == 0 { 0 } else { self.below(4) } {
                path = path + self.separator() + self.one_of(&DOTS);
            }
            for plain in PLACES[self.below(PLACES.len())] {
                path = path + self.separator() + &self.segment(plain);
            }
        }
        let end = self.one_of(&ENDS);
        format!("/{}{end}", path.strip_prefix('/').unwrap_or(&path))
    }
}

/// Paths that once had a reading too few.
const FOUND: [&str; 2] =
    ["/PUBLIC/x/.%2e/..;\\%2575sers/42;v%2ffiles%2fy/../api%2fy%3b/x", "/api/x/.%2e/x/..;%5c..;\\..%3b/public;v%5cx/"];

#[test]
fn what_any_server_finds_the_plan_finds() {
    let (config, servers) = (with_rules(RULES), servers());
    let mut handlers = [0_usize; 5];
    let mut random = Random(20_260_101);
    for path in FOUND.map(String::from).into_iter().chain(std::iter::repeat_with(|| random.path()).take(2_000)) {
        let request = Request { method: "GET", path: &path, has_body: false };
        let found = rules(plan(&config, request, &testing::Request(Vec::new())));
        for server in &servers {
            let read = server.iter().fold(path.clone(), |path, step| step(&path));
            let handler = handler(&read);
            handlers[handler] += 1;
            assert!(
                handler == 0 || found.contains(&handler),
                "{path} is {read} to some server, and the plan has {found:?}"
            );
        }
    }
    assert!(handlers.iter().all(|count| *count > 1_000), "{handlers:?}");
}
