//! What the exports share: the things that JavaScript holds by number, and where questions and answers lie.

#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use super::area::Area;
use super::numbers::Numbers;
use super::shelf::Shelf;
use crate::Denied;
use crate::algorithm::rule::Rule;
use crate::store::slots::Slots;

pub(super) struct Desk {
    pub(super) policies: Shelf<(Denied, Vec<Rule>)>,
    pub(super) slabs: Shelf<Box<Slots>>,
    pub(super) area: Area,
    pub(super) numbers: Numbers,
}

struct OneThread(UnsafeCell<Desk>);

// SAFETY: wasm has one thread here, and natively nothing calls the exports.
unsafe impl Sync for OneThread {}

static DESK: OneThread = OneThread(UnsafeCell::new(Desk {
    policies: Shelf::EMPTY,
    slabs: Shelf::EMPTY,
    area: Area::EMPTY,
    numbers: Numbers::NONE,
}));

/// Does something at the desk.
#[inline(always)]
pub(super) fn desk<R>(with: impl FnOnce(&mut Desk) -> R) -> R {
    // SAFETY: nobody else is at the desk. What is done there calls neither JavaScript nor an export, so it ends before
    // anything else begins.
    with(unsafe { &mut *DESK.0.get() })
}
