//! Writes `js/wasm/operations.ts`: the table of operations as TypeScript.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Write};

use tollgate::operations::{ArgumentSchema, Gives, OPERATIONS, OperationSchema, Surface};

use super::{camel_case, object, written};

const SURFACES: [Surface; 12] = [
    Surface::Memory,
    Surface::Ledger,
    Surface::Step,
    Surface::Store,
    Surface::Redis,
    Surface::Remote,
    Surface::Rule,
    Surface::Object,
    Surface::Http,
    Surface::Rpc,
    Surface::Limits,
    Surface::Command,
];

/// Returns the text of `js/wasm/operations.ts`.
pub fn operations_typescript() -> String {
    let mut text = written(&[
        (
            "The operations by their names in the HTTP API, with their arguments beside the key. A `plain` one has an amount at most, and gives numbers.",
            "operations",
            object(OPERATIONS.iter().map(|schema| (schema.name.into(), value_of(schema)))),
        ),
        ("The fields of results that have one.", "resultFields", object(OPERATIONS.iter().filter_map(field_of))),
        ("The operations that surfaces do not have, and why.", "lacking", object(SURFACES.map(lacking))),
    ]);
    let plain = OPERATIONS.iter().filter(|schema| schema.plain);
    write_names(&mut text, "The operations.", "Operation", OPERATIONS.iter());
    write_names(&mut text, "The operations that have an amount at most, and return numbers.", "Counted", plain);
    text
}

/// Writes the type of the names of operations.
fn write_names<'a>(text: &mut String, about: &str, name: &str, schemas: impl Iterator<Item = &'a OperationSchema>) {
    let names: Vec<_> = schemas.map(|schema| format!("{:?}", schema.name)).collect();
    let _ = write!(text, "\n/** {about} */\nexport type {name} = {};\n", names.join(" | "));
}

fn value_of(schema: &OperationSchema) -> String {
    let takes = schema.takes.iter().map(|argument| (argument.field.into(), argument_value(argument)));
    let values = [
        ("summary", format!("{:?}", schema.summary)),
        ("on", word(schema.on)),
        ("policies", word(schema.policies)),
        ("takes", object(takes)),
        ("gives", word(schema.gives)),
        ("reads", format!("{}", schema.reads)),
        ("plain", format!("{}", schema.plain)),
    ];
    object(values.map(|(name, value)| (name.into(), value)))
}

fn argument_value(argument: &ArgumentSchema) -> String {
    let mut values = Vec::from([("kind", word(argument.kind)), ("required", format!("{}", argument.required))]);
    if !argument.about.is_empty() {
        values.push(("about", format!("{:?}", argument.about)));
    }
    object(values.into_iter().map(|(name, value)| (name.into(), value)))
}

fn field_of(schema: &OperationSchema) -> Option<(String, String)> {
    let (Gives::Count(field)
    | Gives::CountAndException(field)
    | Gives::Time(field)
    | Gives::ExceptionEnd(field)
    | Gives::Flag(field)) = schema.gives
    else {
        return None;
    };
    Some((schema.name.into(), format!("{field:?}")))
}

fn lacking(surface: Surface) -> (String, String) {
    let reason = |schema: &OperationSchema| {
        let (_, reason) = schema.lacks.iter().find(|(surfaces, _)| surfaces.contains(&surface))?;
        Some((schema.name.into(), format!("{reason:?}")))
    };
    (unquoted(surface), object(OPERATIONS.iter().filter_map(reason)))
}

/// Returns the name of a variant as a string of TypeScript.
fn word(variant: impl Debug) -> String {
    format!("{:?}", unquoted(variant))
}

/// Returns the name of a variant in camelCase.
fn unquoted(variant: impl Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.split('(').next().unwrap_or_default();
    let words = name.char_indices().fold(String::new(), |mut words, (at, letter)| {
        if at > 0 && letter.is_ascii_uppercase() {
            words.push('_');
        }
        words.push(letter);
        words
    });
    camel_case(&words)
}
