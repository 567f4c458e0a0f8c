//! A list of numbers that crosses the border: as JavaScript's floats there, as whole numbers here, in the same memory.

use alloc::vec;
use alloc::vec::Vec;

use super::area::Area;

pub(super) struct Numbers(Vec<i64>);

impl Numbers {
    pub(super) const NONE: Self = Self(Vec::new());

    /// Makes room for so many, and says where.
    pub(super) fn make_room(&mut self, count: usize) -> u32 {
        self.0 = vec![0; count];
        self.0.as_ptr().addr() as u32
    }

    /// What JavaScript wrote, which is whole numbers.
    pub(super) fn given(&mut self) -> &[i64] {
        for number in &mut self.0 {
            *number = f64::from_bits(*number as u64) as i64;
        }
        &self.0
    }

    /// A list to put an answer into.
    pub(super) fn emptied(&mut self) -> &mut Vec<i64> {
        self.0.clear();
        &mut self.0
    }

    /// Lets JavaScript read the list, and says where.
    pub(super) fn answer(&mut self, area: &mut Area) {
        for number in &mut self.0 {
            *number = (*number as f64).to_bits() as i64;
        }
        area.point_to(self.0.as_ptr().addr(), self.0.len());
    }
}
