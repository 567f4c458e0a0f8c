//! The limiters that are measured, each behind the same two calls.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::num::NonZeroU32;

use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use governor::state::keyed::{DashMapStateStore, HashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};
use hashbrown::DefaultHashBuilder;
use tollgate::{Limiter, Options, Policy};

use crate::LIMIT;
use crate::clock::{Moment, Ticking};

/// How long a peer that is swept as a whole waits between two sweeps, in nanoseconds: as long as Tollgate.
const CLEAN_PERIOD: u64 = 60_000_000_000;

/// A limiter of keys.
#[allow(clippy::ptr_arg, reason = "governor asks for the very type of its keys")]
pub(crate) trait Peer {
    /// Whether the key may act now. The whole answer is taken to be used.
    fn hit(&mut self, key: &String) -> bool;

    /// A hit of a limiter that is also kept clean. Tollgate always is.
    fn hit_and_clean(&mut self, key: &String) -> bool {
        self.hit(key)
    }

    /// How many keys it holds.
    fn len(&self) -> usize;
}

impl Peer for Limiter<String, &Ticking> {
    #[inline]
    fn hit(&mut self, key: &String) -> bool {
        let answer = Limiter::hit(self, key.as_str(), 1);
        black_box(&answer);
        // By reference: to copy a decision that was just written would be the harness's time, not the limiter's.
        matches!(&answer, Ok(decision) if decision.allowed)
    }

    fn len(&self) -> usize {
        Limiter::len(self) as usize
    }
}

/// Tollgate with room for all keys of any measurement.
pub(crate) fn tollgate(policy: Policy, clock: &Ticking) -> Result<Limiter<String, &Ticking>, tollgate::Error> {
    Limiter::with_options(policy, clock, Options::new().max_keys(2_000_000)?)
}

/// governor's limiter, and when it is to be swept.
pub(crate) struct Governor<'a, S: governor::state::StateStore<Key = String>> {
    limiter: RateLimiter<String, S, &'a Ticking, NoOpMiddleware<Moment>>,
    clean: Due<'a>,
}

/// governor over a `HashMap`.
pub(crate) type OverHashMap<'a, H> = Governor<'a, HashMapStateStore<String, H>>;
/// governor over a `DashMap`.
pub(crate) type OverDashMap<'a, H> = Governor<'a, DashMapStateStore<String, H>>;

/// The hasher that Tollgate uses.
pub(crate) type Foldhash = DefaultHashBuilder;
/// The hasher that governor uses unless it is given another.
pub(crate) type SipHash = RandomState;

impl<'a, H: BuildHasher + Default> OverHashMap<'a, H> {
    pub(crate) fn hashmap(clock: &'a Ticking) -> Self {
        let limiter = RateLimiter::hashmap_with_clock_and_hasher(quota(), clock, H::default());
        Self { limiter, clean: Due::new(clock) }
    }
}

impl<'a, H: BuildHasher + Default + Clone> OverDashMap<'a, H> {
    pub(crate) fn dashmap(clock: &'a Ticking) -> Self {
        let limiter = RateLimiter::dashmap_with_clock_and_hasher(quota(), clock, H::default());
        Self { limiter, clean: Due::new(clock) }
    }
}

fn quota() -> Quota {
    Quota::per_second(NonZeroU32::MIN.saturating_add(LIMIT - 1))
}

impl<S: ShrinkableKeyedStateStore<String>> Peer for Governor<'_, S> {
    #[inline]
    fn hit(&mut self, key: &String) -> bool {
        let answer = self.limiter.check_key(key);
        black_box(&answer);
        answer.is_ok()
    }

    fn hit_and_clean(&mut self, key: &String) -> bool {
        if self.clean.is_due() {
            self.limiter.retain_recent();
        }
        self.hit(key)
    }

    fn len(&self) -> usize {
        self.limiter.len()
    }
}

/// governor that also says how much remains, which is nearer to what Tollgate answers.
pub(crate) struct Informed<'a>(
    RateLimiter<String, HashMapStateStore<String, Foldhash>, &'a Ticking, StateInformationMiddleware>,
);

impl<'a> Informed<'a> {
    pub(crate) fn new(clock: &'a Ticking) -> Self {
        Self(RateLimiter::hashmap_with_clock_and_hasher(quota(), clock, Foldhash::default()).with_middleware())
    }
}

impl Peer for Informed<'_> {
    #[inline]
    fn hit(&mut self, key: &String) -> bool {
        let answer = self.0.check_key(key).map(|state| state.remaining_burst_capacity());
        black_box(&answer);
        answer.is_ok()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// What one would write by hand: a `HashMap` of when each key's bucket is full again, swept with `retain`.
pub(crate) struct ByHand<'a> {
    full_at: HashMap<String, u64, Foldhash>,
    clock: &'a Ticking,
    clean: Due<'a>,
}

impl<'a> ByHand<'a> {
    pub(crate) fn new(clock: &'a Ticking) -> Self {
        Self { full_at: HashMap::default(), clock, clean: Due::new(clock) }
    }
}

impl Peer for ByHand<'_> {
    fn hit(&mut self, key: &String) -> bool {
        let now = self.clock.read();
        let (per_hit, period) = (1_000_000_000 / u64::from(LIMIT), 1_000_000_000);
        let full_at = match self.full_at.get_mut(key) {
            Some(full_at) => full_at,
            None => self.full_at.entry(key.clone()).or_insert(now),
        };
        let then = now.max(*full_at) + per_hit;
        let allowed = then <= now + period;
        if allowed {
            *full_at = then;
        }
        black_box(allowed)
    }

    fn hit_and_clean(&mut self, key: &String) -> bool {
        if self.clean.is_due() {
            let now = self.clock.read();
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        self.hit(key)
    }

    fn len(&self) -> usize {
        self.full_at.len()
    }
}

/// When the next sweep of a whole map is due.
struct Due<'a> {
    clock: &'a Ticking,
    at: u64,
}

impl<'a> Due<'a> {
    fn new(clock: &'a Ticking) -> Self {
        Self { clock, at: clock.read() + CLEAN_PERIOD }
    }

    fn is_due(&mut self) -> bool {
        let now = self.clock.read();
        let due = now >= self.at;
        if due {
            self.at = now + CLEAN_PERIOD;
        }
        due
    }
}
