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

    /// Returns the time in which [`recent`](Self::recent) was spent: less than `period` if the first cost came since.
    pub(crate) fn time(&self, now: u64, period: u64) -> u64 {
        if self.before > 0 { period } else { now.saturating_sub(self.since).min(period) }
    }

    fn roll(&mut self, now: u64, period: u64) {
        match now.checked_sub(self.since).filter(|_| self.spent > 0 || self.before > 0) {
            Some(age) if age < period => {}
            Some(age) if age < 2 * period => {
                *self = Self { since: self.since + period, spent: 0, before: self.spent };
            }
            // There was no cost, the last one is too long ago, or the clock has stepped back.
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
    fn the_first_costs_were_spent_since_the_first_one() {
        let mut traffic = Traffic::default();
        for (now, time) in [(5_000, 0), (5_400, 400), (6_000, 1_000), (6_500, 1_000)] {
            traffic.add(1, now, 1_000);
            assert_eq!(traffic.time(now, 1_000), time);
        }
        traffic.add(1, 9_000, 1_000);
        assert_eq!(traffic.time(9_000, 1_000), 0);
    }

    #[test]
    fn a_clock_that_steps_back_starts_anew() {
        let mut traffic = Traffic::default();
        traffic.add(10, 5_000, 1_000);
        assert_eq!(traffic.recent(4_999, 1_000), 0);
    }
}
