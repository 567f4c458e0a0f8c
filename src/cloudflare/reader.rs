//! Reads a table field by field, and notes every mistake by its path.

use super::tree::Tree;
use crate::number;
use crate::text::{LEFT_OUT, digits, listed, shown, text};

/// A mistake: where it is, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) path: String,
    pub(super) problem: String,
}

/// All the mistakes there are.
pub(super) type Mistakes = Vec<Mistake>;

/// A field: its name in camelCase, its name as it was written, and what it holds.
type Field = (String, String, Tree);

/// A table whose fields are taken one after the other; what is left in the end is not known.
pub(super) struct Reader<'a> {
    path: String,
    fields: Vec<Field>,
    known: Vec<&'static str>,
    pub(super) mistakes: &'a mut Mistakes,
}

impl<'a> Reader<'a> {
    /// Reads what is at `path`. What is no table is a mistake, and then an empty one.
    pub(super) fn new(path: String, tree: Tree, mistakes: &'a mut Mistakes) -> Self {
        let fields = match tree {
            Tree::Table(fields) => fields.into_iter().map(|(name, value)| (camel_case(&name), name, value)).collect(),
            other => {
                mistakes.push(mistake(path.clone(), &other, "an object"));
                Vec::new()
            }
        };
        Self { path, fields, known: Vec::new(), mistakes }
    }

    /// The path of a field.
    pub(super) fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() { field.into() } else { text(&[&self.path, ".", field]) }
    }

    /// Takes a field, if it is there. One that is there twice (in both spellings) is left over, and so a mistake.
    pub(super) fn take(&mut self, field: &'static str) -> Option<Tree> {
        self.known.push(field);
        let at = self.fields.iter().position(|(name, ..)| name == field)?;
        match self.fields.remove(at).2 {
            Tree::Nothing => None,
            value => Some(value),
        }
    }

    /// Notes that a field holds what it cannot.
    pub(super) fn refuse(&mut self, field: &str, found: &Tree, accepts: &str) {
        let path = self.path_of(field);
        self.mistakes.push(mistake(path, found, accepts));
    }

    /// Takes a field through `read`, which answers nothing for what it does not accept.
    pub(super) fn read<T>(
        &mut self,
        field: &'static str,
        accepts: &str,
        read: impl Fn(&Tree) -> Option<T>,
    ) -> Option<T> {
        let found = self.take(field)?;
        let value = read(&found);
        if value.is_none() {
            self.refuse(field, &found, accepts);
        }
        value
    }

    /// Takes a field that is one of some words.
    pub(super) fn word<T: Copy>(&mut self, field: &'static str, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<String> = words.iter().map(|(word, _)| shown(word)).collect();
        self.read(field, &text(&["one of ", &listed(&names)]), |found| match found {
            Tree::Text(found) => words.iter().find(|(word, _)| word == found).map(|(_, meaning)| *meaning),
            _ => None,
        })
    }

    /// Takes a field that is one value or a list of them, each with its path.
    pub(super) fn list(&mut self, field: &'static str) -> Option<Vec<(String, Tree)>> {
        let path = self.path_of(field);
        Some(match self.take(field)? {
            Tree::List(list) => {
                let at = |(position, tree)| (text(&[&path, "[", &digits(position as u64), "]"]), tree);
                list.into_iter().enumerate().map(at).collect()
            }
            one => vec![(path, one)],
        })
    }

    /// Notes what is left: fields that nothing asked for.
    pub(super) fn finish(self) {
        for (name, written, _) in &self.fields {
            let problem = if self.known.contains(&name.as_str()) {
                "a second value is not accepted; give the field once".into()
            } else {
                text(&["no such field; known here are ", &listed(&self.known)])
            };
            self.mistakes.push(Mistake { path: self.path_of(written), problem });
        }
    }
}

/// The mistake of holding what cannot be held.
pub(super) fn mistake(path: String, found: &Tree, accepts: &str) -> Mistake {
    Mistake { path, problem: text(&[&in_words(found), " is not accepted; give ", accepts]) }
}

/// A whole number in the range that all numbers live in.
pub(super) fn whole(tree: &Tree) -> Option<u64> {
    match *tree {
        Tree::Number(number) => number::whole(number),
        _ => None,
    }
}

/// A text that is not empty.
pub(super) fn words(tree: &Tree) -> Option<String> {
    match tree {
        Tree::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// What a text is called that is none.
pub(super) const BROKEN: &str = "a string with a lone surrogate";

/// A value as an error repeats it.
pub(super) fn in_words(tree: &Tree) -> String {
    match tree {
        Tree::Nothing => LEFT_OUT.into(),
        Tree::Truth(true) => "true".into(),
        Tree::Truth(false) => "false".into(),
        Tree::Number(number) => whole(tree).map_or_else(|| number::in_words(*number).into(), digits),
        Tree::Text(text) => shown(text),
        Tree::Broken => BROKEN.into(),
        Tree::List(_) => "a list".into(),
        Tree::Table(_) => "an object".into(),
    }
}

/// TOML files are written in snake_case, JSON in camelCase: both are read.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut whole = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let mut letters = part.chars();
        whole.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        whole.push_str(letters.as_str());
    }
    whole
}
