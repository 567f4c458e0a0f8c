//! How long the longest hit takes: while a million keys come, and while a million expired ones are swept.

use std::time::{Duration, Instant};

use crate::clock::{Cost, Ticking};
use crate::peers::{ByHand, Foldhash, OverDashMap, OverHashMap, Peer, tollgate};
use crate::report::table;
use crate::{keys, policies};

const KEYS: u64 = 1_000_000;
/// Keys that are in use during the sweep.
const LIVE: usize = 1_000;
/// Hits while it lasts: Tollgate looks at four slots in each, and needs a quarter of a million for it.
const HITS: usize = 260_000;

/// How long the hits of one round took.
#[derive(Clone, Copy)]
struct Times {
    middle: Duration,
    nearly_all: Duration,
    longest: Duration,
}

pub(crate) fn report(quick: bool) -> Result<String, tollgate::Error> {
    let rounds = if quick { 2 } else { 5 };
    let keys = keys(KEYS + LIVE as u64);
    let (live, expired) = keys.split_at(LIVE);
    let (mut coming, mut sweeping) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        // A step long enough for the live keys to be within their limit.
        let clock = &Ticking::new(20_000, Cost::Free);
        let policies = policies()?;
        let mut of_round = vec![
            ("governor, HashMap".to_owned(), round(OverHashMap::<Foldhash>::hashmap(clock), clock, expired, live)),
            ("governor, DashMap".into(), round(OverDashMap::<Foldhash>::dashmap(clock), clock, expired, live)),
            ("a `HashMap` by hand".into(), round(ByHand::new(clock), clock, expired, live)),
        ];
        for policy in policies {
            let name = format!("**tollgate**, {}", policy.algorithm());
            of_round.push((name, round(tollgate(policy, clock)?, clock, expired, live)));
        }
        for (position, (name, (came, swept))) in of_round.into_iter().enumerate() {
            best(&mut coming, position, &name, came);
            best(&mut sweeping, position, &name, swept);
        }
    }
    let timer = timer();
    Ok(format!(
        "### The longest hit\n\n\
         Best of {rounds} rounds of each number, since a shared machine interrupts; reading the timer is in each ({} ns).\n\n\
         While a million new keys come, a hit each:\n\n{}\n\n\
         While a million expired keys are swept, and {LIVE} others are hit: Tollgate sweeps as it is used; governor is \
         told to `retain_recent()`, and the map by hand to `retain`, when a minute has passed.\n\n{}",
        timer.as_nanos(),
        rendered(&coming),
        rendered(&sweeping)
    ))
}

fn round(mut peer: impl Peer, clock: &Ticking, expired: &[String], live: &[String]) -> (Times, Times) {
    let came = times(expired, expired.len(), |key| peer.hit(key));
    clock.skip(70);
    let swept = times(live, HITS, |key| peer.hit_and_clean(key));
    assert_eq!(peer.len(), live.len(), "all expired keys are gone");
    (came, swept)
}

fn times(keys: &[String], hits: usize, mut hit: impl FnMut(&String) -> bool) -> Times {
    // Not zero, so that the pages are there and no hit pays for the memory of these notes.
    let mut all = vec![Duration::MAX; hits];
    for (took, key) in all.iter_mut().zip(keys.iter().cycle()) {
        let start = Instant::now();
        hit(key);
        *took = start.elapsed();
    }
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    Times { middle: at(0.5), nearly_all: at(0.9999), longest: at(1.0) }
}

fn best(kept: &mut Vec<(String, Times)>, position: usize, name: &str, times: Times) {
    match kept.get_mut(position) {
        Some((_, best)) => {
            best.middle = best.middle.min(times.middle);
            best.nearly_all = best.nearly_all.min(times.nearly_all);
            best.longest = best.longest.min(times.longest);
        }
        None => kept.push((name.into(), times)),
    }
}

fn rendered(all: &[(String, Times)]) -> String {
    let microseconds = |time: Duration| format!("{:.2} µs", time.as_nanos() as f64 / 1_000.0);
    let row = |(name, times): &(String, Times)| {
        vec![name.clone(), microseconds(times.middle), microseconds(times.nearly_all), microseconds(times.longest)]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table(&["", "p50", "p99.99", "longest"].map(String::from), &rows)
}

/// What it costs to measure nothing.
fn timer() -> Duration {
    (0..10_000).map(|_| Instant::now().elapsed()).min().unwrap_or_default()
}
