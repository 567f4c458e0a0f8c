//! An isolate: a holder of leases with a clock of its own.

use super::random::Random;
use super::scenario::Faults;
use super::{KEYS, START};
use crate::lease::holder::{Holder, Reply, Step};
use crate::{Decision, Lease};

pub(super) struct Isolate {
    pub(super) holder: Holder,
    /// The number of crashes. Messages and timers of an earlier generation are ignored.
    pub(super) generation: u64,
    /// The difference of its clock to the true time.
    pub(super) skew: i64,
    /// How much slower or faster its clock runs, in millionths.
    drift: i64,
    pub(super) waiting: Vec<WaitingHit>,
    /// The numbers of the messages without a reply.
    pub(super) pending: Vec<u64>,
}

/// A hit that waits for a pending renewal.
#[derive(Clone, Copy)]
pub(super) struct WaitingHit {
    pub(super) number: u64,
    pub(super) plan: usize,
    pub(super) cost: u64,
}

impl Isolate {
    pub(super) fn new(random: &mut Random, faults: &Faults) -> Self {
        let max_drift = if faults.drift > 0 { faults.drift } else { 2_000 };
        Self {
            holder: new_holder(),
            generation: 0,
            skew: if faults.skewed { random.below(600_000) as i64 - 300_000 } else { 0 },
            drift: if faults.skewed { random.below(2 * max_drift) as i64 - max_drift as i64 } else { 0 },
            waiting: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the time that its clock shows at `now`.
    pub(super) fn clock(&self, now: u64) -> u64 {
        let elapsed = (now - START) as i64;
        (now as i64 + self.skew + elapsed * self.drift / 1_000_000) as u64
    }

    pub(super) fn crash(&mut self) {
        self.generation += 1;
        self.holder = new_holder();
        self.waiting.clear();
        self.pending.clear();
    }

    /// Removes a message from the pending ones. Returns false if it is not pending: its time was up, or the isolate has
    /// crashed since.
    pub(super) fn take_pending(&mut self, number: u64, generation: u64) -> bool {
        let position = self.pending.iter().position(|&pending| pending == number);
        let Some(position) = position.filter(|_| self.generation == generation) else { return false };
        self.pending.swap_remove(position);
        true
    }
}

pub(super) fn new_holder() -> Holder {
    Holder::new(100, crate::DEFAULT_LEASE_TTL, true)
}

#[test]
fn a_lease_is_as_old_as_the_question() {
    let mut holder = new_holder();
    for _ in 0..3 {
        holder.hit(KEYS[0], 1, START);
    }
    let Step::Renew(_) = holder.hit(KEYS[0], 5, START) else { panic!("there is no renewal") };
    let id = "0000000000000000000000000000002a.lw.a".parse().unwrap();
    let lease = Some(Lease { id, amount: 50, life: 875, counts_down: false });
    let decision = Decision { allowed: true, limit: 100, remaining: 50, ..Decision::NOTHING };
    holder.replied(KEYS[0], Reply { cost: 5, decision, certain: 0, lease }, true, START, START + 600);
    assert!(holder.spend(KEYS[0], 1, START + 874).is_some());
    assert!(holder.spend(KEYS[0], 1, START + 875).is_none());
}
