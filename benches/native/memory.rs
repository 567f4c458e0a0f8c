//! How many bytes a key takes, counted by the allocator.
#![allow(
    unsafe_code,
    reason = "an allocator cannot be written without it; it only counts, and the system's does the rest"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::clock::{Cost, Ticking};
use crate::peers::{ByHand, Foldhash, OverDashMap, OverHashMap, Peer, tollgate};
use crate::report::table;
use crate::{TRAFFIC, keys, policies};

const KEYS: u64 = 200_000;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.load(Relaxed) + layout.size();
        IN_USE.store(in_use, Relaxed);
        if in_use > MOST.load(Relaxed) {
            MOST.store(in_use, Relaxed);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.store(IN_USE.load(Relaxed) - layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

pub(crate) fn report() -> Result<String, tollgate::Error> {
    let keys = keys(KEYS);
    let clock = Ticking::new(1_000_000_000 / (TRAFFIC * KEYS), Cost::Free);
    let mut rows = vec![
        row("governor, HashMap", &keys, || Ok(OverHashMap::<Foldhash>::hashmap(&clock)))?,
        row("governor, DashMap", &keys, || Ok(OverDashMap::<Foldhash>::dashmap(&clock)))?,
        row("a `HashMap` by hand", &keys, || Ok(ByHand::new(&clock)))?,
    ];
    for policy in policies()? {
        rows.push(row(&format!("**tollgate**, {}", policy.algorithm()), &keys, || tollgate(policy.clone(), &clock))?);
    }
    Ok(format!(
        "### Bytes per key\n\n\
         {KEYS} keys, one hit each: what was asked of the allocator beyond the bytes of the keys themselves (a `String`'s \
         own 24 are counted), when all are in and at the worst moment on the way there. Each further hit within a second \
         costs a sliding window 16 bytes, up to its limit.\n\n{}",
        table(&["", "all in", "worst moment"].map(String::from), &rows)
    ))
}

fn row<P: Peer>(
    name: &str,
    keys: &[String],
    make: impl FnOnce() -> Result<P, tollgate::Error>,
) -> Result<Vec<String>, tollgate::Error> {
    let before = IN_USE.load(Relaxed);
    MOST.store(before, Relaxed);
    let mut peer = make()?;
    for key in keys {
        peer.hit(key);
    }
    let strings: usize = keys.iter().map(String::len).sum();
    let per_key = |bytes: usize| format!("{:.0}", (bytes - before - strings) as f64 / peer.len() as f64);
    Ok(vec![name.into(), per_key(IN_USE.load(Relaxed)), per_key(MOST.load(Relaxed))])
}
