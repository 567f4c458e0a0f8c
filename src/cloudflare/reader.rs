//! Reads a table field by field, and notes every mistake by its path.

use super::tree::Tree;
use crate::MAX;
use crate::text::{digits, listed, shown, text};

/// A mistake: where it is, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) path: String,
    pub(super) problem: String,
}

/// All the mistakes there are.
pub(super) type Mistakes = Vec<Mistake>;

/// A table whose fields are taken one after the other; what is left in the end is not known.
pub(super) struct Reader<'a> {
    path: String,
    fields: Vec<(String, Tree)>,
    known: Vec<&'static str>,
    pub(super) mistakes: &'a mut Mistakes,
}

impl<'a> Reader<'a> {
    /// Reads what is at `path`. What is no table is a mistake, and then an empty one.
    pub(super) fn new(path: String, tree: Tree, mistakes: &'a mut Mistakes) -> Self {
        let fields = match tree {
            Tree::Table(fields) => fields.into_iter().map(|(name, value)| (camel_case(&name), value)).collect(),
            other => {
                mistakes.push(mistake(path.clone(), &other, "a table"));
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
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        match self.fields.remove(at).1 {
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
    pub(super) fn list(&mut self, field: &'static str) -> Vec<(String, Tree)> {
        let path = self.path_of(field);
        match self.take(field) {
            None => Vec::new(),
            Some(Tree::List(list)) => {
                let at = |(position, tree)| (text(&[&path, "[", &digits(position as u64), "]"]), tree);
                list.into_iter().enumerate().map(at).collect()
            }
            Some(one) => vec![(path, one)],
        }
    }

    /// Notes what is left: fields that nothing asked for.
    pub(super) fn finish(self) {
        for (name, _) in &self.fields {
            let path = self.path_of(name);
            let problem = text(&["no such field; known here are ", &listed(&self.known)]);
            self.mistakes.push(Mistake { path, problem });
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
        Tree::Number(number) if (0.0..=MAX as f64).contains(&number) && number as u64 as f64 == number => {
            Some(number as u64)
        }
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
pub(super) const BROKEN: &str = "a text with a lone surrogate";

/// A value as an error repeats it.
pub(super) fn in_words(tree: &Tree) -> String {
    match tree {
        Tree::Nothing => "nothing".into(),
        Tree::Truth(true) => "true".into(),
        Tree::Truth(false) => "false".into(),
        // Writing fractions would be the largest thing in the wasm.
        Tree::Number(number) => whole(tree).map_or_else(
            || if *number < 0.0 { "a negative number".into() } else { "a number that is not whole".into() },
            digits,
        ),
        Tree::Text(text) => shown(text),
        Tree::Broken => BROKEN.into(),
        Tree::List(_) => "a list".into(),
        Tree::Table(_) => "a table".into(),
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
