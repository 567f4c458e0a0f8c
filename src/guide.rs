//! A tour of the crate, from one key in memory to limits that hold everywhere.
//!
//! # Policies
//!
//! A [`Policy`](crate::Policy) is an algorithm and its numbers. It is checked once, when it is built; an invalid one is
//! an [`Error`](crate::Error) with a stable [`code`](crate::Error::code) and a message that says what is accepted.
//!
//! ```
//! use tollgate::Policy;
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let burst = Policy::token_bucket(10, 2, "1s")?.named("burst")?;
//! let daily = Policy::fix_window(1_000, "1d")?.named("daily")?;
//! assert_eq!(Policy::fix_window(0, "1m").unwrap_err().code(), "invalid_policy");
//! # Ok(())
//! # }
//! ```
//!
//! | policy | allows |
//! | --- | --- |
//! | [`fix_window`](crate::Policy::fix_window) | so many in each minute, hour or day of the clock |
//! | [`calendar`](crate::Policy::calendar) | so many in each day, week or month of the calendar |
//! | [`fix_window_per_key`](crate::Policy::fix_window_per_key) | so many in a window that starts at a key's first hit |
//! | [`sliding_window`](crate::Policy::sliding_window) | so many in any stretch of time, exactly |
//! | [`sliding_counter`](crate::Policy::sliding_counter) | about as many, from two counters |
//! | [`token_bucket`](crate::Policy::token_bucket) | bursts, refilled at a steady rate |
//! | [`leaky_bucket`](crate::Policy::leaky_bucket) | a level that leaks at a steady rate |
//!
//! # Many keys in memory
//!
//! A [`Limiter`](crate::Limiter) holds the states of many keys, and reads the time from the clock that it is given. A
//! denial is not an error: every hit returns a [`Decision`](crate::Decision).
//!
//! ```
//! use tollgate::{Limiter, ManualClock, Policy};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let clock = ManualClock::new(1_767_225_600_000);
//! let mut limiter = Limiter::<String, _>::new(Policy::token_bucket(2, 1, "1s")?, &clock)?;
//!
//! assert!(limiter.hit("user:42", 2)?.allowed);
//! let denied = limiter.hit("user:42", 1)?;
//! assert_eq!((denied.allowed, denied.retry_after), (false, Some(1_000)));
//!
//! clock.advance(1_000);
//! assert!(limiter.hit("user:42", 1)?.allowed);
//! # Ok(())
//! # }
//! ```
//!
//! In a program the clock is `SystemClock`, of the feature `system-clock`. [`Options`](crate::Options) limit the number of
//! keys and determine which keys are removed, and when.
//!
//! # Several policies at once
//!
//! Several policies are one decision: if one denies, none is charged.
//!
//! ```
//! use tollgate::{Limiter, ManualClock, Policy};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let policies = [Policy::fix_window(5, "1s")?.named("burst")?, Policy::fix_window(1, "1d")?.named("daily")?];
//! let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
//! limiter.hit("user:42", 1)?;
//!
//! let denied = limiter.hit("user:42", 1)?;
//! let names: Vec<_> = denied.violated.iter().map(|position| limiter.policies().name(position)).collect();
//! assert_eq!(names, ["daily"]);
//! assert_eq!(limiter.get_policy("user:42", Some("burst"))?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # The response to a client
//!
//! [`rate_limit_headers`](crate::rate_limit_headers) returns the headers of a decision, and
//! [`problem_body`](crate::problem_body) the body of a 429.
//!
//! ```
//! use tollgate::{Limiter, ManualClock, Policy, rate_limit_headers};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let policy = Policy::fix_window(100, "1m")?.named("api")?;
//! let mut limiter = Limiter::<String, _>::new(policy, ManualClock::new(0))?;
//! let decision = limiter.hit("user:42", 1)?;
//! let headers = rate_limit_headers(&decision, limiter.policies());
//! assert_eq!(headers[0], ("RateLimit-Policy", r#""api";q=100;w=60"#.to_owned()));
//! # Ok(())
//! # }
//! ```
//!
//! # States that outlive the process
//!
//! The states of a key are a [`Record`](crate::Record), which serde writes in any format. [`step`](crate::step()) takes
//! a record, an operation and a time, and returns the result and the record to store. A policy may change between two
//! steps: its state is converted, never to the client's advantage.
//!
//! ```
//! use tollgate::{Answer, Operation, Policies, Policy, step};
//!
//! # fn main() -> Result<(), tollgate::Error> {
//! let policies = Policies::from(Policy::fix_window(1, "1m")?);
//! let hit = Operation::Hit { cost: 1 };
//! let first = step(&policies, None, hit, 0)?;
//! let second = step(&policies, first.record.as_ref(), hit, 15_000)?;
//! assert!(matches!(second.answer, Answer::Decision(decision) if !decision.allowed));
//! # Ok(())
//! # }
//! ```
//!
//! [`StoreLimiter`](crate::StoreLimiter) does this over any [`Store`](crate::Store); [`Ledger`](crate::Ledger) is for a
//! store that keeps a key's states in memory between operations.
//!
//! # On Cloudflare Workers
//!
//! With the feature `cloudflare`, the module `cloudflare` has a Durable Object that holds the states of one key, and a
//! client for it. A Worker in Rust exports the object with one line, and its limits are exact everywhere:
//!
#![cfg_attr(feature = "cloudflare", doc = "```no_run")]
#![cfg_attr(not(feature = "cloudflare"), doc = "```ignore")]
//! use tollgate::Policy;
//! use tollgate::cloudflare::{Limits, client_address};
//! use worker::{Context, Env, Request, Response, Result, event};
//!
//! pub use tollgate::cloudflare::RateLimiterObject;
//!
//! #[event(fetch)]
//! async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
//!     let limits = Limits::new(&env, "LIMITERS", Policy::sliding_window(100, "1m")?)?;
//!     let decision = limits.hit(&client_address(&request)?, 1).await?;
//!     if !decision.allowed {
//!         return limits.denial(&decision);
//!     }
//!     limits.with_headers(Response::ok("Hello")?, &decision)
//! }
//! # fn main() {}
//! ```
