//! The wasm exports behind the npm package's headers: a wasm of their own, so that a page which tells none ships none.
//!
//! Nothing here allocates. JavaScript writes the policies into the area and reads the text there
//! (`js/core/headers.ts`).

// What is exported to JavaScript must be `pub`, though no Rust crate can reach it. That no two exports have one name,
// which is all that could be unsafe about them, the linker sees to.
#![allow(unreachable_pub, unsafe_code)]

use core::cell::UnsafeCell;

use super::{Headers, legacy, write_headers, write_problem};
use crate::algorithm::bucket::{Bucket, Kind};
use crate::policy::{LEAKY_BUCKET, TOKEN_BUCKET};
use crate::text::{Text, push_digits};
use crate::{Decision, MAX, MAX_POLICIES, Violated};

/// Where JavaScript writes policies and reads text; it knows the same.
#[repr(C)]
struct Area {
    /// Of each policy: its algorithm's place in `ALGORITHMS`, limit or capacity, rate, `scale` or `per`, and one more.
    policies: [[f64; 5]; MAX_POLICIES],
    /// Of each policy: its name in ASCII, which a zero ends where it is shorter.
    names: [[u8; 64]; MAX_POLICIES],
    text: Page,
}

/// Text in ASCII. All headers for as many policies as there may be, with the longest names, are shorter.
#[repr(C)]
struct Page {
    bytes: [u8; 8_192],
    length: usize,
}

impl Text for Page {
    #[inline(never)]
    fn push(&mut self, character: char) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = character as u8;
            self.length += 1;
        }
    }

    #[inline(never)]
    fn push_str(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.push(char::from(byte));
        }
    }
}

/// The name of a header and its value are lines.
impl Headers for Page {
    fn header(&mut self, name: &'static str) {
        self.push('\n');
        self.push_str(name);
        self.push('\n');
    }
}

struct OneThread(UnsafeCell<Area>);

// SAFETY: wasm has one thread here.
unsafe impl Sync for OneThread {}

static AREA: OneThread = OneThread(UnsafeCell::new(Area {
    policies: [[0.0; 5]; MAX_POLICIES],
    names: [[0; 64]; MAX_POLICIES],
    text: Page { bytes: [0; 8_192], length: 0 },
}));

/// Writes a text, and says how many bytes it has.
fn written(write: impl FnOnce(&mut Page, &[[f64; 5]], &[[u8; 64]])) -> usize {
    // SAFETY: nobody else is at the area. What is written there calls neither JavaScript nor an export.
    let Area { policies, names, text } = unsafe { &mut *AREA.0.get() };
    text.length = 0;
    write(text, policies, names);
    text.length
}

/// A policy's limit and period.
fn quota([algorithm, limit, rate, scale, _]: &[f64; 5]) -> (u64, u64) {
    let (limit, rate, scale) = (*limit as u64, *rate as u64, *scale as u64);
    let period = match *algorithm as usize {
        // Either kind empties as quickly as it fills. No rate is 0.
        TOKEN_BUCKET | LEAKY_BUCKET => Bucket::new(Kind::Token, limit, rate.max(1), scale).period,
        _ => scale,
    };
    (limit, period)
}

/// The characters of a name.
fn name(names: &[[u8; 64]], position: usize) -> impl Iterator<Item = char> {
    let name = names.get(position).map_or([].as_slice(), |name| name);
    name.iter().map_while(|&byte| (byte > 0).then_some(char::from(byte)))
}

/// Where the area lies in the memory.
#[unsafe(no_mangle)]
pub extern "C" fn area() -> usize {
    AREA.0.get().addr()
}

/// The position of the first of so many policies that is refused: its capacity would take too long to fill. -1 if none is.
#[unsafe(no_mangle)]
pub extern "C" fn refused(policies: usize) -> i32 {
    // SAFETY: as above.
    let numbers = unsafe { &(*AREA.0.get()).policies };
    numbers.iter().take(policies).position(|numbers| quota(numbers).1 > MAX).map_or(-1, |position| position as i32)
}

// The fields of a decision cross one by one, since only numbers do.
#[allow(clippy::too_many_arguments)]
/// Writes the headers for a decision under the first so many policies.
#[unsafe(no_mangle)]
pub extern "C" fn headers(
    policies: usize,
    allowed: bool,
    limit: f64,
    remaining: f64,
    retry_after: f64,
    reset_after: f64,
    policy: usize,
    legacy_too: bool,
) -> usize {
    let decision = Decision {
        allowed,
        limit: limit as u64,
        remaining: remaining as u64,
        retry_after: retry_after.is_finite().then_some(retry_after as u64),
        reset_after: reset_after as u64,
        policy,
        ..Decision::NOTHING
    };
    written(|text, numbers, names| {
        let quotas = numbers.iter().take(policies).map(quota);
        write_headers(text, &decision, quotas, |position| name(names, position));
        if legacy_too {
            for (name, number) in legacy(&decision) {
                text.header(name);
                push_digits(text, number);
            }
        }
    })
}

/// Writes the body of a denial by the policies whose bits are set.
#[unsafe(no_mangle)]
pub extern "C" fn problem(violated: u32) -> usize {
    written(|text, _, names| write_problem(text, Violated(violated), |position| name(names, position)))
}
