//! The state of a key under each algorithm, as its definition says: windows, lists of hits, levels in whole fractions.

use crate::spec::{Algorithm::*, Spec};

/// What is kept of one key under one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum State {
    #[default]
    Unused,
    Window {
        start: i64,
        count: i64,
    },
    /// Times and costs, the oldest first.
    Log(Vec<(i64, i64)>),
    Counter {
        start: i64,
        previous: i64,
        current: i64,
    },
    /// What is used, in parts, as of a time, and the rate of the last charge.
    Bucket {
        at: i64,
        level: i64,
        rate: i64,
    },
}

impl State {
    /// The latest time that the state has; `None` if it is as if unused.
    pub(crate) fn latest(&self) -> Option<i64> {
        match self {
            Self::Unused | Self::Counter { previous: 0, current: 0, .. } | Self::Bucket { level: 0, .. } => None,
            Self::Window { start, .. } | Self::Counter { start, .. } => Some(*start),
            Self::Log(hits) => hits.last().map(|hit| hit.0),
            Self::Bucket { at, .. } => Some(*at),
        }
    }

    /// Whether the state is more than a period ahead of the clock.
    fn is_far_ahead(&self, spec: &Spec, now: i64) -> bool {
        self.latest().is_some_and(|latest| latest > now + spec.period())
    }

    /// The state as of `now`: windows roll over, buckets flow, old hits drop out, and what is far ahead comes along.
    fn at(&self, spec: &Spec, now: i64) -> Self {
        let (scale, follows) = (spec.scale, self.is_far_ahead(spec, now));
        let this_window = now - now.rem_euclid(scale);
        match self {
            Self::Unused => Self::Unused,
            &Self::Window { start, count } => match spec.algorithm {
                FixWindow if follows => Self::Window { start: this_window, count },
                _ if follows => Self::Window { start: now, count },
                _ if now >= start + scale => Self::Unused,
                _ => Self::Window { start, count },
            },
            Self::Log(hits) => {
                let newest = hits.last().map_or(now, |hit| hit.0);
                let back = if follows { newest - now } else { 0 };
                let at = now.max(newest - back);
                let moved = hits.iter().map(|&(time, cost)| (time - back, cost));
                Self::Log(moved.filter(|&(time, _)| time + scale > at).collect())
            }
            &Self::Counter { start, previous, current } => {
                if follows || (previous, current) == (0, 0) {
                    return Self::Counter { start: this_window, previous, current };
                }
                match this_window - start {
                    ..=0 => Self::Counter { start, previous, current },
                    windows if windows == scale => Self::Counter { start: this_window, previous: current, current: 0 },
                    _ => Self::Unused,
                }
            }
            // A bucket ends by its own rate.
            &Self::Bucket { at, level, rate } if !follows && level <= (now - at) * rate => Self::Unused,
            &Self::Bucket { at, level, rate } => {
                // It flows at the rate of its last charge or the call's, whichever is faster.
                let flowed = if follows { 0 } else { (now - at).max(0) * rate.max(spec.rate) };
                let level = (level - flowed).max(0);
                Self::Bucket { at: if follows { now } else { at.max(now) }, level, rate }
            }
        }
    }

    /// How much is used at `now`, in parts.
    pub(crate) fn used(&self, spec: &Spec, now: i64) -> i64 {
        match self.at(spec, now) {
            Self::Unused => 0,
            Self::Window { count, .. } => spec.parts(count),
            Self::Log(hits) => spec.parts(hits.iter().map(|hit| hit.1).sum()),
            Self::Counter { start, previous, current } => {
                let left = spec.scale - (now - start).max(0);
                previous * left + spec.parts(current)
            }
            Self::Bucket { level, .. } => level,
        }
    }

    /// Whether the key is at `now` as if it had never been used.
    pub(crate) fn is_unused(&self, spec: &Spec, now: i64) -> bool {
        match self.at(spec, now) {
            // A window of a key is one, also with nothing in it.
            Self::Window { .. } if spec.algorithm == FixWindowPerKey => false,
            state => state.used(spec, now) == 0,
        }
    }

