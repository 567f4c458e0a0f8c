//! Reads a table field by field, and collects every error with its path.

use std::fmt::Display;

use tollgate::MAX;

use crate::text::{listed, shown};
use crate::tree::Tree;

/// An error in one field: its path, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) path: String,
    pub(crate) problem: String,
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.path, self.problem)
    }
}

/// All errors of a configuration or a request.
pub(crate) type FieldErrors = Vec<FieldError>;

/// A field: its name in camelCase, its name as it was written, and its value.
type Field = (String, String, Tree);

/// A table whose fields are taken one by one. The fields that are left at the end are unknown.
pub(crate) struct Reader<'a> {
    path: String,
    fields: Vec<Field>,
    known: Vec<&'static str>,
    pub(crate) errors: &'a mut FieldErrors,
}

impl<'a> Reader<'a> {
    /// Reads the table at `path`. Anything else is an error, and is then read as an empty table.
    pub(crate) fn new(path: String, tree: Tree, errors: &'a mut FieldErrors) -> Self {
        let fields = match tree {
            Tree::Table(fields) => fields.into_iter().map(|(name, value)| (camel_case(&name), name, value)).collect(),
            other => {
                errors.push(invalid(path.clone(), &other, "an object"));
                Vec::new()
            }
        };
        Self { path, fields, known: Vec::new(), errors }
    }

    /// Returns the path of a field.
    pub(crate) fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() { field.into() } else { format!("{}.{field}", self.path) }
    }

    /// Takes a field; `None` if it is missing or null. A second value, in the other spelling, is left, and so an error.
    pub(crate) fn take(&mut self, field: &'static str) -> Option<Tree> {
        self.take_or_null(field).filter(|value| !matches!(value, Tree::Null))
    }

    /// Takes a field; `None` if it is missing.
    pub(crate) fn take_or_null(&mut self, field: &'static str) -> Option<Tree> {
        self.known.push(field);
        let at = self.fields.iter().position(|(name, ..)| name == field)?;
        Some(self.fields.remove(at).2)
    }

    /// Takes an amount; `None` if it is missing. A null is an error: JSON has it for a number that is not finite.
    pub(crate) fn take_amount(&mut self, field: &'static str, accepts: impl Display) -> Option<Tree> {
        let found = self.take_or_null(field)?;
        if matches!(found, Tree::Null) {
            let problem = format!("null is not {accepts}");
            self.errors.push(FieldError { path: self.path_of(field), problem });
            return None;
        }
        Some(found)
    }

    /// Adds the error of a field that has an invalid value.
    pub(crate) fn reject(&mut self, field: &str, found: &Tree, accepts: impl Display) {
        let path = self.path_of(field);
        self.errors.push(invalid(path, found, accepts));
    }

    /// Takes an amount through `read`, which returns `None` for an invalid value.
    pub(crate) fn amount<T>(
        &mut self,
        field: &'static str,
        accepts: impl Display,
        read: impl Fn(&Tree) -> Option<T>,
    ) -> Option<T> {
        let found = self.take_amount(field, &accepts)?;
        self.checked(field, found, accepts, read)
    }

    /// Takes a field through `read`, which returns `None` for an invalid value.
    pub(crate) fn read<T>(
        &mut self,
        field: &'static str,
        accepts: impl Display,
        read: impl Fn(&Tree) -> Option<T>,
    ) -> Option<T> {
        let found = self.take(field)?;
        self.checked(field, found, accepts, read)
    }

    fn checked<T>(
        &mut self,
        field: &'static str,
        found: Tree,
        accepts: impl Display,
        read: impl Fn(&Tree) -> Option<T>,
    ) -> Option<T> {
        let value = read(&found);
        if value.is_none() {
            self.reject(field, &found, accepts);
        }
        value
    }

    /// Takes a field whose value is one of the names in `choices`.
    pub(crate) fn choice<T: Copy>(&mut self, field: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<String> = choices.iter().map(|(name, _)| shown(name)).collect();
        self.read(field, format!("one of {}", names.join(", ")), |found| match found {
            Tree::Text(found) => choices.iter().find(|(name, _)| name == found).map(|(_, choice)| *choice),
            _ => None,
        })
    }

    /// Takes a field that is true or false.
    pub(crate) fn boolean(&mut self, field: &'static str) -> Option<bool> {
        self.read(field, "true or false", |found| match found {
            Tree::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// Takes a field that is one value or a list of them, each with its path.
    pub(crate) fn list(&mut self, field: &'static str) -> Option<Vec<(String, Tree)>> {
        let path = self.path_of(field);
        Some(match self.take(field)? {
            Tree::List(list) => {
                let at = |(position, tree)| (format!("{path}[{position}]"), tree);
                list.into_iter().enumerate().map(at).collect()
            }
            one => vec![(path, one)],
        })
    }

    /// Adds an error for each field that was not taken.
    pub(crate) fn finish(self) {
        for (name, written, _) in &self.fields {
            let problem = if self.known.contains(&name.as_str()) {
                "there is a second value; use one spelling".into()
            } else {
                format!("unknown field; expected one of {}", listed(self.known.iter().copied()))
            };
            self.errors.push(FieldError { path: self.path_of(written), problem });
        }
    }
}

/// Returns the error of a field that has an invalid value or none.
pub(crate) fn invalid(path: String, found: &Tree, accepts: impl Display) -> FieldError {
    let problem = match found {
        Tree::Null => format!("is required ({accepts})"),
        found => format!("{} is not {accepts}", described(found)),
    };
    FieldError { path, problem }
}

/// Returns an integer from 0 to the largest that the core accepts; `None` for anything else.
pub(crate) fn integer(tree: &Tree) -> Option<u64> {
    match *tree {
        Tree::Number(number) if number as u64 as f64 == number && number as u64 <= MAX => Some(number as u64),
        _ => None,
    }
}

/// Returns a text that is not empty; `None` for anything else.
pub(crate) fn non_empty_text(tree: &Tree) -> Option<String> {
    match tree {
        Tree::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// Returns a value as an error message shows it.
fn described(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".into(),
        Tree::Bool(value) => value.to_string(),
        Tree::Number(number) => number.to_string(),
        Tree::Text(text) => shown(text),
        Tree::List(_) => "a list".into(),
        Tree::Table(_) => "an object".into(),
    }
}

/// Returns a name in camelCase: TOML files are written in snake_case, JSON in camelCase, and both are read.
/// Other names with underscores are left as they are, and so unknown.
fn camel_case(name: &str) -> String {
    if name.split('_').any(str::is_empty) {
        return name.into();
    }
    let mut parts = name.split('_');
    let mut name = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}
