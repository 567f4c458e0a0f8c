//! The field that an error of the core is about, and the rest of its message.

use tollgate::Error;

/// Splits an error into the field that it names and its problem.
pub(crate) trait Blame {
    /// Returns the name of the field that is wrong, if the error is about one.
    fn field(&self) -> Option<String>;

    /// Returns the message without the field's name.
    fn problem(&self) -> String;
}

impl Blame for Error {
    fn field(&self) -> Option<String> {
        self.to_string().split_once(": ").map(|(field, _)| field.into())
    }

    fn problem(&self) -> String {
        let message = self.to_string();
        message.split_once(": ").map_or(message.clone(), |(_, problem)| problem.into())
    }
}
