//! The hot path: hits as plain exports of numbers, and all the unsafe code of this binding.
//!
//! JavaScript passes a checked handle of a limiter, and
//! reads the decision from a static buffer.

// Two exports of one name, the only danger of `no_mangle`, are a linker error.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::cell::UnsafeCell;

use tollgate::boundary::numbers::{PER_POLICY, costs, integer, policies, time};
use tollgate::boundary::status::{self, status_of};
use tollgate::boundary::{Algorithms, Failure, PositionCosts, SlotLimiter, schema};
use tollgate::{Decision, Settlement};

use crate::handles::{Handle, Handles};
#[cfg(target_arch = "wasm32")]
use crate::platform::grow_ahead;
use crate::result_buffer::ResultBuffer;

/// The size of the call buffer.
const CALL_NUMBERS: usize = PER_POLICY * schema::MAX_POLICIES;

/// The state that the exports share.
struct Shared {
    slabs: Handles<SlotLimiter>,
    result: ResultBuffer,
    /// The call buffer: the numbers of a call's policies, written by JavaScript.
    call: [f64; CALL_NUMBERS],
    /// The reservation buffer, written by JavaScript.
    reservation: ReservationBuffer,
    /// The list that JavaScript reads; as floats, the one that it writes.
    list: Vec<i64>,
    /// The part of a state that `rescue` copies.
    part: [i64; PART],
}

/// Costs by policy, and the numbers of a reservation.
#[repr(C)]
pub struct ReservationBuffer {
    /// The cost at each position; -1 for as much as was reserved.
    costs: [f64; schema::MAX_POLICIES],
    /// Four parts of 32 bits of the id.
    id: [f64; 4],
    /// How long it lasts.
    ttl: f64,
    /// When it ends, by its id.
    end: f64,
}

impl ReservationBuffer {
    const EMPTY: Self = Self { costs: [0.0; schema::MAX_POLICIES], id: [0.0; 4], ttl: 0.0, end: 0.0 };

    fn bits(&self) -> [u32; 4] {
        self.id.map(|part| part as u32)
    }
}

/// The most numbers of one part.
const PART: usize = 1_024;

struct OneThread(UnsafeCell<Shared>);

// SAFETY: this wasm has one thread, and natively no two tests use it.
unsafe impl Sync for OneThread {}

static SHARED: OneThread = OneThread(UnsafeCell::new(Shared {
    slabs: Handles::new(),
    result: ResultBuffer::EMPTY,
    call: [0.0; CALL_NUMBERS],
    reservation: ReservationBuffer::EMPTY,
    list: Vec::new(),
    part: [0; PART],
}));

/// Natively there is no memory to grow.
#[cfg(not(target_arch = "wasm32"))]
fn grow_ahead() {}

/// Runs `work` on the shared state. `work` must call neither JavaScript nor this function.
#[inline(always)]
fn shared<R>(work: impl FnOnce(&mut Shared) -> R) -> R {
    // SAFETY: there is one thread, and `work` does not call this function, so this is the only reference. A trap within
    // `work` leaves no reference behind.
    work(unsafe { &mut *SHARED.0.get() })
}

/// Runs `work`, which does not allocate, on the limiter of a handle; `None` if there is none.
pub(crate) fn with_limiter<R>(handle: Handle, work: impl FnOnce(&mut SlotLimiter) -> R) -> Option<R> {
    shared(|shared| shared.slabs.get_mut(handle).map(work))
}

/// Runs an operation on the limiter of a handle; `None` if there is none.
pub(crate) fn operate<R>(handle: Handle, work: impl FnOnce(&mut SlotLimiter) -> R) -> Option<R> {
    shared(|Shared { slabs, result, .. }| {
        let limiter = slabs.get_mut(handle)?;
        let done = work(limiter);
        leave(result, limiter);
        Some(done)
    })
}

