//! Things that JavaScript holds by number.

use alloc::vec::Vec;

/// A place for each thing; what is taken out leaves its place to another.
pub(super) struct Shelf<T>(Vec<Option<T>>);

impl<T> Shelf<T> {
    pub(super) const EMPTY: Self = Self(Vec::new());

    pub(super) fn put(&mut self, thing: T) -> i32 {
        let place = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        match self.0.get_mut(place) {
            Some(free) => *free = Some(thing),
            None => self.0.push(Some(thing)),
        }
        place as i32
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.0.get(place)?.as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.0.get_mut(place)?.as_mut()
    }

    pub(super) fn remove(&mut self, place: usize) {
        if let Some(thing) = self.0.get_mut(place) {
            *thing = None;
        }
    }
}
