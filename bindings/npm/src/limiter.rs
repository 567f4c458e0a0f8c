//! The limiter's cold operations, by handle. Each returns a number of at least 0, or a status below 0 if it failed.

// Two exports of one name, the only danger of `no_mangle`, are a linker error.
#![allow(unsafe_code)]

use tollgate::boundary::numbers::{signed, time};
use tollgate::boundary::status::{self, status_of};
use tollgate::boundary::{Failure, SlotLimiter};
use tollgate::{Denied, OnFull, Options};

use crate::handles::Handle;
use crate::hot;

/// Creates a limiter for the `count` policies in the call buffer. `denied` is 0 for the default, 1 if denied hits count, 2 if
/// they are free; a `key_older_than` of 0 is none. The handle is in the result buffer, or a status.
#[allow(clippy::too_many_arguments)]
#[unsafe(no_mangle)]
pub extern "C" fn create(
    count: usize,
    denied: u32,
    max_keys: u32,
    deny_when_full: bool,
    clean_period: f64,
    key_older_than: f64,
    reports: bool,
    stored: bool,
) {
    let choice = match denied {
        0 => None,
        1 => Some(Denied::Count),
        _ => Some(Denied::Free),
    };
    let on_full = if deny_when_full { OnFull::Deny } else { OnFull::Evict };
    let options = Options::from_numbers(max_keys, on_full, clean_period as u64, key_older_than as u64);
    hot::insert(hot::call(count).and_then(|algorithms| SlotLimiter::new(algorithms, choice, options, reports, stored)));
}

/// Frees the memory of a limiter.
#[unsafe(no_mangle)]
pub extern "C" fn dispose(index: u32, generation: u32) {
    hot::remove(Handle { index, generation });
}

/// The operations on one policy's count, by number.
pub mod operation {
    /// Returns the count.
    pub const GET: u32 = 0;
    /// Returns when the state ends; 0 if there is none.
    pub const EXPIRES_AT: u32 = 1;
    /// Adds a cost whether it fits or not, and returns the count.
    pub const INC: u32 = 2;
    /// Sets the count, and returns it.
    pub const SET: u32 = 3;
    /// Returns the highest count that can be set.
    pub const MAX_COUNT: u32 = 4;
    /// Returns how long a reservation without a ttl lasts.
    pub const DEFAULT_TTL: u32 = 5;
    /// Begins a ban, or changes the end of the one that holds, and returns the end.
    pub const BAN: u32 = 6;
    /// Lifts a ban, and returns when it would have ended; 0 if none held.
    pub const UNBAN: u32 = 7;
}

/// Performs an operation on the count of the policy at a position.
#[unsafe(no_mangle)]
pub extern "C" fn count(
    index: u32,
    generation: u32,
    operation: u32,
    slot: i32,
    amount: f64,
    now: f64,
    position: usize,
) -> f64 {
    let slot = own(slot);
    at_time(index, generation, now, &mut |limiter, now| {
        if position >= limiter.policies() {
            return Err(Failure::At(position));
        }
        if matches!(operation, operation::INC | operation::SET) {
            limiter.check_countable(position)?;
        }
        match (operation, signed(amount)) {
            (operation::GET, _) => limiter.get(slot, position, now),
            (operation::EXPIRES_AT, _) => limiter.expires_at(slot, position, now),
            (operation::INC, Some(cost)) => limiter.inc(slot, position, cost, now),
            (operation::SET, Some(count @ 0..)) if count as u64 <= limiter.max_count(slot, position, now) => {
                limiter.set(slot, position, count as u64, now)
            }
            (operation::MAX_COUNT, _) => Ok(limiter.max_count(slot, position, now)),
            (operation::DEFAULT_TTL, _) => Ok(limiter.default_ttl()),
            (operation::BAN, Some(length @ 1..)) => limiter.hold(slot, position, Some(length as u64), now),
            (operation::UNBAN, _) => limiter.hold(slot, position, None, now),
            _ => Err(Failure::Amount),
        }
    })
}

