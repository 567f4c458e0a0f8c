//! What a client and an object say to each other: operations and policies there, decisions back.

pub(crate) mod message;
pub(crate) mod policies;
pub mod wire;
