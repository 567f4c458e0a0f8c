//! A fully decoded path, with the number of times that each of its bytes was encoded: its depth.
//!
//! Servers differ in how often they decode. One array of bytes and depths describes the paths of all of them: for a
//! server that decodes once, a byte that was encoded twice is part of an escape.

use std::borrow::Cow;

/// How often servers decode: not at all, once, or until no escape is left.
pub(crate) const LEVELS: [u8; 3] = [0, 1, FULLY];

/// The depth of a byte that was encoded at least twice, and the level that decodes everything.
pub(crate) const FULLY: u8 = 2;

/// A path after all decoding.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    bytes: Cow<'a, [u8]>,
    /// The depth of each byte, at most [`FULLY`]. Empty for a path without escapes.
    depths: Vec<u8>,
}

/// The depths at which a path has a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depths(u8);

impl Depths {
    fn add(&mut self, depth: u8) {
        self.0 |= 1 << depth;
    }

    pub(crate) fn has(self, depth: u8) -> bool {
        self.0 >> depth & 1 == 1
    }

    /// Returns whether the character appears only by decoding, up to a level.
    pub(crate) fn appears(self, level: u8) -> bool {
        (1..=level).any(|depth| self.has(depth))
    }
}

/// The characters about which servers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Characters {
    pub(crate) any: Depths,
    pub(crate) slash: Depths,
    pub(crate) backslash: Depths,
    pub(crate) semicolon: Depths,
}

/// A part of a path between two separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub(crate) text: &'a [u8],
    /// The level at which all of its text is decoded.
    pub(crate) depth: u8,
}

/// How a server handles `;` in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameters {
    /// Keeps it.
    Kept,
    /// Removes it and the rest of the segment before it decodes: up to a `/` as sent.
    CutFirst,
    /// Removes it and the rest of the segment, if it is decoded at this level.
    Cut(u8),
    /// Removes it and the rest of the path, if it is decoded at this level.
    Ended(u8),
}

/// How a server splits a path into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The level at which `/` separates.
    pub(crate) slash: u8,
    /// The level at which `\` separates, if it does.
    pub(crate) backslash: Option<u8>,
    pub(crate) parameters: Parameters,
}

impl<'a> Path<'a> {
    /// Decodes a path in linear time. After each byte it looks for an escape at the end of the decoded bytes, so that a
    /// decoded byte can be part of the next escape.
    pub(crate) fn new(path: &'a str) -> Self {
        let path = path.as_bytes();
        if !path.contains(&b'%') {
            return Self { bytes: path.into(), depths: Vec::new() };
        }
        let (mut bytes, mut depths) = (Vec::with_capacity(path.len()), Vec::with_capacity(path.len()));
        for &byte in path {
            bytes.push(byte);
            depths.push(0);
            while let Some(Escape { length, decoded }) = escape_at_end(&bytes) {
                let depth = depths.iter().rev().take(length).max().map_or(FULLY, |depth| (depth + 1).min(FULLY));
                bytes.truncate(bytes.len() - length);
                depths.truncate(bytes.len());
                match decoded {
                    Decoded::Byte(byte) => bytes.push(byte),
                    Decoded::Character(character) => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                }
                depths.resize(bytes.len(), depth);
            }
        }
        Self { bytes: bytes.into(), depths }
    }

