//! One clock for all limiters, so that reading it costs them the same.

use std::cell::Cell;
use std::hint::black_box;
use std::ops::Add;
use std::time::SystemTime;

use governor::clock::Reference;
use governor::nanos::Nanos;

/// What a reading costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// As much as reading the operating system's clock.
    System,
    /// Next to nothing.
    Free,
}

/// A clock that moves by the same step with each reading: the traffic is the same however fast a limiter is.
#[derive(Debug)]
pub(crate) struct Ticking {
    nanoseconds: Cell<u64>,
    step: u64,
    cost: Cost,
}

impl Ticking {
    pub(crate) fn new(step: u64, cost: Cost) -> Self {
        Self { nanoseconds: Cell::new(1_767_225_600_000_000_000), step, cost }
    }

    /// Moves the clock forwards.
    pub(crate) fn skip(&self, seconds: u64) {
        self.nanoseconds.set(self.nanoseconds.get() + seconds * 1_000_000_000);
    }

    pub(crate) fn read(&self) -> u64 {
        if self.cost == Cost::System {
            black_box(SystemTime::now());
        }
        let now = self.nanoseconds.get() + self.step;
        self.nanoseconds.set(now);
        now
    }
}

impl tollgate::Clock for &Ticking {
    fn now(&self) -> u64 {
        self.read() / 1_000_000
    }
}

impl governor::clock::Clock for &Ticking {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(self.read())
    }
}

/// A reading, in nanoseconds, as governor wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, other: Nanos) -> Self {
        Self(self.0 + other.as_u64())
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Self {
        Self(self.0.saturating_sub(duration.as_u64()))
    }
}
