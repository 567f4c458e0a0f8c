//! A request: what it names, how origins may read it, and which rules apply to it.

pub(crate) mod cookie;
pub(crate) mod credential;
pub(crate) mod digest;
pub(crate) mod fold;
pub(crate) mod key;
pub(crate) mod method;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod reading;
