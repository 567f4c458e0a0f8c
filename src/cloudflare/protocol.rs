//! The messages between a client and an object: operations and policies to it, decisions from it.

pub(crate) mod message;
pub(crate) mod policies;
pub mod wire;
