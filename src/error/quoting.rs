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
                _ if character.is_ascii_control() => f.write_char('\u{fffd}')?,
                _ => f.write_char(character)?,
            }
        }
        f.write_char('"')
    }
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
        assert_eq!(Quoted(&"x".repeat(100)).to_string().chars().count(), 67);
    }
}