/// Frees the slot of a key that JavaScript has removed.
#[unsafe(no_mangle)]
pub extern "C" fn release(index: u32, generation: u32, slot: u32) -> f64 {
    at_time(index, generation, 0.0, &mut |limiter, _| {
        limiter.release(slot);
        Ok(0)
    })
}

/// Resets the states of a slot, and with `all` its reservations. Returns 0 if nothing is left, so that JavaScript can remove
/// the key.
#[unsafe(no_mangle)]
pub extern "C" fn reset(index: u32, generation: u32, slot: u32, all: bool, now: f64) -> f64 {
    at_time(index, generation, now, &mut |limiter, now| limiter.reset(slot, all, now).map(u64::from))
}

/// Frees some slots whose states have ended, from slot `from` on. Returns one more than the slot to go on from; 0 at
/// the end.
#[unsafe(no_mangle)]
pub extern "C" fn clean(index: u32, generation: u32, now: f64, from: u32) -> f64 {
    at_time(index, generation, now, &mut |limiter, now| {
        Ok(limiter.clean(now, from)?.map_or(0, |next| u64::from(next) + 1))
    })
}

/// Clears the list of moves, after JavaScript has taken them over.
#[unsafe(no_mangle)]
pub extern "C" fn acknowledge(index: u32, generation: u32) -> f64 {
    at_time(index, generation, 0.0, &mut |limiter, _| {
        limiter.acknowledge();
        Ok(0)
    })
}

/// Returns how many live keys were evicted. Like `rescue`, it does not allocate.
#[unsafe(no_mangle)]
pub extern "C" fn evicted(index: u32, generation: u32) -> f64 {
    hot::with_limiter(Handle { index, generation }, |limiter| limiter.evicted() as f64)
        .unwrap_or(status::INVALID_HANDLE.into())
}

/// Lists the states of a slot, as [`SlotLimiter::export`] appends them. Returns when they end; 0, with an empty list, if they have ended.
#[unsafe(no_mangle)]
pub extern "C" fn save(index: u32, generation: u32, slot: u32, now: f64) -> f64 {
    let Some(now) = time(now) else { return status::INVALID_TIME.into() };
    hot::list(Handle { index, generation }, |limiter, list| {
        hot::empty(list);
        let ends_at = limiter.ends_at(slot, now);
        if ends_at <= now {
            return Ok(0);
        }
        limiter.export(slot, list)?;
        Ok(ends_at)
    })
}

/// Reads one key's states from the input list into its slot, unless they have ended; without `put` it only checks them.
/// Returns which policies start unused, as bits by their positions.
/// [`SlotLimiter::load`] documents the numbers.
#[unsafe(no_mangle)]
pub extern "C" fn load(index: u32, generation: u32, slot: i32, now: f64, put: bool) -> f64 {
    let Some(now) = time(now) else { return status::INVALID_TIME.into() };
    hot::with_input(Handle { index, generation }, |limiter, numbers| {
        limiter.load(own(slot), now, numbers, put).map(u64::from)
    })
}

/// Sets the exception of a key, or lifts it, by the numbers in the input list. [`SlotLimiter::except`] documents them, and
/// what is returned.
#[unsafe(no_mangle)]
pub extern "C" fn except(index: u32, generation: u32, slot: i32, now: f64) -> f64 {
    let Some(now) = time(now) else { return status::INVALID_TIME.into() };
    hot::with_input(Handle { index, generation }, |limiter, numbers| limiter.except(own(slot), numbers, now))
}

/// An operation on a limiter at a time.
type Work<'a> = &'a mut dyn FnMut(&mut SlotLimiter, u64) -> Result<u64, Failure>;

/// Runs `work` on the limiter of a handle at a time.
#[inline(never)]
fn at_time(index: u32, generation: u32, now: f64, work: Work<'_>) -> f64 {
    let Some(now) = time(now) else { return status::INVALID_TIME.into() };
    match hot::operate(Handle { index, generation }, |limiter| work(limiter, now)) {
        Some(Ok(number)) => number as f64,
        Some(Err(failure)) => status_of(failure).into(),
        None => status::INVALID_HANDLE.into(),
    }
}

/// Returns the slot of a key; `None` if it has none.
fn own(slot: i32) -> Option<u32> {
    u32::try_from(slot).ok()
}
