//! The range every number lives in, and the arithmetic that must not overflow or drift.

use crate::Error;
use crate::text::digits;

/// The largest cost, count, limit or time: 2^53 − 1, the largest whole number JavaScript holds exactly.
pub const MAX: u64 = (1 << 53) - 1;

/// Passes a cost that is in range.
#[inline]
pub(crate) fn check_cost(cost: u64) -> Result<u64, Error> {
    if cost <= MAX { Ok(cost) } else { Err(Error::cost(&digits(cost))) }
}

/// Passes a time that is in range.
#[inline]
pub(crate) fn check_time(now: u64) -> Result<u64, Error> {
    if now <= MAX { Ok(now) } else { Err(Error::time(&digits(now))) }
}

/// The number that digits write, if there is one and nothing else.
pub(crate) fn from_digits(digits: &str) -> Option<u64> {
    let mut number: Option<u64> = None;
    for byte in digits.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit.into())?);
    }
    number
}

/// Adds to a counter that saturates: what is past the range stays denied instead of wrapping.
#[cfg_attr(target_arch = "wasm32", inline(always))]
#[cfg_attr(not(target_arch = "wasm32"), inline)]
pub(crate) fn add(count: u64, cost: u64) -> u64 {
    count.saturating_add(cost).min(MAX)
}

/// `a * b` of two numbers in range.
#[cfg_attr(target_arch = "wasm32", inline(always))]
#[cfg_attr(not(target_arch = "wasm32"), inline)]
pub(crate) fn product(a: u64, b: u64) -> u128 {
    // A machine of 64 bits has one instruction for it; others are quicker where both are small.
    if cfg!(target_pointer_width = "32") && (a | b) >> 32 == 0 {
        return u128::from(a * b);
    }
    u128::from(a) * u128::from(b)
}

/// `a / b`, quickly where `a` is small. A quotient past `u64` saturates.
#[inline]
pub(crate) fn divide(a: u128, b: u64) -> u64 {
    match u64::try_from(a) {
        Ok(a) => a / b,
        Err(_) => divide_wide(a, b),
    }
}

#[cold]
fn divide_wide(a: u128, b: u64) -> u64 {
    u64::try_from(a / u128::from(b)).unwrap_or(u64::MAX)
}

/// `a / b`, rounded up.
#[inline]
pub(crate) fn divide_up(a: u128, b: u64) -> u64 {
    divide(a + u128::from(b - 1), b)
}