    /// Returns all of the path, decoded.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into()
    }

    /// Returns which special characters the path has, and how deep.
    pub(crate) fn characters(&self) -> Characters {
        let mut found = Characters::default();
        for (byte, depth) in self.bytes() {
            found.any.add(depth);
            match byte {
                b'/' => found.slash.add(depth),
                b'\\' => found.backslash.add(depth),
                b';' => found.semicolon.add(depth),
                _ => {}
            }
        }
        found
    }

    /// Splits the path into segments, of which the first follows the leading slash.
    pub(crate) fn split<'s>(&'s self, split: Split, segments: &mut Vec<Segment<'s>>) {
        segments.clear();
        let mut start = usize::from(self.bytes.first() == Some(&b'/'));
        let (mut end, mut depth) = (None, 0);
        for (at, (byte, level)) in self.bytes().enumerate().skip(start) {
            let removed = end.is_some() && split.parameters == Parameters::CutFirst && (byte, level) != (b'/', 0);
            if split.separates(byte, level) && !removed {
                segments.push(Segment { text: &self.bytes[start..end.unwrap_or(at)], depth });
                (start, end, depth) = (at + 1, None, 0);
            } else if end.is_none() {
                match split.parameters {
                    Parameters::CutFirst if byte == b';' && level == 0 => end = Some(at),
                    Parameters::Cut(most) if byte == b';' && level <= most => end = Some(at),
                    Parameters::Ended(most) if byte == b';' && level <= most => {
                        segments.push(Segment { text: &self.bytes[start..at], depth });
                        return;
                    }
                    _ => depth = depth.max(level),
                }
            }
        }
        segments.push(Segment { text: &self.bytes[start..end.unwrap_or(self.bytes.len())], depth });
    }

    fn bytes(&self) -> impl Iterator<Item = (u8, u8)> {
        self.bytes.iter().enumerate().map(|(at, byte)| (*byte, self.depths.get(at).copied().unwrap_or(0)))
    }
}

impl Split {
    fn separates(self, byte: u8, level: u8) -> bool {
        match byte {
            b'/' => level <= self.slash,
            b'\\' => self.backslash.is_some_and(|most| level <= most),
            _ => false,
        }
    }
}

/// Returns a segment without an end that some servers drop: a NUL and the rest after it; blanks, control characters and
/// dots, which file systems ignore; and a line break, before which `$` matches in most regular expressions.
pub(crate) fn without_end(text: &[u8]) -> &[u8] {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let end = text.iter().rposition(|byte| byte.is_ascii_graphic() && *byte != b'.' || *byte >= 0x80);
    end.map_or(text, |end| &text[..=end])
}

/// An escape.
struct Escape {
    /// The number of its bytes.
    length: usize,
    decoded: Decoded,
}

enum Decoded {
    Byte(u8),
    Character(char),
}

/// Returns the escape at the end: `%61`, or `%u0061`, which some servers decode too.
fn escape_at_end(bytes: &[u8]) -> Option<Escape> {
    if let [b'%', digits @ ..] = bytes.last_chunk::<3>()? {
        return Some(Escape { length: 3, decoded: Decoded::Byte(number(digits)? as u8) });
    }
    let [b'%', b'u' | b'U', digits @ ..] = bytes.last_chunk::<6>()? else { return None };
    // Half of a surrogate pair is no character.
    let character = char::from_u32(number(digits)?).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(Escape { length: 6, decoded: Decoded::Character(character) })
}

/// Returns the number of hexadecimal digits; `None` if one is not.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

/// Returns the path for keys, normalised as far as possible: fully decoded, `\` as `/`, without parameters, dot segments,
/// empty segments and a slash at its end.
pub(crate) fn normalise(path: &str) -> String {
    normalised(&Path::new(path), Parameters::Cut(FULLY))
}

/// Returns the normalised path for servers to which `;` ends the path; `None` if there is no `;`.
pub(crate) fn normalise_ended(path: &str) -> Option<String> {
    let path = Path::new(path);
    path.bytes.contains(&b';').then(|| normalised(&path, Parameters::Ended(FULLY)))
}

