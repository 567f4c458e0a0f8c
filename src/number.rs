//! The range every number lives in, and the arithmetic that must not overflow or drift.

use crate::Error;
use crate::text::digits;

/// The largest cost, count, limit or time: 2^53 − 1, the largest whole number JavaScript holds exactly.
pub const MAX: u64 = (1 << 53) - 1;

/// What a cost or a count may be, for error messages.
pub(crate) const AMOUNT: &str = "a whole number from 0 to 9007199254740991";

/// Passes a cost that is in range.
#[inline]
pub(crate) fn check_cost(cost: u64) -> Result<u64, Error> {
    if cost <= MAX { Ok(cost) } else { Err(Error::cost(&digits(cost))) }
}

/// Passes what a policy may be set to.
pub(crate) fn check_count(count: u64, most: u64) -> Result<(), Error> {
    if count <= most { Ok(()) } else { Err(Error::count(&digits(count), most)) }
}

/// Passes a time that is in range.
#[inline]
pub(crate) fn check_time(now: u64) -> Result<u64, Error> {
    if now <= MAX { Ok(now) } else { Err(Error::time(&digits(now))) }
}

/// The whole number in range that a float is, if it is one.
pub(crate) fn whole(number: f64) -> Option<u64> {
    let whole = number as u64;
    (whole as f64 == number && whole <= MAX).then_some(whole)
}

/// What a float is that is no whole number in range. Writing fractions would be the largest thing in the wasm.
pub(crate) fn in_words(number: f64) -> &'static str {
    if number.is_nan() {
        "not a number"
    } else if number < 0.0 {
        "a negative number"
    } else if number > MAX as f64 {
        "a number past 9007199254740991"
    } else {
        "a fraction"
    }
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

/// The same by hand, a bit at a time: seldom needed, and the general division of 128 bits would be long in wasm.
#[cold]
fn divide_wide(a: u128, b: u64) -> u64 {
    let (high, mut low) = ((a >> 64) as u64, a as u64);
    if high >= b {
        return u64::MAX;
    }
    // Below `b`, which is in range, so that twice as much is too.
    let mut rest = high;
    let mut quotient = 0;
    for _ in 0..64 {
        rest = rest << 1 | low >> 63;
        low <<= 1;
        quotient <<= 1;
        if rest >= b {
            rest -= b;
            quotient |= 1;
        }
    }
    quotient
}

/// `a / b`, rounded down, and the rest, which is never negative.
pub(crate) fn divide_down(a: i128, b: u64) -> (i64, u64) {
    let size = a.unsigned_abs();
    let quotient = divide(size, b);
    let rest = (size - product(quotient, b)) as u64;
    match (a < 0, rest) {
        (false, _) => (quotient as i64, rest),
        (true, 0) => (-(quotient as i64), 0),
        (true, _) => (-(quotient as i64) - 1, b - rest),
    }
}

/// `a / b`, rounded up.
#[inline]
pub(crate) fn divide_up(a: u128, b: u64) -> u64 {
    divide(a + u128::from(b - 1), b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_those_of_the_language() {
        let numbers = [0, 1, 7, (1 << 32) - 1, 1 << 32, MAX - 1, MAX];
        for (a, b, divisor) in
            numbers.iter().flat_map(|&a| numbers.iter().flat_map(move |&b| numbers.map(|c| (a, b, c))))
        {
            let (dividend, divisor) = (u128::from(a) * u128::from(b) + u128::from(a), divisor.max(1));
            let expected = u64::try_from(dividend / u128::from(divisor)).unwrap_or(u64::MAX);
            assert_eq!(divide(dividend, divisor), expected, "{dividend} / {divisor}");
            if expected > MAX {
                continue;
            }
            for signed in [dividend as i128, -(dividend as i128)] {
                let (down, rest) = divide_down(signed, divisor);
                let expected = (signed.div_euclid(divisor.into()), signed.rem_euclid(divisor.into()));
                assert_eq!((i128::from(down), i128::from(rest)), expected, "{signed} / {divisor}");
            }
        }
    }
}
