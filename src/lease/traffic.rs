//! The amount that was recently spent on a key.

/// The amounts spent in the current period and in the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    since: u64,
    spent: u64,
    before: u64,
}

impl Traffic {
    /// Adds a cost.
    pub(crate) fn add(&mut self, cost: u64, now: u64, period: u64) {
        self.roll(now, period);
        self.spent = self.spent.saturating_add(cost);
    }

    /// Returns the amount spent in the last `period`, assuming that spending was even in the period before.
    pub(crate) fn recent(&mut self, now: u64, period: u64) -> u64 {
        self.roll(now, period);
        let faded = u128::from(self.before) * u128::from(period - (now - self.since)) / u128::from(period);
        self.spent.saturating_add(faded as u64)
    }

    fn roll(&mut self, now: u64, period: u64) {
        match now.checked_sub(self.since) {
            Some(age) if age < period => {}
            Some(age) if age < 2 * period => {
                *self = Self { since: self.since + period, spent: 0, before: self.spent };
            }
            // The last cost is too long ago, or the clock has stepped back.
            _ => *self = Self { since: now, spent: 0, before: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_before_fades() {
        let mut traffic = Traffic::default();
        traffic.add(10, 5_000, 1_000);
        assert_eq!(traffic.recent(5_999, 1_000), 10);
        assert_eq!(traffic.recent(6_500, 1_000), 5);
        traffic.add(1, 6_500, 1_000);
        assert_eq!(traffic.recent(6_999, 1_000), 1);
        assert_eq!(traffic.recent(9_000, 1_000), 0);
    }

    #[test]
    fn a_clock_that_steps_back_starts_anew() {
        let mut traffic = Traffic::default();
        traffic.add(10, 5_000, 1_000);
        assert_eq!(traffic.recent(4_999, 1_000), 0);
    }
}
