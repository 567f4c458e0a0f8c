//! The exports, and, beside the allocator, all the unsafe code of this binding.

// Two exports of one name, the only danger of `no_mangle`, are a linker error.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::cell::UnsafeCell;

use tollgate::boundary::numbers::{PER_POLICY, integer, policies, time};
use tollgate::boundary::status::{self, status_of};
use tollgate::boundary::{Failure, OneKey, OutOfMemory};
use tollgate::{Decision, Denied};

#[cfg(all(target_arch = "wasm32", not(test)))]
use crate::platform::free_all;

/// Natively every value frees its own memory.
#[cfg(not(all(target_arch = "wasm32", not(test))))]
fn free_all() {}

/// The state that the exports share.
struct Shared {
    /// The numbers of the policies, then the states, written by JavaScript.
    input: Vec<f64>,
    /// The key whose states were opened last.
    key: Option<OneKey>,
    /// The numbers of the last decision.
    result: [f64; 9],
    /// The states, read by JavaScript.
    output: Vec<f64>,
}

struct OneThread(UnsafeCell<Shared>);

// SAFETY: this wasm has one thread, and natively no two tests use it.
unsafe impl Sync for OneThread {}

static SHARED: OneThread =
    OneThread(UnsafeCell::new(Shared { input: Vec::new(), key: None, result: [0.0; 9], output: Vec::new() }));

/// Runs `work` on the shared state. `work` must call neither JavaScript nor this function.
fn shared<R>(work: impl FnOnce(&mut Shared) -> R) -> R {
    // SAFETY: there is one thread, and `work` does not call this function, so this is the only reference. A trap within
    // `work` leaves no reference behind.
    work(unsafe { &mut *SHARED.0.get() })
}

/// Frees the last key, and makes room for `count` numbers in the input. Returns its address; 0 if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn input(count: usize) -> usize {
    shared(|Shared { input, key, output, .. }| {
        (*input, *key, *output) = (Vec::new(), None, Vec::new());
        free_all();
        if input.try_reserve_exact(count).is_err() {
            return 0;
        }
        input.resize(count, 0.0);
        input.as_mut_ptr().expose_provenance()
    })
}

/// Opens the states in the input, which follow the numbers of `count` policies. With `counts`, denied hits count. Returns 0,
/// or a status.
#[unsafe(no_mangle)]
pub extern "C" fn begin(count: usize, counts: bool, now: f64) -> i32 {
    let Some(now) = time(now) else { return status::INVALID_TIME };
    shared(|Shared { input, key, .. }| {
        let denied = if counts { Denied::Count } else { Denied::Free };
        match opened(input, count, denied, now) {
            Ok(opened) => {
                *key = Some(opened);
                0
            }
            Err(failure) => status_of(failure),
        }
    })
}

fn opened(input: &[f64], count: usize, denied: Denied, now: u64) -> Result<OneKey, Failure> {
    let (numbers, states) = input.split_at_checked(PER_POLICY * count).ok_or(Failure::Mismatch)?;
    let mut list = Vec::new();
    list.try_reserve_exact(states.len()).map_err(|_| Failure::OutOfMemory)?;
    list.extend(states.iter().map(|&number| number as i64));
    let mut key = OneKey::new(policies(numbers)?, Some(denied), now)?;
    key.load(now, &list)?;
    Ok(key)
}

/// Returns the address of the result: count, limit, remaining, retry after (infinite for never), reset after, more after,
/// whether it is allowed, the position of the policy, and the bits of the policies that denied.
#[unsafe(no_mangle)]
pub extern "C" fn result() -> usize {
    shared(|shared| shared.result.as_ptr().expose_provenance())
}

/// Decides a hit on the states that were opened, and with `charges` charges it if it fits. Returns 0, or a status.
#[unsafe(no_mangle)]
pub extern "C" fn hit(cost: f64, now: f64, charges: bool) -> i32 {
    let Some(cost) = integer(cost) else { return status::INVALID_COST };
    let Some(now) = time(now) else { return status::INVALID_TIME };
    shared(|Shared { key, result, .. }| {
        let Some(key) = key else { return status::INVALID_HANDLE };
        let decision = match key.hit(cost, now, charges) {
            Ok(decision) => decision,
            Err(failure) => return status_of(failure),
        };
        let Decision { count, limit, remaining, retry_after, reset_after, more_after, .. } = decision;
        *result = [
            float(count),
            float(limit),
            float(remaining),
            retry_after.map_or(f64::INFINITY, float),
            float(reset_after),
            float(more_after),
            f64::from(u8::from(decision.allowed)),
            decision.policy as f64,
            decision.violated.bits().into(),
        ];
        0
    })
}

