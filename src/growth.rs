//! Growth that fails instead of aborting the process.

use alloc::alloc::handle_alloc_error;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::alloc::Layout;

/// Memory ran out. The operation changed no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl From<hashbrown::TryReserveError> for OutOfMemory {
    fn from(_: hashbrown::TryReserveError) -> Self {
        Self
    }
}

/// Returns a list of `len` default values.
pub(crate) fn defaults<T: Default>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(len)?;
    list.resize_with(len, T::default);
    Ok(list)
}

/// Appends a value.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Result<(), OutOfMemory> {
    list.try_reserve(1)?;
    list.push(value);
    Ok(())
}

/// Returns a copy of a list.
pub(crate) fn copied<T: Copy>(list: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(list.len())?;
    copy.extend_from_slice(list);
    Ok(copy)
}

/// Collects the items of an iterator.
pub(crate) fn collect<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(items.size_hint().0)?;
    for item in items {
        push(&mut list, item)?;
    }
    Ok(list)
}

/// Returns the value, or aborts the process if memory ran out: for callers that cannot go on without it.
pub(crate) fn or_abort<T>(result: Result<T, OutOfMemory>) -> T {
    result.unwrap_or_else(|OutOfMemory| handle_alloc_error(Layout::new::<T>()))
}
