//! Strings and lists in error messages.

use core::fmt::{self, Display, Formatter, Write};

/// The most characters of a string that an error shows.
const MAX_SHOWN: usize = 64;

/// Displays a string in quotes, on one line, cut after [`MAX_SHOWN`] characters.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for (position, character) in self.0.chars().enumerate() {
            match character {
                _ if position == MAX_SHOWN => {
                    f.write_char('…')?;
                    break;
                }
                '"' | '\\' => write!(f, "\\{character}")?,
                _ if acts_on_terminals(character) => f.write_char('\u{fffd}')?,
                _ => f.write_char(character)?,
            }
        }
        f.write_char('"')
    }
}

/// Returns whether a terminal acts on a character, or whether it changes the order in which the characters around it are
/// shown: C0 and C1 controls, separators of lines, and marks of direction.
pub fn acts_on_terminals(character: char) -> bool {
    let is_separator = matches!(character, '\u{2028}' | '\u{2029}');
    let is_direction =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_separator || is_direction
}

/// Displays names with commas between them.
pub(crate) struct Listed<'a, T>(pub(crate) &'a [T]);

impl<T: AsRef<str>> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.0 {
            f.write_str(separator)?;
            f.write_str(name.as_ref())?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_shown_on_one_line() {
        assert_eq!(Quoted("a\"b\\c\nd").to_string(), "\"a\\\"b\\\\c\u{fffd}d\"");
        for unsafe_character in
            ['\u{1b}', '\u{7f}', '\u{9b}', '\u{61c}', '\u{200e}', '\u{2028}', '\u{202e}', '\u{2066}']
        {
            assert_eq!(Quoted(&format!("a{unsafe_character}b")).to_string(), "\"a\u{fffd}b\"");
        }
        assert_eq!(Quoted("é 漢 👩‍💻").to_string(), "\"é 漢 👩‍💻\"");
        assert_eq!(Quoted(&"x".repeat(100)).to_string().chars().count(), 67);
    }
}
