//! Values and lists as error messages show them.

/// The most characters of a text that an error message repeats.
const SHOWN: usize = 64;

/// Describes the accepted costs and counts in error messages.
pub(crate) const AMOUNT: &str = "an integer from 0 to 9007199254740991";

/// Returns a text in quotes, on one line and not too long.
pub(crate) fn shown(found: &str) -> String {
    let mut short = String::new();
    for (position, character) in found.chars().enumerate() {
        if position == SHOWN {
            short.push('…');
            break;
        }
        if character == '"' || character == '\\' {
            short.push('\\');
        }
        short.push(if character.is_ascii_control() { '\u{fffd}' } else { character });
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
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 67);
    }
}
