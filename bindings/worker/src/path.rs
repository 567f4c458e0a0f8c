//! One spelling for every path, so that no other spelling slips past a rule.
//!
//! Where servers disagree about what a path means, this takes the reading under which more paths are the
//! same: a rule that limits too much is the safe side.

/// The path that all spellings of it come to: escapes decoded however often they were encoded, backslashes
/// as slashes, path parameters (`;…`), dot segments, empty segments and a trailing slash taken away.
pub(crate) fn normalise(path: &str) -> String {
    let decoded = decode(path.as_bytes());
    let text = String::from_utf8_lossy(&decoded);
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split(['/', '\\']) {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            plain => segments.push(plain),
        }
    }
    let mut whole = String::new();
    for segment in &segments {
        whole.push('/');
        whole.push_str(segment);
    }
    if whole.is_empty() { "/".into() } else { whole }
}

/// Decodes until nothing is left to decode. An escape is looked for at the end of what was decoded so far,
/// so what one escape gives can be part of the next, and the work grows with the length only.
fn decode(path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    for &byte in path {
        decoded.push(byte);
        while let Some(byte) = escape_at_end(&decoded) {
            decoded.truncate(decoded.len() - 3);
            decoded.push(byte);
        }
    }
    decoded
}

fn escape_at_end(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low] = *bytes.last_chunk::<3>()? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_comes_to_one() {
        for spelling in [
            "/admin/users",
            "//admin//users",
            "/admin/users/",
            "/admin/./users",
            "/admin/x/../users",
            "/../admin/users",
            "/%61dmin/users",
            "/%2561dmin/users",
            "/%252561dmin/users",
            "/admin%2fusers",
            "/admin%2Fusers",
            "/admin%252Fusers",
            "/admin\\users",
            "/admin%5cusers",
            "/x/%2e%2e/admin/users",
            "/x/%2E%2e%2fadmin/users",
            "/x/..;/admin/users",
            "/admin;jsessionid=1/users",
            "/admin/users;v=1",
            "admin/users",
            "/%%36%31dmin/users",
        ] {
            assert_eq!(normalise(spelling), "/admin/users", "{spelling}");
        }
    }

    #[test]
    fn what_is_different_stays_different() {
        assert_eq!(normalise("/"), "/");
        assert_eq!(normalise(""), "/");
        assert_eq!(normalise("/.."), "/");
        assert_eq!(normalise("/Admin"), "/Admin");
        assert_eq!(normalise("/100%"), "/100%");
        assert_eq!(normalise("/%zz/%4"), "/%zz/%4");
        assert_eq!(normalise("/caf%C3%A9"), "/café");
        assert_eq!(normalise("/%ff"), "/\u{fffd}");
        assert_eq!(normalise("/.../a"), "/.../a");
    }

    #[test]
    fn escapes_within_escapes_take_no_longer() {
        let path = format!("/%{}61dmin", "25".repeat(50_000));
        assert_eq!(normalise(&path), "/admin");
    }
}