/// Ends an operation, whether it failed or not: grows the memory ahead, and writes whether slots were moved. Every operation
/// but a plain hit passes through here.
#[inline(never)]
fn leave(result: &mut ResultBuffer, limiter: &SlotLimiter) {
    grow_ahead();
    result.moved = limiter.has_moved().into();
}

/// Adds a limiter and writes its handle into the result buffer; on a failure, a status.
pub(crate) fn insert(limiter: Result<SlotLimiter, Failure>) {
    shared(|Shared { slabs, result, .. }| {
        let handle = limiter.and_then(|limiter| slabs.insert(limiter).ok_or(Failure::OutOfMemory));
        result.handle = match handle {
            Ok(handle) => [handle.index as i32, handle.generation as i32],
            Err(failure) => [status_of(failure), 0],
        };
    });
}

/// The capacity up to which the list is kept for the next use.
const KEPT: usize = 65_536;

/// Empties the list, and frees its memory if it is long.
pub(crate) fn empty(list: &mut Vec<i64>) {
    list.clear();
    if list.capacity() > KEPT {
        *list = Vec::new();
    }
}

/// Removes the limiter of a handle.
pub(crate) fn remove(handle: Handle) -> Option<SlotLimiter> {
    shared(|shared| shared.slabs.remove(handle))
}

/// Fills the list that JavaScript reads from the limiter of a handle. `work` must empty the list first. Returns the number
/// of `work`, or a status.
pub(crate) fn list(handle: Handle, work: impl FnOnce(&mut SlotLimiter, &mut Vec<i64>) -> Result<u64, Failure>) -> f64 {
    shared(|Shared { slabs, result, list, .. }| {
        let Some(limiter) = slabs.get_mut(handle) else { return status::INVALID_HANDLE.into() };
        let number = work(limiter, list);
        leave(result, limiter);
        result.write_list(list);
        match number {
            Ok(number) => number as f64,
            Err(failure) => status_of(failure).into(),
        }
    })
}

/// Runs `work` on the limiter of a handle and the numbers that JavaScript wrote into the list.
pub(crate) fn with_input(handle: Handle, work: impl FnOnce(&mut SlotLimiter, &[i64]) -> Result<u64, Failure>) -> f64 {
    list(handle, |limiter, list| {
        for number in &mut *list {
            *number = f64::from_bits(*number as u64) as i64;
        }
        let result = work(limiter, list);
        empty(list);
        result
    })
}

/// Returns the algorithms of the first `count` policies in the call buffer.
pub(crate) fn call(count: usize) -> Result<Algorithms, Failure> {
    shared(|Shared { call, .. }| policies(call.get(..PER_POLICY.saturating_mul(count)).ok_or(Failure::Mismatch)?))
}

/// Makes room for `count` numbers in the list, as floats, and returns its address; 0 if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn input(count: usize) -> usize {
    shared(|Shared { list, .. }| {
        list.clear();
        if list.try_reserve_exact(count).is_err() {
            return 0;
        }
        list.resize(count, 0);
        grow_ahead();
        list.as_mut_ptr().expose_provenance()
    })
}

/// Returns the address of the result buffer.
#[unsafe(no_mangle)]
pub extern "C" fn result_buffer() -> usize {
    // SAFETY: the static lives for ever; only its address is taken.
    unsafe { (&raw mut (*SHARED.0.get()).result).expose_provenance() }
}

/// Returns the address of the numbers of a call's policies.
#[unsafe(no_mangle)]
pub extern "C" fn call_buffer() -> usize {
    // SAFETY: as above.
    unsafe { (&raw mut (*SHARED.0.get()).call).expose_provenance() }
}

/// Returns the address of the costs and the numbers of a reservation.
#[unsafe(no_mangle)]
pub extern "C" fn reservation_buffer() -> usize {
    // SAFETY: as above.
    unsafe { (&raw mut (*SHARED.0.get()).reservation).expose_provenance() }
}

