//! The origins whose pages may read responses that the gateway makes itself: denials, rejections and errors.

use crate::config::{ORIGIN, is_origin};
use crate::reader::{FieldError, Reader, invalid, non_empty_text};

/// The origins that may read a response of the gateway itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cors {
    pub(crate) origins: Vec<String>,
    /// True if their requests may carry credentials, such as cookies.
    pub(crate) credentials: bool,
}

impl Default for Cors {
    /// Every page, without credentials.
    fn default() -> Self {
        Self { origins: vec!["*".into()], credentials: false }
    }
}

/// Reads the table `cors`.
pub(crate) fn read(reader: &mut Reader<'_>) -> Cors {
    let Some(tree) = reader.take("cors") else { return Cors::default() };
    let mut own = Reader::new(reader.path_of("cors"), tree, reader.errors);
    let origins = origins(&mut own).unwrap_or_else(|| Cors::default().origins);
    let credentials = own.boolean("credentials").unwrap_or(false);
    if credentials && origins.iter().any(|origin| origin == "*") {
        let problem = "requires origins such as \"https://app.example\": browsers reject \"*\" with credentials".into();
        own.errors.push(FieldError { path: own.path_of("credentials"), problem });
    }
    own.finish();
    Cors { origins, credentials }
}

/// Reads a list of origins; `None` if there is none.
pub(crate) fn origins(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let mut origins = Vec::new();
    for (path, tree) in reader.list("origins")? {
        match non_empty_text(&tree).filter(|origin| is_origin(origin)) {
            Some(origin) => origins.push(origin),
            None => reader.errors.push(invalid(path, &tree, ORIGIN)),
        }
    }
    Some(origins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::FieldErrors;
    use crate::tree::Tree;

    fn cors(toml: &str) -> Result<Cors, Vec<String>> {
        let mut errors = FieldErrors::new();
        let tree: Tree = toml::from_str(toml).unwrap();
        let cors = read(&mut Reader::new(String::new(), tree, &mut errors));
        if errors.is_empty() { Ok(cors) } else { Err(errors.iter().map(ToString::to_string).collect()) }
    }

    #[test]
    fn every_page_may_read_without_credentials_unless_it_says_otherwise() {
        assert_eq!(cors(""), Ok(Cors { origins: vec!["*".into()], credentials: false }));
        assert_eq!(cors("cors.origins = []").unwrap().origins, Vec::<String>::new());
        let named = cors("cors = { origins = \"https://app.example\", credentials = true }").unwrap();
        assert_eq!(named, Cors { origins: vec!["https://app.example".into()], credentials: true });
    }

    #[test]
    fn errors_are_named() {
        let errors = cors("cors = { origins = [\"*\", \"App\"], credentials = true, other = 1 }").unwrap_err();
        assert!(errors[0].starts_with("cors.origins[1]: \"App\" is not an origin"), "{errors:?}");
        assert!(errors[1].starts_with("cors.credentials: requires origins such as "), "{errors:?}");
        assert!(errors[2].starts_with("cors.other: unknown field"), "{errors:?}");
    }
}
