//! How long a hit takes, beside governor.

use std::time::{Duration, Instant};

use crate::clock::{Cost, Ticking};
use crate::peers::{Foldhash, Informed, OverDashMap, OverHashMap, Peer, SipHash, tollgate};
use crate::report::table;
use crate::{LIMIT, TRAFFIC, keys, policies};
use tollgate::Policy;

/// Hits of a round: few, since on a shared machine a short round has the better chance to be left alone.
const HITS: u64 = 1 << 17;

/// The best of the rounds of one limiter.
struct Measured {
    name: String,
    kind: Kind,
    nanoseconds: f64,
    allowed: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Governor,
    /// governor with the hasher that Tollgate uses.
    GovernorWithFoldhash,
    /// The same, asked how much remains.
    GovernorInformed,
    Tollgate,
}

pub(crate) fn report(quick: bool) -> Result<String, Box<dyn std::error::Error>> {
    let rounds = if quick { 20 } else { 80 };
    let columns = [(1, Cost::System), (65_536, Cost::System), (1, Cost::Free), (65_536, Cost::Free)];
    let mut head = vec![String::new()];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (count, cost) in columns {
        let measured = measure(count, cost, rounds)?;
        rows.resize(measured.len(), Vec::new());
        for (row, limiter) in rows.iter_mut().zip(&measured) {
            if row.is_empty() {
                row.push(limiter.name.clone());
            }
            row.push(cell(limiter, &measured));
        }
        let clock = if cost == Cost::System { "system clock" } else { "free clock" };
        head.push(format!("{count} key{}, {clock}", if count == 1 { "" } else { "s" }));
    }
    Ok(format!(
        "### Time per hit\n\n\
         One thread, {HITS} hits a round, best of {rounds} alternating rounds. Every key may make 100 hits a second and \
         makes {TRAFFIC}, evenly, so all are allowed unless it says otherwise. All read the same clock: once it costs as \
         much as the system's, once next to nothing. The whole answer is taken to be used: governor's is yes, or no and \
         until when; Tollgate's has all its numbers. × is throughput relative to the faster governor of the column, \
         first as it comes (SipHash), then with Tollgate's hasher (foldhash).\n\n{}",
        table(&head, &rows)
    ))
}

/// A limiter's time, and its throughput relative to governor's.
fn cell(limiter: &Measured, all: &[Measured]) -> String {
    let ratio = |kind: Kind| {
        let of_kind = all.iter().filter(|measured| measured.kind == kind).map(|measured| measured.nanoseconds);
        of_kind.fold(f64::INFINITY, f64::min) / limiter.nanoseconds
    };
    let mut cell = format!("{:.1} ns", limiter.nanoseconds);
    if limiter.kind == Kind::Tollgate {
        cell += &format!(", {:.2}×, {:.2}×", ratio(Kind::Governor), ratio(Kind::GovernorWithFoldhash));
    }
    if limiter.allowed < 0.9995 {
        cell += &format!(", {:.1} % allowed", 100.0 * limiter.allowed);
    }
    cell
}

fn measure(count: u64, cost: Cost, rounds: u32) -> Result<Vec<Measured>, tollgate::Error> {
    let step = 1_000_000_000 / (TRAFFIC * count);
    let mut clocks: Vec<Ticking> = Vec::new();
    clocks.resize_with(6 + policies()?.len(), || Ticking::new(step, cost));
    let (of_governor, of_tollgate) = clocks.split_at(5);

    let mut peers: Vec<(String, Kind, Box<dyn Rounds + '_>)> = Vec::new();
    let mut add = |name: &str, kind, peer| peers.push((name.into(), kind, peer));
    let [a, b, c, d, e] = of_governor else { return Ok(Vec::new()) };
    add("governor, HashMap, SipHash", Kind::Governor, Box::new(OverHashMap::<SipHash>::hashmap(a)));
    add("governor, DashMap, SipHash", Kind::Governor, Box::new(OverDashMap::<SipHash>::dashmap(b)));
    add("governor, HashMap, foldhash", Kind::GovernorWithFoldhash, Box::new(OverHashMap::<Foldhash>::hashmap(c)));
    add("governor, DashMap, foldhash", Kind::GovernorWithFoldhash, Box::new(OverDashMap::<Foldhash>::dashmap(d)));
    add("governor, HashMap, foldhash, says what remains", Kind::GovernorInformed, Box::new(Informed::new(e)));
    for (policy, clock) in policies()?.into_iter().zip(of_tollgate) {
        let name = format!("**tollgate**, {}", policy.algorithm());
        add(&name, Kind::Tollgate, Box::new(tollgate(policy, clock)?));
    }
    if let Some(clock) = of_tollgate.last() {
        // A key makes its limit in a window, less a little, so that hits are allowed and the log is full.
        let policy = Policy::sliding_window(LIMIT.into(), 1_000 * u64::from(LIMIT) / TRAFFIC - 10)?;
        add("**tollgate**, sliding_window, full logs", Kind::Tollgate, Box::new(tollgate(policy, clock)?));
    }

    // Keys come in another order than they were first seen in, so that memory is not read in order.
    let first_seen = keys(count);
    let traffic: Vec<String> = (0..count).map(|turn| first_seen[(turn * 40_503 % count) as usize].clone()).collect();
    let mut measured = Vec::new();
    for (name, kind, peer) in &mut peers {
        peer.round(&first_seen, count);
        // As much traffic as the limit fills the sliding window's logs.
        peer.round(&traffic, u64::from(LIMIT) * count);
        measured.push(Measured { name: name.clone(), kind: *kind, nanoseconds: f64::INFINITY, allowed: 0.0 });
    }
    for _ in 0..rounds {
        for ((_, _, peer), best) in peers.iter_mut().zip(&mut measured) {
            let (took, allowed) = peer.round(&traffic, HITS);
            best.nanoseconds = best.nanoseconds.min(took.as_nanos() as f64 / HITS as f64);
            best.allowed = allowed as f64 / HITS as f64;
        }
    }
    Ok(measured)
}

/// A whole round behind one dynamic call, so that each hit is a static one.
trait Rounds {
    fn round(&mut self, keys: &[String], hits: u64) -> (Duration, u64);
}

impl<P: Peer> Rounds for P {
    fn round(&mut self, keys: &[String], hits: u64) -> (Duration, u64) {
        let start = Instant::now();
        let mut allowed = 0;
        for key in keys.iter().cycle().take(hits as usize) {
            allowed += u64::from(self.hit(key));
        }
        (start.elapsed(), allowed)
    }
}
