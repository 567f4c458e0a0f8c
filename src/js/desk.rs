//! What the exports share: the things that JavaScript holds by number, and where questions and answers lie.

#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use super::area::Area;
use super::shelf::Shelf;
use crate::store::slots::Slots;
use crate::text::text;
use crate::{Error, Policies};

pub(super) struct Desk {
    pub(super) policies: Shelf<Policies>,
    pub(super) slabs: Shelf<Box<Slots>>,
    pub(super) area: Area,
    /// What JavaScript wrote, or what it is to read.
    pub(super) text: Text,
    /// The same of numbers.
    pub(super) numbers: Vec<f64>,
}

impl Desk {
    const EMPTY: Self = Self {
        policies: Shelf::EMPTY,
        slabs: Shelf::EMPTY,
        area: Area::EMPTY,
        text: Text(Vec::new()),
        numbers: Vec::new(),
    };

    /// Makes room for a text of that many bytes, and says where.
    pub(super) fn room_for_text(&mut self, bytes: usize) -> u32 {
        self.text.0.resize(bytes, 0);
        self.text.0.as_ptr().addr() as u32
    }

    /// Makes room for that many numbers, and says where.
    pub(super) fn room_for_numbers(&mut self, count: usize) -> u32 {
        self.numbers.resize(count, 0.0);
        self.numbers.as_ptr().addr() as u32
    }

    /// Answers a text, and says where.
    pub(super) fn answer(&mut self, text: String) {
        self.area.point_to_text(text.as_ptr().addr(), text.len());
        self.text = Text(text.into_bytes());
    }

    /// Answers numbers, and says where.
    pub(super) fn answer_numbers(&mut self, numbers: Vec<f64>) {
        self.numbers = numbers;
        self.area.point_to_numbers(self.numbers.as_ptr().addr(), self.numbers.len());
    }

    /// The result, if it is one. A mistake becomes the text.
    pub(super) fn take<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// A mistake becomes the text.
    pub(super) fn fail(&mut self, error: &Error) -> i32 {
        self.answer(text(&[error.code(), "\n", error.message()]));
        super::FAILED
    }
}

/// A text that JavaScript wrote, or is to read.
pub(super) struct Text(Vec<u8>);

impl Text {
    pub(super) fn as_str(&self) -> &str {
        // SAFETY: JavaScript's TextEncoder wrote it, which writes nothing but UTF-8, or else it is zeros, or from a `String`.
        unsafe { str::from_utf8_unchecked(&self.0) }
    }
}

/// The list that is there, emptied.
pub(super) fn cleared(numbers: &mut Vec<f64>) -> Vec<f64> {
    numbers.clear();
    core::mem::take(numbers)
}

struct OneThread(UnsafeCell<Desk>);

// SAFETY: wasm has one thread here, and natively nothing calls the exports.
unsafe impl Sync for OneThread {}

static DESK: OneThread = OneThread(UnsafeCell::new(Desk::EMPTY));

/// Does something at the desk.
#[inline(always)]
pub(super) fn desk<R>(with: impl FnOnce(&mut Desk) -> R) -> R {
    // SAFETY: nobody else is at the desk. What is done there calls neither JavaScript nor an export, so it ends before
    // anything else begins.
    with(unsafe { &mut *DESK.0.get() })
}
