//! Which paths a rule is about: literal segments, `:name` for any one segment, `*` at the end for all the rest.

use crate::path::normalise;

/// A pattern such as `/users/:id/posts/*`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    segments: Vec<Segment>,
    /// Whether anything, or nothing at all, may follow.
    open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<str>),
    Any,
}

/// What a pattern may be, for error messages.
pub(crate) const ACCEPTS: &str = "a path such as \"/users/:id\" or \"/api/*\", with * only as the last segment";

impl Pattern {
    /// The pattern that is written like this, unless it is none.
    pub(crate) fn parse(written: &str) -> Option<Self> {
        let mut rest = written.strip_prefix('/')?;
        let open = rest == "*" || rest.ends_with("/*");
        if open {
            rest = rest[..rest.len() - 1].trim_end_matches('/');
        }
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|segment| !segment.is_empty()) {
            segments.push(match segment.strip_prefix(':') {
                Some("") => return None,
                Some(_) => Segment::Any,
                None if segment.contains(['*', '?', '#']) => return None,
                None => Segment::Literal(normalise(segment).trim_start_matches('/').into()),
            });
        }
        Some(Self { segments, open })
    }

    /// Whether a path, as [`normalise`] leaves it, is one of those meant.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut found = path.split('/').filter(|segment| !segment.is_empty());
        for segment in &self.segments {
            match (segment, found.next()) {
                (Segment::Any, Some(_)) => {}
                (Segment::Literal(literal), Some(found)) if **literal == *found => {}
                _ => return false,
            }
        }
        self.open || found.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(&normalise(path))
    }

    #[test]
    fn literals_names_and_the_rest() {
        for (pattern, path) in [
            ("/", "/"),
            ("/*", "/"),
            ("/*", "/a/b"),
            ("/api/*", "/api"),
            ("/api/*", "/api/"),
            ("/api/*", "/api/v1/users"),
            ("/users/:id", "/users/42"),
            ("/users/:id/posts", "/users/a%20b/posts"),
            ("/users/:id/*", "/users/42"),
            ("/caf%C3%A9", "/café"),
            ("/users/", "/users"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/", "/a"),
            ("/api/*", "/apis"),
            ("/api", "/api/v1"),
            ("/users/:id", "/users"),
            ("/users/:id", "/users/42/posts"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn refuses_what_would_not_be_understood() {
        for written in ["", "api", "/a*", "/*/a", "/a/:", "/a?b", "/**", "*"] {
            assert_eq!(Pattern::parse(written), None, "{written}");
        }
    }
}
