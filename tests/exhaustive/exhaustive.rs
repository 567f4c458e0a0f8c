//! The law of the algorithms, proved on all that is small and tried on much that is not, against an independent oracle.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod bans;
mod driver;
mod more_after;
mod oracle;
mod random;
mod restarts;
mod scopes;
mod spec;
mod standing;
mod state;
mod versions;