/// Writes when the states that were opened end, 0 if all have, and then those that have not, as [`OneKey::save`] passes
/// them. Returns how many numbers the output has, or a status.
#[unsafe(no_mangle)]
pub extern "C" fn save(now: f64) -> i32 {
    let Some(now) = time(now) else { return status::INVALID_TIME };
    shared(|Shared { key, output, .. }| {
        let Some(key) = key else { return status::INVALID_HANDLE };
        match saved(key, now, output) {
            Ok(()) => output.len() as i32,
            Err(failure) => status_of(failure),
        }
    })
}

fn saved(key: &OneKey, now: u64, output: &mut Vec<f64>) -> Result<(), Failure> {
    output.clear();
    push(output, 0.0)?;
    let ends_at = key.save(now, &mut |number| push(output, number as f64))?;
    output[0] = float(ends_at);
    Ok(())
}

fn push(list: &mut Vec<f64>, number: f64) -> Result<(), OutOfMemory> {
    list.try_reserve(1).map_err(|_| OutOfMemory)?;
    list.push(number);
    Ok(())
}

/// Returns the address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> usize {
    shared(|shared| shared.output.as_ptr().expose_provenance())
}

/// Converts a number below 2^63; machines convert signed numbers in fewer steps.
fn float(number: u64) -> f64 {
    number as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

    /// A fixed window of two hits a minute: algorithm, limit, rate and scale, and none of the numbers of a ban.
    const POLICY: [f64; PER_POLICY] = [0.0, 2.0, 1.0, 60_000.0, 0.0, 0.0];

    /// Opens the states under the policy at a time, as JavaScript does.
    fn open(states: &[f64], now: f64) -> i32 {
        let numbers = [&POLICY, states].concat();
        let address = with_exposed_provenance_mut(input(numbers.len()));
        // SAFETY: `input` made room for so many numbers at the address, and no other reference to them is in use.
        unsafe { core::slice::from_raw_parts_mut(address, numbers.len()) }.copy_from_slice(&numbers);
        begin(1, false, now)
    }

    /// Copies numbers that an export wrote.
    fn read(address: usize, count: usize) -> Vec<f64> {
        // SAFETY: the export wrote so many numbers at the address, and no call has changed them since.
        unsafe { core::slice::from_raw_parts(with_exposed_provenance::<f64>(address), count) }.to_vec()
    }

    // The only test, since it uses the shared state. Miri runs it too.
    #[test]
    fn states_cross_the_boundary_and_come_back() {
        assert_eq!((hit(1.0, 0.0, true), save(0.0)), (status::INVALID_HANDLE, status::INVALID_HANDLE));
        let mut states = Vec::new();
        for (now, remaining) in [(1.0, 1.0), (2.0, 0.0)] {
            assert_eq!((open(&states, now), hit(1.0, now, true)), (0, 0));
            assert_eq!(read(result(), 7), [2.0 - remaining, 2.0, remaining, 0.0, 60_000.0 - now, 60_000.0 - now, 1.0]);
            let count = save(now) as usize;
            let saved = read(output(), count);
            assert_eq!(saved[0], 60_000.0);
            states = saved[1..].to_vec();
        }
        assert_eq!((open(&states, 3.0), hit(1.0, 3.0, true)), (0, 0));
        assert_eq!(read(result(), 7)[2..], [0.0, 59_997.0, 59_997.0, 59_997.0, 0.0]);
        assert_eq!(begin(9, false, 0.0), status_of(Failure::Mismatch));
        assert_eq!(open(&[1.0, 2.0], 0.0), status_of(Failure::At(0)));
        assert_eq!(begin(1, false, -1.0), status::INVALID_TIME);
    }
}
