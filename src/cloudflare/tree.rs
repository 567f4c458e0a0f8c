//! Plain data of any shape, as configuration and requests bring it, before anything is known to be right.

/// How deep data may be nested: nothing that is understood goes deeper.
#[cfg(feature = "cloudflare")]
pub(super) const DEEPEST: usize = 8;

/// Plain data.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Nothing,
    Truth(bool),
    Number(f64),
    Text(String),
    /// A text with half of a surrogate pair, which has no spelling in UTF-8.
    Broken,
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

/// Tests write their data in TOML and JSON. In the Worker it comes from JavaScript, without serde: see `from_js`.
#[cfg(test)]
mod written {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

    use super::Tree;

    impl<'de> Deserialize<'de> for Tree {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Reading)
        }
    }

    struct Reading;

    impl<'de> Visitor<'de> for Reading {
        type Value = Tree;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("plain data")
        }

        fn visit_bool<E>(self, truth: bool) -> Result<Tree, E> {
            Ok(Tree::Truth(truth))
        }

        fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
            Ok(Tree::Number(number as f64))
        }

        fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
            Ok(Tree::Number(number as f64))
        }

        fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
            Ok(Tree::Number(number))
        }

        fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
            Ok(Tree::Text(text.into()))
        }

        fn visit_unit<E>(self) -> Result<Tree, E> {
            Ok(Tree::Nothing)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
            let mut trees = Vec::new();
            while let Some(tree) = list.next_element()? {
                trees.push(tree);
            }
            Ok(Tree::List(trees))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry()? {
                fields.push(field);
            }
            Ok(Tree::Table(fields))
        }
    }
}
