//! What the exports share: where questions and answers lie.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;

use super::area::Area;
use super::numbers::Numbers;

pub(super) struct Desk {
    pub(super) area: Area,
    pub(super) numbers: Numbers,
}

struct OneThread(UnsafeCell<Desk>);

// SAFETY: wasm has one thread here, and natively nothing calls the exports.
unsafe impl Sync for OneThread {}

static DESK: OneThread = OneThread(UnsafeCell::new(Desk { area: Area::EMPTY, numbers: Numbers::NONE }));

/// Does something at the desk.
#[inline(always)]
pub(super) fn desk<R>(with: impl FnOnce(&mut Desk) -> R) -> R {
    // SAFETY: nobody else is at the desk. What is done there calls neither JavaScript nor an export, so it ends before
    // anything else begins.
    with(unsafe { &mut *DESK.0.get() })
}
