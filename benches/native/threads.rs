//! Hits per second of several threads on one limiter, beside governor over a `DashMap`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use tollgate::{Options, Policy, SharedLimiter, SystemClock};

use crate::clock::Moment;
use crate::keys;
use crate::peers::{Foldhash, SipHash};
use crate::report::table;

/// Hits of each thread in a round.
const HITS: usize = 1 << 18;

/// So high that every hit is allowed, in every limiter.
const LIMIT: u32 = 1_000_000_000;

/// A limiter that threads share.
trait Shared: Sync {
    fn hit(&self, key: &String) -> bool;
}

impl Shared for SharedLimiter<String, SystemClock> {
    #[inline]
    fn hit(&self, key: &String) -> bool {
        let answer = SharedLimiter::hit(self, key.as_str(), 1);
        black_box(&answer);
        matches!(&answer, Ok(decision) if decision.allowed)
    }
}

impl<H, C> Shared for RateLimiter<String, DashMapStateStore<String, H>, C, NoOpMiddleware<C::Instant>>
where
    H: std::hash::BuildHasher + Clone + Send + Sync,
    C: Clock + Sync,
    C::Instant: Send + Sync,
{
    #[inline]
    fn hit(&self, key: &String) -> bool {
        let answer = self.check_key(key);
        black_box(&answer);
        answer.is_ok()
    }
}

/// The operating system's clock, as Tollgate reads it, for governor.
#[derive(Clone, Debug, Default)]
struct ReadBySystem;

impl Clock for ReadBySystem {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64)
    }
}

/// Each thread's keys: all of them, in an order of its own.
fn traffic(keys: &[String], thread: usize) -> impl Iterator<Item = &String> {
    let start = keys.len() / 2 * thread;
    (0..).map(move |turn: usize| &keys[(start + turn * 40_503) % keys.len()])
}

/// A round: how long the threads take until the last one ends.
fn round(limiter: &dyn Rounds, keys: &[String], threads: usize) -> Duration {
    let barrier = Barrier::new(threads + 1);
    let start = thread::scope(|scope| {
        for thread in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                limiter.hits(keys, thread);
            });
        }
        barrier.wait();
        Instant::now()
    });
    start.elapsed()
}

/// A thread's round behind one dynamic call, so that each hit is a static one.
trait Rounds: Sync {
    fn hits(&self, keys: &[String], thread: usize);
}

impl<S: Shared> Rounds for S {
    fn hits(&self, keys: &[String], thread: usize) {
        for key in traffic(keys, thread).take(HITS) {
            black_box(self.hit(key));
        }
    }
}

pub(crate) fn report(quick: bool) -> Result<String, Box<dyn std::error::Error>> {
    let rounds = if quick { 5 } else { 40 };
    let quota = Quota::per_second(NonZeroU32::MIN.saturating_add(LIMIT - 1));
    let policy = Policy::token_bucket(LIMIT.into(), LIMIT.into(), "1s")?;
    let columns = [(1, 1), (1, 65_536), (2, 1), (2, 65_536)];
    let mut head = vec![String::new()];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (threads, count) in columns {
        let options = Options::new().max_keys(2_000_000)?;
        let tollgate = SharedLimiter::<String, _>::with_options(policy.clone(), SystemClock, options)?;
        let same = RateLimiter::dashmap_with_clock_and_hasher(quota, ReadBySystem, Foldhash::default());
        let defaults = RateLimiter::dashmap_with_clock_and_hasher(quota, DefaultClock::default(), SipHash::default());
        let peers: [(&str, &dyn Rounds); 3] = [
            ("governor, DashMap, foldhash, system clock", &same),
            ("governor, DashMap, its defaults (SipHash, quanta)", &defaults),
            ("**tollgate**, `SharedLimiter`", &tollgate),
        ];
        let keys = keys(count);
        let mut best = [f64::INFINITY; 3];
        for turn in 0..=rounds {
            for ((_, peer), best) in peers.iter().zip(&mut best) {
                let took = round(*peer, &keys, threads).as_nanos() as f64 / (HITS * threads) as f64;
                // The first round brings the keys in.
                *best = if turn == 0 { *best } else { best.min(took) };
            }
        }
        head.push(format!("{threads} thread{}, {count} key{}", plural(threads), plural(count as usize)));
        rows.resize(peers.len(), Vec::new());
        for ((row, (name, _)), nanoseconds) in rows.iter_mut().zip(peers).zip(best) {
            if row.is_empty() {
                row.push(name.into());
            }
            let ratio = format!(", {:.2}×, {:.2}×", best[0] / nanoseconds, best[1] / nanoseconds);
            let ratio = if name.starts_with("**") { ratio } else { String::new() };
            row.push(format!("{:.1} M/s{ratio}", 1_000.0 / nanoseconds));
        }
    }
    Ok(format!(
        "### Threads on one limiter\n\n\
         Hits per second of all threads together, {HITS} a thread and round, best of {rounds} alternating rounds; all are \
         allowed. × is relative to governor with the same hasher and clock, then as it comes.\n\n{}",
        table(&head, &rows)
    ))
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
