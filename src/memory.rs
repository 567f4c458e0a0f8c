//! The limiter of one process: keys, and the slots of their states.

pub(crate) mod chunked;
pub(crate) mod index;
pub(crate) mod limiter;
pub(crate) mod options;
#[cfg(feature = "sync")]
pub(crate) mod shared;
pub(crate) mod slots;