/// Decides a hit of a key in a slot, or of a key without one if `slot` is negative. Returns a status.
#[unsafe(no_mangle)]
pub extern "C" fn hit(index: u32, generation: u32, slot: i32, cost: f64, now: f64) -> i32 {
    let Some(cost) = integer(cost) else { return status::INVALID_COST };
    let Some(now) = time(now) else { return status::INVALID_TIME };
    shared(|Shared { slabs, result, .. }| {
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE };
        if !limiter.is_plain(slot, now) {
            let decision = limiter.hit(u32::try_from(slot).ok(), &PositionCosts::All(cost), now, None);
            return finish(result, limiter, decision);
        }
        match limiter.hit_window(slot as u32, cost, now) {
            Some(decision) => result.write_decision(&decision),
            None => hit_plain(result, limiter, slot as u32, cost, now),
        }
    })
}

/// Decides a plain hit under any policies. It is a function of its own, so that the most common hit needs no stack.
#[inline(never)]
fn hit_plain(result: &mut ResultBuffer, limiter: &mut SlotLimiter, slot: u32, cost: u64, now: u64) -> i32 {
    let decision = limiter.hit_plain(slot, cost, now);
    grow_ahead();
    match decision {
        Ok(decision) => result.write_decision(&decision),
        Err(failure) => status_of(failure),
    }
}

/// The kinds of `hit_with`, by number.
pub mod hit_kind {
    /// Charges the costs if they fit.
    pub const HIT: u32 = 0;
    /// Only returns the decision.
    pub const PEEK: u32 = 1;
    /// Opens a reservation of the costs if they fit.
    pub const RESERVE: u32 = 2;
    /// Only returns the decision, of a hit that is free if denied.
    pub const PEEK_FREE: u32 = 3;
    /// Added to one of these: the costs are those in the reservation buffer.
    pub const BY_POLICY: u32 = 4;
}

/// Hits, peeks or reserves under the numbers of `count` policies in the call buffer, or under the limiter's own if that is
/// 0. Returns a status.
#[unsafe(no_mangle)]
pub extern "C" fn hit_with(
    index: u32,
    generation: u32,
    slot: i32,
    cost: f64,
    now: f64,
    count: usize,
    kind: u32,
) -> i32 {
    let Some(now) = time(now) else { return status::INVALID_TIME };
    let call = match call(count) {
        Ok(_) if count == 0 => None,
        Ok(algorithms) => Some(algorithms),
        Err(failure) => return status_of(failure),
    };
    shared(|Shared { slabs, result, reservation, .. }| {
        let costs = match kind & hit_kind::BY_POLICY {
            0 => integer(cost).map(PositionCosts::All),
            _ => costs(&reservation.costs),
        };
        let Some(costs) = costs else { return status::INVALID_COST };
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE };
        let slot = u32::try_from(slot).ok();
        let decision = match kind & !hit_kind::BY_POLICY {
            hit_kind::HIT => limiter.hit(slot, &costs, now, call),
            hit_kind::PEEK => limiter.peek(slot, &costs, now, call),
            hit_kind::PEEK_FREE => limiter.peek_free(slot, &costs, now, call),
            _ => limiter.reserve(slot, &costs, (reservation.bits(), reservation.ttl as u64), now, call),
        };
        finish(result, limiter, decision)
    })
}

/// The results of closing or extending a reservation, by number.
pub mod settlement {
    /// It is settled now.
    pub const SETTLED: i32 = 0;
    /// Its end has moved.
    pub const EXTENDED: i32 = 1;
    /// It had expired.
    pub const EXPIRED: i32 = 2;
    /// It had been closed.
    pub const CLOSED: i32 = 3;
    /// Its key was evicted, and the reservation with it.
    pub const EVICTED: i32 = 4;
}

