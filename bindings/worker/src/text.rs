//! Values and lists as error messages show them.

use tollgate::boundary::acts_on_terminals;
use tollgate::{Expected, MAX};

/// The highest number of characters of a text that an error message shows.
const MAX_SHOWN: usize = 64;

/// The accepted costs and counts.
pub(crate) const AMOUNT: Expected = Expected::Integer { min: 0, max: MAX };

/// Returns a text in quotes, on one line and not too long.
pub(crate) fn shown(found: &str) -> String {
    let mut short = String::new();
    for (position, character) in found.chars().enumerate() {
        if position == MAX_SHOWN {
            short.push('…');
            break;
        }
        if character == '"' || character == '\\' {
            short.push('\\');
        }
        short.push(if acts_on_terminals(character) { '\u{fffd}' } else { character });
    }
    format!("\"{short}\"")
}

/// Returns names with commas between them.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_on_one_line() {
        assert_eq!(shown("a\"b\\c\nd"), "\"a\\\"b\\\\c\u{fffd}d\"");
        assert_eq!(shown("a\u{9b}31mb\u{202e}c"), "\"a\u{fffd}31mb\u{fffd}c\"");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 67);
    }
}
