//! The plausible readings of a path: origins differ, and a rule must apply under each reading.
//!
//! A reading is determined by how often a server decodes, which characters separate segments, how it handles `;`, and
//! whether it resolves dot segments and merges slashes. Most paths have one reading, none has more than a few hundred, and
//! each takes time linear in the length of the path.

use crate::request::path::{Characters, LEVELS, Parameters, Path, Segment, Split};

/// A path as one server reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'r> {
    pub(crate) segments: &'r [Segment<'r>],
    /// How often the server decodes. A segment of a higher depth matches no literal.
    pub(crate) level: u8,
}

impl Reading<'_> {
    /// Returns whether the server decodes all of a segment.
    pub(crate) fn decoded(&self, segment: &Segment<'_>) -> bool {
        segment.depth <= self.level
    }
}

/// Calls `visit` with every reading of a path. Two readings may be the same.
pub(crate) fn readings(path: &str, mut visit: impl FnMut(Reading<'_>)) {
    let plain = is_plain(path);
    let path = Path::new(path);
    let mut segments = Vec::with_capacity(8);
    if plain {
        path.split(Split { slash: 0, backslash: None, parameters: Parameters::Kept }, &mut segments);
        return endings(&segments, 0, &mut visit);
    }
    let (mut kept, mut merged) = (Vec::new(), Vec::new());
    let found = path.characters();
    for level in LEVELS.into_iter().filter(|level| *level == 0 || found.any.has(*level)) {
        for split in splits(found, level) {
            path.split(split, &mut segments);
            slashes(&segments, level, &mut merged, &mut visit);
            if segments.iter().any(|segment| is_dots(segment, level)) {
                resolve(&segments, level, &mut kept);
                slashes(&kept, level, &mut merged, &mut visit);
                // Servers that merge slashes first remove another segment for `..`.
                merge(&segments, &mut merged);
                resolve(&merged, level, &mut kept);
                endings(&kept, level, &mut visit);
            }
        }
    }
}

/// Returns whether all servers read a path in the same way, but for a slash at its end.
pub(crate) fn is_plain(path: &str) -> bool {
    let mut last = b' ';
    path.bytes().all(|byte| {
        let agreed = !matches!((last, byte), (_, b'%' | b'\\' | b';') | (b'/', b'/' | b'.'));
        last = byte;
        agreed
    })
}

/// Returns the different ways to split a path, for servers that decode up to a level.
fn splits(found: Characters, level: u8) -> impl Iterator<Item = Split> {
    let Characters { slash, backslash, semicolon, .. } = found;
    let slashes = LEVELS.into_iter().filter(move |depth| *depth == 0 || *depth <= level && slash.has(*depth));
    let separates = backslash.has(0) || backslash.appears(level);
    let backslashes = [(None, true), (Some(level), separates)];
    let parameters = [
        (Parameters::Kept, true),
        (Parameters::CutFirst, semicolon.has(0)),
        (Parameters::Cut(0), semicolon.has(0)),
        (Parameters::Ended(0), semicolon.has(0)),
        (Parameters::Cut(level), semicolon.appears(level)),
        (Parameters::Ended(level), semicolon.appears(level)),
    ];
    slashes.flat_map(move |slash| {
        let backslashes = backslashes.into_iter().filter(|(_, differs)| *differs);
        backslashes.flat_map(move |(backslash, _)| {
            let parameters = parameters.into_iter().filter(|(_, differs)| *differs);
            parameters.map(move |(parameters, _)| Split { slash, backslash, parameters })
        })
    })
}

/// Visits segments with all slashes and with slashes merged.
fn slashes<'s>(
    segments: &[Segment<'s>],
    level: u8,
    merged: &mut Vec<Segment<'s>>,
    visit: &mut impl FnMut(Reading<'_>),
) {
    endings(segments, level, visit);
    if segments.iter().rev().skip(1).any(|segment| segment.text.is_empty()) {
        merge(segments, merged);
        endings(merged, level, visit);
    }
}

/// Visits segments as they are and, if there is a slash at the end, without it.
fn endings(segments: &[Segment<'_>], level: u8, visit: &mut impl FnMut(Reading<'_>)) {
    visit(Reading { segments, level });
    if let [before @ .., last] = segments
        && last.text.is_empty()
    {
        visit(Reading { segments: before, level });
    }
}

/// Removes empty segments, but for one at the end.
fn merge<'s>(segments: &[Segment<'s>], merged: &mut Vec<Segment<'s>>) {
    merged.clear();
    let last = segments.len().saturating_sub(1);
    let kept = segments.iter().enumerate().filter(|(at, segment)| *at == last || !segment.text.is_empty());
    merged.extend(kept.map(|(_, segment)| *segment));
}

/// Resolves `.` and `..`. At the end of a path they leave a slash.
fn resolve<'s>(segments: &[Segment<'s>], level: u8, kept: &mut Vec<Segment<'s>>) {
    kept.clear();
    for segment in segments {
        if !is_dots(segment, level) {
            kept.push(*segment);
        } else if segment.text.len() == 2 {
            kept.pop();
        }
    }
    if segments.last().is_some_and(|last| is_dots(last, level)) {
        kept.push(Segment { text: b"", depth: 0 });
    }
}

fn is_dots(segment: &Segment<'_>, level: u8) -> bool {
    segment.depth <= level && matches!(segment.text, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Vec<String> {
        let mut found = Vec::new();
        readings(path, |reading| {
            let text = |segment: &Segment<'_>| {
                let text = String::from_utf8_lossy(segment.text);
                if reading.decoded(segment) { format!("/{text}") } else { format!("/<{text}>") }
            };
            found.push(reading.segments.iter().map(text).collect::<String>());
        });
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn a_plain_path_has_one_reading_and_a_slash_at_the_end_makes_two() {
        assert_eq!(read("/api/Search.json"), ["/api/Search.json"]);
        assert_eq!(read("/api/"), ["/api", "/api/"]);
        assert_eq!(read("/"), ["", "/"]);
    }

    #[test]
    fn a_path_that_servers_read_differently_has_every_reading() {
        assert_eq!(read("/a%20b"), ["/<a b>", "/a b"]);
        assert_eq!(read("/a%u0020b"), ["/<a b>", "/a b"]);
        assert_eq!(read("/a//b"), ["/a//b", "/a/b"]);
        assert_eq!(read("/a/../b"), ["/a/../b", "/b"]);
        assert_eq!(read("/a;v/b"), ["/a", "/a/b", "/a;v/b"]);
        assert_eq!(read("/a\\b"), ["/a/b", "/a\\b"]);
        assert_eq!(read("/a%2fb"), ["/<a/b>", "/a/b"]);
        assert_eq!(read("/a/..%2fb"), ["/a/../b", "/a/<../b>", "/b"]);
        // Merged first, `..` removes `a`; otherwise the empty segment.
        assert!(read("/a//../b").contains(&"/b".into()) && read("/a//../b").contains(&"/a/b".into()));
        assert!(read("/%2575sers/4%252f2").contains(&"/users/4/2".into()));
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let tricky = "/..%2f%5c;%252e%252e%3b\\%255c%253b//".repeat(200);
        for path in [tricky, format!("/{}", "%25".repeat(4_000)), "/..".repeat(3_000), ";".repeat(8_000)] {
            let mut count = 0;
            readings(&path, |_| count += 1);
            assert!(count <= 600, "{count} {}", &path[..40]);
        }
    }
}
