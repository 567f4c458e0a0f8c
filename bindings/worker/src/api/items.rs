//! Requests to the HTTP API and by RPC: one item, or a batch of independent items.

mod fields;
mod item_key;
#[cfg(test)]
mod tests;

use tollgate::Policies;
use tollgate::operations::{Named, OPERATIONS, OperationSchema};

use crate::api::request_error::RequestError;
use crate::config::Config;
use crate::config::policies::PolicySet;
use crate::reader::{FieldErrors, Reader, invalid, non_empty_text};
use crate::text::listed;
use crate::tree::Tree;
use fields::Fields;
pub(crate) use item_key::ItemKey;

/// The highest number of items in a batch.
pub(crate) const MAX_ITEMS: usize = 100;

/// One operation on one object.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) object: String,
    pub(crate) policies: Policies,
    /// The cost or the count.
    pub(crate) amount: i64,
    /// The name of the policy that the operation is on, if there are several.
    pub(crate) policy: Option<String>,
    /// The question in JSON, if it has more fields than these.
    pub(crate) question: Option<String>,
}

impl Item {
    /// Returns an item without a question. Checks the key and the names.
    pub(crate) fn new(
        config: &Config,
        schema: &OperationSchema,
        names: &[String],
        key: &ItemKey,
        amount: i64,
        policy: Option<String>,
    ) -> Result<Self, RequestError> {
        let object = key.object()?;
        let PolicySet { policies, .. } = config.set(names)?;
        let is_known = match (&policy, schema.policies) {
            (_, Named::None | Named::All) => true,
            (Some(policy), _) => policies.names().any(|known| known == policy),
            // The object knows which of several is the ban.
            (None, named) => policies.len() == 1 || named == Named::Ban,
        };
        if !is_known {
            return Err(RequestError::unknown_policy("of", policy.as_deref(), &listed(policies.names())));
        }
        Ok(Self { object, policies, amount, policy, question: None })
    }
}

/// The items of a request, each valid or an error, and whether they came as a batch.
type Items = (Vec<Result<Item, RequestError>>, bool);

/// Reads the items of a request's body.
pub(crate) fn read(config: &Config, operation: &str, body: Tree) -> Result<Items, RequestError> {
    let schema = schema(operation)?;
    let (trees, batch) = match body {
        Tree::List(list) => (list, true),
        one => (vec![one], false),
    };
    if !(1..=MAX_ITEMS).contains(&trees.len()) {
        let message = format!("a batch of {} items is not one of 1 to {MAX_ITEMS}", trees.len());
        return Err(RequestError::invalid_request(message));
    }
    Ok((trees.into_iter().map(|tree| read_item(config, schema, tree)).collect(), batch))
}

/// Returns the schema of an operation.
pub(crate) fn schema(operation: &str) -> Result<&'static OperationSchema, RequestError> {
    let unknown = || RequestError::invalid_request(format!("{operation} is not an operation"));
    OPERATIONS.iter().find(|schema| schema.name == operation).ok_or_else(unknown)
}

fn read_item(config: &Config, schema: &OperationSchema, tree: Tree) -> Result<Item, RequestError> {
    let mut errors = FieldErrors::new();
    let mut reader = Reader::new(String::new(), tree, &mut errors);
    let names = read_policy_names(&mut reader);
    let fields = Fields::read(&mut reader, schema);
    reader.finish();
    match errors.first() {
        Some(first) => Err(RequestError::invalid_request(first.to_string())),
        None => fields.into_item(config, schema, &names),
    }
}

fn read_policy_names(reader: &mut Reader<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let path = reader.path_of("policy");
    for (path, tree) in reader.list("policy").unwrap_or_default() {
        match non_empty_text(&tree) {
            Some(name) => names.push(name),
            None => reader.errors.push(invalid(path, &tree, "the name of a policy")),
        }
    }
    if names.is_empty() && reader.errors.is_empty() {
        reader.errors.push(invalid(path, &Tree::Null, "the name of a policy, or a list of names"));
    }
    names
}
