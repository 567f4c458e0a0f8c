//! The traffic and the faults of a simulation.

use super::random::Random;

/// The traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) isolates: u64,
    pub(super) hits: u64,
    /// Hits per second.
    pub(super) rate: u64,
    /// Whether hits come in bursts with pauses between them.
    pub(super) bursts: bool,
    pub(super) max_cost: u64,
}

impl Load {
    /// Returns the time between two hits, which is random.
    pub(super) fn gap(&self, random: &mut Random) -> u64 {
        let max_gap = 2_000 / self.rate.max(1);
        // Above two hits per millisecond, several come at once.
        if max_gap == 0 { u64::from(random.below(self.rate) < 1_000) } else { random.below(max_gap + 1) }
    }
}

/// The faults: each happens once in so many times, or never if 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// A message or a reply is lost.
    pub(super) lost: u64,
    /// A message or a reply is late.
    pub(super) late: u64,
    pub(super) crashed_object: u64,
    pub(super) crashed_isolate: u64,
    /// Whether the clocks of isolates differ, step and drift.
    pub(super) skewed: bool,
    /// A request is cancelled, and its isolate never gets the reply.
    pub(super) cancelled: u64,
    /// The platform sends a message again, some time after the object has applied it.
    pub(super) repeated: u64,
    /// The storage fails.
    pub(super) failing_storage: u64,
    /// The object's clock steps back a little.
    pub(super) stepped: u64,
    /// The alarm fires.
    pub(super) alarm: u64,
    /// Another caller makes a reservation.
    pub(super) reserved: u64,
    /// The operator calls `set`, `reset` or `inc` with a refund.
    pub(super) changed: u64,
    /// The operator sets or lifts an exception.
    pub(super) excepted: u64,
    /// How much slower or faster the clocks of isolates run at most, in millionths; 2,000 if 0.
    pub(super) drift: u64,
}

/// Returns random traffic, and faults of every kind with random frequencies.
pub(super) fn any_scenario(random: &mut Random) -> (Load, Faults) {
    let load = Load {
        isolates: random.one_of(&[1, 2, 5, 20]),
        hits: 12_000,
        rate: random.one_of(&[300, 2_000, 8_000]),
        bursts: random.one_of(&[0, 1]) > 0,
        max_cost: random.one_of(&[1, 1, 5, 60]),
    };
    let faults = Faults {
        lost: random.one_of(&[0, 50]),
        late: random.one_of(&[0, 50]),
        crashed_object: random.one_of(&[0, 50, 200, 2_000]),
        crashed_isolate: random.one_of(&[0, 2_000]),
        skewed: random.one_of(&[0, 1]) > 0,
        cancelled: random.one_of(&[0, 50]),
        repeated: random.one_of(&[0, 10, 100]),
        failing_storage: random.one_of(&[0, 0, 30, 300]),
        stepped: 0,
        alarm: random.one_of(&[0, 100, 3_000]),
        reserved: random.one_of(&[0, 100, 1_000]),
        changed: random.one_of(&[0, 100, 2_000]),
        excepted: 0,
        // Less than the margin by which a holder stops before the end of a lease.
        drift: 100_000,
    };
    (load, faults)
}
