//! The limiter of one process: keys, and the slots of their states.

pub(crate) mod chunked;
pub(crate) mod index;
pub(crate) mod limiter;
pub(crate) mod options;
pub(crate) mod slots;
