//! What the Worker's entry asks of Rust: strings and numbers in, an answer out.
//!
//! Nothing here is arithmetic of rates: it converts and delegates to the core.

mod fault;
mod message;
mod object;
mod responder;
mod row;
