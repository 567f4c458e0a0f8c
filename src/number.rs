//! The range of all numbers, and arithmetic that does not overflow or drift.

use alloc::string::String;

use crate::Error;

/// The largest cost, count, limit or time: 2^53 − 1, the largest integer that JavaScript represents exactly.
pub const MAX: u64 = (1 << 53) - 1;

/// Later than any time.
pub(crate) const NEVER: u64 = u64::MAX;

/// Checks that `cost` is in range.
#[inline]
pub(crate) fn check_cost(cost: u64) -> Result<u64, Error> {
    if cost <= MAX { Ok(cost) } else { Err(Error::InvalidCost { found: cost.into() }) }
}

/// Checks that a policy may be set to `count`.
pub(crate) fn check_count(count: u64, max: u64) -> Result<(), Error> {
    if count <= max { Ok(()) } else { Err(Error::InvalidCount { found: count.into(), max }) }
}

/// Checks that `now` is in range.
#[inline]
pub(crate) fn check_time(now: u64) -> Result<u64, Error> {
    if now <= MAX { Ok(now) } else { Err(Error::InvalidTime { found: now.into() }) }
}

/// Converts a float into an integer from 0 to [`MAX`]; `None` if it is not one.
pub(crate) fn integer(number: f64) -> Option<u64> {
    let integer = number as u64;
    (integer as f64 == number && integer <= MAX).then_some(integer)
}

/// Appends a number in base 36.
pub(crate) fn push_base_36(text: &mut String, number: u64) {
    let start = text.len();
    let mut rest = number;
    while rest > 0 || text.len() == start {
        text.insert(start, char::from_digit((rest % 36) as u32, 36).unwrap_or('0'));
        rest /= 36;
    }
}

/// Parses a number in base 36; `None` if it has other characters or is above [`MAX`].
pub(crate) fn from_base_36(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let number = if text.bytes().all(is_digit) { u64::from_str_radix(text, 36).ok()? } else { return None };
    (number <= MAX).then_some(number)
}

/// Returns whether a number is valid as a count or a time: from 0 to [`MAX`].
pub(crate) fn in_range(number: i64) -> bool {
    number as u64 <= MAX
}

/// Returns `(a * b + plus) / by`, rounded down, for numbers below 2^54. A result above 2^62 may be cut down to 2^62.
pub(crate) fn ratio(a: u64, b: u64, plus: u64, by: u64) -> u64 {
    // Here the product is below 2^62. Arithmetic on 128 bits is long code in wasm, and seldom needed.
    if a.leading_zeros() + b.leading_zeros() >= 66 { (a * b + plus) / by } else { wide_ratio(a, b, plus, by) }
}

/// The same for any product, one bit of `a` at a time.
#[cold]
#[inline(never)]
fn wide_ratio(a: u64, b: u64, plus: u64, by: u64) -> u64 {
    let (mut quotient, mut rest) = (0, 0);
    for bit in (0..54).rev() {
        rest = 2 * rest + (a >> bit & 1) * b;
        quotient = 2 * quotient + rest / by;
        rest %= by;
        if quotient >> 62 > 0 {
            return 1 << 62;
        }
    }
    quotient + (rest + plus) / by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_language() {
        // Every combination of four of them; under Miri, which is slow, of the ends.
        let all = [0, 1, MAX, 7, (1 << 32) - 1, 1 << 32, MAX - 1];
        let numbers = if cfg!(miri) { &all[..3] } else { &all[..] };
        let pairs = numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (a, b)));
        for ((a, b), (plus, by)) in pairs.clone().flat_map(|first| pairs.clone().map(move |second| (first, second))) {
            for (a, plus, by) in [(a, plus, by.max(1)), (2 * a, 2 * plus, by.max(1))] {
                let expected = (u128::from(a) * u128::from(b) + u128::from(plus)) / u128::from(by);
                let found = u128::from(ratio(a, b, plus, by));
                assert!(found == expected || found.min(expected) >> 62 > 0, "({a} * {b} + {plus}) / {by}");
            }
        }
    }
}
