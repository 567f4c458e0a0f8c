//! Properties of every algorithm, over arbitrary costs and times.
//!
//! Each property runs once per algorithm, with cases of its own. A case that ever failed is kept in `regressions.txt`.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[macro_use]
mod support;

mod admission;
mod ban_oracle;
mod bans;
mod calendar;
mod charged_rates;
mod clock_steps;
mod drift;
mod exceptions;
mod kept;
mod limiter_model;
mod model;
mod peek;
mod per_call;
mod redis_log;
mod reservations;
mod reserved;
mod reserved_numbers;
mod reserved_use;
mod reset_after;
mod retry_after;
mod saturation;
mod several_policies;
mod shapes;
mod snapshot;
mod store;
mod sweeping;
mod undo;
mod waits;
