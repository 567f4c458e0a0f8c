//! Random numbers that are the same in every run.

/// A SplitMix64 generator.
#[derive(Clone)]
pub(in crate::cloudflare::object) struct Random(pub(in crate::cloudflare::object) u64);

impl Random {
    pub(in crate::cloudflare::object) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`; 0 if that is 0.
    pub(in crate::cloudflare::object) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns true once in `times` times, or never if that is 0.
    pub(in crate::cloudflare::object) fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// Returns one of the choices.
    pub(in crate::cloudflare::object) fn one_of(&mut self, choices: &[u64]) -> u64 {
        choices[self.below(choices.len() as u64) as usize]
    }
}