/// Settles the reservation in the reservation buffer by the costs there, or with `extends` moves its end. Returns a
/// number of [`settlement`], or a status.
#[unsafe(no_mangle)]
pub extern "C" fn close_reservation(index: u32, generation: u32, slot: i32, now: f64, extends: bool) -> i32 {
    let Some(now) = time(now) else { return status::INVALID_TIME };
    shared(|Shared { slabs, result, reservation, .. }| {
        let Some(used) = costs(&reservation.costs) else { return status::INVALID_COST };
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE };
        let (id, ttl) = ((reservation.bits(), reservation.end as u64), extends.then_some(reservation.ttl as u64));
        let settled = limiter.settle_reservation(u32::try_from(slot).ok(), id, &used, ttl, now);
        leave(result, limiter);
        match settled {
            Ok(Settlement::Settled) => settlement::SETTLED,
            Ok(Settlement::Extended) => settlement::EXTENDED,
            Ok(Settlement::Expired) => settlement::EXPIRED,
            Ok(Settlement::Closed) => settlement::CLOSED,
            Ok(Settlement::Evicted) => settlement::EVICTED,
            Err(failure) => status_of(failure),
        }
    })
}

/// Undoes the hit in the reservation buffer, by its costs, the first two of the bits, the time in the place of the end, and
/// what was beside it in the place of the `ttl`. With `asks`, only returns what is beside a hit of these costs that was just
/// allowed, or NaN if it charged nothing. Returns what was given back, or a status.
#[unsafe(no_mangle)]
pub extern "C" fn undo(index: u32, generation: u32, slot: i32, now: f64, asks: bool) -> f64 {
    let Some(now) = time(now) else { return status::INVALID_TIME.into() };
    shared(|Shared { slabs, reservation, .. }| {
        let Some(costs) = costs(&reservation.costs) else { return status::INVALID_COST.into() };
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE.into() };
        let slot = u32::try_from(slot).ok();
        if asks {
            return limiter.beside_hit(slot, &costs, now).map_or(f64::NAN, |beside| beside as f64);
        }
        let [high, low, ..] = reservation.bits();
        let hit = (u64::from(high) << 32 | u64::from(low), reservation.end as u64, reservation.ttl as u64);
        let undone = limiter.undo(slot, hit, &costs, now);
        grow_ahead();
        match undone {
            Ok(given) => given as f64,
            Err(failure) => status_of(failure).into(),
        }
    })
}

/// Copies a part of a state, from the number at `from` on, for the instance that replaces this one after a trap. It
/// does not allocate: the trap may have left the allocator in the middle of its work. Returns how many numbers were
/// copied, or a status.
#[unsafe(no_mangle)]
pub extern "C" fn rescue(index: u32, generation: u32, slot: u32, position: usize, from: usize) -> i32 {
    shared(|Shared { slabs, result, part, .. }| {
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE };
        let copied = limiter.export_part(slot, position, from, part);
        result.write_list(&part[..copied]);
        copied as i32
    })
}

/// Copies a part of the list of moves since the last `acknowledge`, from the number at `from` on. The list has the slot that
/// was taken or -1, the count of freed slots, these slots, and slot, policy, value and time of each expired state. Like
/// `rescue`, it does not allocate. Returns how many numbers were copied, or a status.
#[unsafe(no_mangle)]
pub extern "C" fn moves(index: u32, generation: u32, from: usize) -> i32 {
    shared(|Shared { slabs, result, part, .. }| {
        let Some(limiter) = slabs.get_mut(Handle { index, generation }) else { return status::INVALID_HANDLE };
        let copied = limiter.moves_part(from, part);
        result.write_list(&part[..copied]);
        copied as i32
    })
}

/// Panics, for tests of the recovery from a trap.
#[unsafe(no_mangle)]
#[allow(clippy::panic)]
pub extern "C" fn crash() {
    panic!("a panic for tests");
}

/// Writes a decision and returns its status, with the bit for moved slots.
#[inline(never)]
fn finish(result: &mut ResultBuffer, limiter: &mut SlotLimiter, decision: Result<Decision, Failure>) -> i32 {
    leave(result, limiter);
    match decision {
        Ok(decision) => result.write_decision(&decision) | (result.moved * status::MOVED),
        Err(failure) => status_of(failure),
    }
}
