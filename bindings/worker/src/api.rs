//! The HTTP API and RPC: their items, their errors, and the limit on wrong tokens.

pub(crate) mod items;
pub(crate) mod request_error;
pub(crate) mod rule_key;
pub(crate) mod tokens;