fn normalised(path: &Path<'_>, parameters: Parameters) -> String {
    let mut segments = Vec::new();
    path.split(Split { slash: FULLY, backslash: Some(FULLY), parameters }, &mut segments);
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in segments {
        match segment.text {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            plain => kept.push(without_end(plain)),
        }
    }
    let mut whole = String::new();
    for segment in &kept {
        whole.push('/');
        whole.push_str(&String::from_utf8_lossy(segment));
    }
    if whole.is_empty() { "/".into() } else { whole }
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
            "/admin/users%3bv",
            "/admin/users.",
            "/admin%20/users%0a",
            "/admin/users%00.css",
            "admin/users",
            "/%%36%31dmin/users",
            "/%u0061dmin/users",
            "/%U0061dmin%u002Fusers",
            "/%25u0061dmin/users",
            "/%%75006%31dmin/users",
            "/x/%u002e%u002E/admin/users",
        ] {
            assert_eq!(normalise(spelling), "/admin/users", "{spelling}");
        }
    }

    #[test]
    fn a_semicolon_may_end_a_path() {
        assert_eq!(normalise_ended("/admin/users"), None);
        for spelling in ["/admin/users;/more", "/admin/users;", "/admin/users%3b/../more"] {
            assert_eq!(normalise_ended(spelling).as_deref(), Some("/admin/users"), "{spelling}");
        }
    }

    #[test]
    fn different_paths_stay_different() {
        assert_eq!(normalise("/"), "/");
        assert_eq!(normalise(""), "/");
        assert_eq!(normalise("/.."), "/");
        assert_eq!(normalise("/Admin"), "/Admin");
        assert_eq!(normalise("/100%"), "/100%");
        assert_eq!(normalise("/%zz/%4"), "/%zz/%4");
        assert_eq!(normalise("/caf%C3%A9"), "/café");
        assert_eq!(normalise("/%ff"), "/\u{fffd}");
        assert_eq!(normalise("/.../a"), "/.../a");
        assert_eq!(normalise("/%u00e9%u6F22"), "/é漢");
        assert_eq!(normalise("/%ud83d"), "/\u{fffd}");
        assert_eq!(normalise("/%u00/%u00g1/%u"), "/%u00/%u00g1/%u");
    }

    fn split(path: &str, slash: u8, backslash: Option<u8>, parameters: Parameters) -> Vec<(String, u8)> {
        let path = Path::new(path);
        let mut segments = Vec::new();
        path.split(Split { slash, backslash, parameters }, &mut segments);
        segments.iter().map(|found| (String::from_utf8_lossy(found.text).into(), found.depth)).collect()
    }

    #[test]
    fn a_separator_separates_at_the_level_that_decodes_it() {
        let kept = Parameters::Kept;
        let found =
            |texts: &[(&str, u8)]| texts.iter().map(|(text, depth)| ((*text).into(), *depth)).collect::<Vec<_>>();
        assert_eq!(split("/a%2fb/%252fc", 0, None, kept), found(&[("a/b", 1), ("/c", 2)]));
        assert_eq!(split("/a%2fb/%252fc", 1, None, kept), found(&[("a", 0), ("b", 0), ("/c", 2)]));
        assert_eq!(split("/a%2fb/%252fc", 2, None, kept), found(&[("a", 0), ("b", 0), ("", 0), ("c", 0)]));
        assert_eq!(split("/a\\b%5cc", 0, None, kept), found(&[("a\\b\\c", 1)]));
        assert_eq!(split("/a\\b%5cc", 0, Some(0), kept), found(&[("a", 0), ("b\\c", 1)]));
        assert_eq!(split("/a;x%2fy/b%3b", 1, None, Parameters::CutFirst), found(&[("a", 0), ("b;", 1)]));
        assert_eq!(split("/a;x%2f/b%3b", 1, None, Parameters::Cut(1)), found(&[("a", 0), ("", 0), ("b", 0)]));
        assert_eq!(split("/a/%3b;x/b", 0, None, Parameters::Ended(0)), found(&[("a", 0), (";", 1)]));
        assert_eq!(split("/", 0, None, kept), found(&[("", 0)]));
    }

    #[test]
    fn nested_escapes_take_linear_time() {
        let path = format!("/%{}61dmin", "25".repeat(50_000));
        assert_eq!(normalise(&path), "/admin");
        let path = format!("/%{}u0061dmin", "u0025".repeat(50_000));
        assert_eq!(normalise(&path), "/admin");
    }
}
