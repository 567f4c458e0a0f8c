//! Reads `allow` and `deny`: ranges of addresses whose requests pass without a limit, or are denied.

use crate::reader::{FieldError, Reader, invalid};
use crate::request::ranges::{ACCEPTS, Range, Verdict, problem};
use crate::text::shown;
use crate::tree::Tree;

/// Reads both lists.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<(Range, Verdict)> {
    let mut ranges: Vec<(Range, Verdict)> = Vec::new();
    for (field, verdict) in [("allow", Verdict::Allow), ("deny", Verdict::Deny)] {
        for (path, tree) in reader.list(field).unwrap_or_default() {
            let Tree::Text(text) = &tree else {
                reader.errors.push(invalid(path, &tree, ACCEPTS));
                continue;
            };
            match Range::parse(text) {
                Ok(range) if ranges.contains(&(range, Verdict::Allow)) && verdict == Verdict::Deny => {
                    let problem = format!("{} is in allow, too; the narrowest range decides", shown(text));
                    reader.errors.push(FieldError { path, problem });
                }
                Ok(range) => ranges.push((range, verdict)),
                Err(error) => reader.errors.push(FieldError { path, problem: problem(text, error) }),
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::FieldErrors;

    #[test]
    fn errors_name_the_entry() {
        let toml = "allow = [\"10.0.0.0/8\", \"10.0.0.1/8\", 5]\ndeny = [\"::ffff:10.0.0.0/104\", \"office\"]";
        let mut errors = FieldErrors::new();
        let tree: Tree = toml::from_str(toml).unwrap();
        let read = read(&mut Reader::new(String::new(), tree, &mut errors));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let office = format!("deny[1]: \"office\" is not {ACCEPTS}");
        let number = format!("allow[2]: 5 is not {ACCEPTS}");
        let expected = [
            "allow[1]: \"10.0.0.1/8\" has bits after its prefix; use \"10.0.0.0/8\"",
            &number,
            "deny[0]: \"::ffff:10.0.0.0/104\" is in allow, too; the narrowest range decides",
            &office,
        ];
        assert_eq!((errors, read.len()), (expected.map(String::from).to_vec(), 1));
    }
}