    /// Lets a state that is far ahead follow the clock.
    pub(crate) fn follow(&mut self, spec: &Spec, now: i64) {
        if self.is_far_ahead(spec, now) {
            *self = self.at(spec, now);
        }
    }

    /// Adds a cost. The rate becomes the one it is charged by.
    pub(crate) fn charge(&mut self, spec: &Spec, cost: i64, now: i64) {
        *self = self.at(spec, now);
        let start = now - now.rem_euclid(spec.scale);
        if let Self::Unused = self {
            *self = match spec.algorithm {
                FixWindow => Self::Window { start, count: 0 },
                FixWindowPerKey => Self::Window { start: now, count: 0 },
                SlidingWindow => Self::Log(Vec::new()),
                SlidingCounter => Self::Counter { start, previous: 0, current: 0 },
                TokenBucket | LeakyBucket => Self::Bucket { at: now, level: 0, rate: spec.rate },
                Concurrency => Self::Unused,
            };
        }
        match self {
            Self::Unused => {}
            Self::Window { count, .. } => *count += cost,
            Self::Log(hits) => {
                let newest = hits.last().map_or(now, |hit| hit.0.max(now));
                hits.push((newest, cost));
            }
            Self::Counter { current, .. } => *current += cost,
            Self::Bucket { at, level, rate } => {
                if *level == 0 {
                    *at = now;
                }
                *rate = spec.rate;
                *level += spec.parts(cost);
            }
        }
    }

    /// Adds a denied hit that counts. A log is bounded: it grows to one more than the limit, and then the hit takes the
    /// place of the oldest.
    pub(crate) fn count_denied(&mut self, spec: &Spec, cost: i64, now: i64) {
        let before = match self.at(spec, now) {
            Self::Log(hits) => hits.iter().map(|hit| hit.1).sum(),
            _ => 0,
        };
        self.charge(spec, cost, now);
        if let Self::Log(hits) = self {
            take_oldest(hits, before + cost - before.max(spec.limit + 1));
        }
    }

    pub(crate) fn refund(&mut self, spec: &Spec, cost: i64, now: i64) {
        *self = self.at(spec, now);
        match self {
            Self::Unused => {}
            Self::Window { count, .. } => *count = (*count - cost).max(0),
            Self::Log(hits) => take_oldest(hits, cost),
            Self::Counter { previous, current, .. } => {
                let of_previous = (cost - *current).max(0);
                *current = (*current - cost).max(0);
                *previous = (*previous - of_previous).max(0);
            }
            Self::Bucket { level, .. } => *level = (*level - spec.parts(cost)).max(0),
        }
    }

    /// Makes it as if `count` had just been used, or were left of a token bucket.
    pub(crate) fn set(&mut self, spec: &Spec, count: i64, now: i64) {
        // The time is that of a charge now.
        self.charge(spec, 1, now);
        match self {
            Self::Unused => {}
            Self::Window { start, count: own } => {
                *own = count;
                if spec.algorithm == FixWindowPerKey {
                    *start = now;
                }
            }
            Self::Log(hits) => {
                let newest = hits.last().map_or(now, |hit| hit.0);
                *hits = if count > 0 { vec![(newest, count)] } else { Vec::new() };
            }
            Self::Counter { previous, current, .. } => (*previous, *current) = (0, count),
            Self::Bucket { level, .. } => {
                *level = spec.parts(if spec.algorithm == TokenBucket { spec.limit - count } else { count });
            }
        }
    }
}

/// Takes so much from the oldest hits.
fn take_oldest(hits: &mut Vec<(i64, i64)>, mut amount: i64) {
    for (_, cost) in hits.iter_mut() {
        let taken = amount.clamp(0, *cost);
        *cost -= taken;
        amount -= taken;
    }
    hits.retain(|hit| hit.1 > 0);
}
