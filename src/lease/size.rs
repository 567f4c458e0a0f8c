//! How large leases and credits are.

/// A lease or a credit takes at most this part of what remains, so that near the limit everything is exact.
const SHARE: u64 = 8;

/// How long a credit lasts, in milliseconds.
#[cfg(feature = "cloudflare")]
pub(crate) const CREDIT_TTL: u64 = 30_000;

/// The smallest lease and credit: one of 1 is a plain hit.
const SMALLEST: u64 = 2;

/// The least that must have been spent in the last ttl before a lease pays: it is renewed before its end, and a rest of it
/// is given back.
const LEAST_SPENT: u64 = 4;

/// Returns how large a lease is for which `wanted` is asked, of which `rest` is left. `remaining` includes the rest.
pub(super) fn granted(wanted: u64, rest: u64, remaining: u64) -> u64 {
    let granted = wanted.min(remaining / SHARE);
    if granted < SMALLEST { rest } else { granted.max(rest) }
}

/// Returns how large a lease to ask for: what was spent in the last ttl, at most twice the last size; 0 for none.
pub(super) fn wanted(spent: u64, last: u64) -> u64 {
    if spent < LEAST_SPENT { 0 } else { spent.min((2 * last).max(LEAST_SPENT)) }
}

/// Returns the size of the next credit: twice the last one if that was spent in its time, else what was spent of it.
#[cfg(feature = "cloudflare")]
pub(crate) fn next_credit(last: u64, spent: u64, ended: bool, remaining: u64) -> u64 {
    let wanted = if ended { spent } else { 2 * last.max(1) };
    let granted = wanted.min(remaining / SHARE);
    if granted < SMALLEST { 0 } else { granted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_an_eighth_of_what_remains_at_the_most() {
        assert_eq!(granted(100, 0, 10_000), 100);
        assert_eq!(granted(100, 0, 400), 50);
        assert_eq!(granted(100, 7, 15), 7);
        assert_eq!(granted(1, 0, 10_000), 0);
        assert_eq!(granted(100, 0, 15), 0);
        assert_eq!(granted(0, 3, 10_000), 3);
    }

    #[test]
    fn sizes_double_at_the_most() {
        assert_eq!(wanted(0, 0), 0);
        assert_eq!(wanted(50, 0), 4);
        assert_eq!(wanted(50, 20), 40);
        assert_eq!(wanted(5, 20), 5);
        assert_eq!(wanted(3, 20), 0);
    }

    #[cfg(feature = "cloudflare")]
    #[test]
    fn a_credit_grows_while_it_is_spent_and_shrinks_to_what_was() {
        assert_eq!(next_credit(0, 0, false, 1_000), 2);
        assert_eq!(next_credit(64, 64, false, 1_000), 125);
        assert_eq!(next_credit(64, 3, true, 1_000), 3);
        assert_eq!(next_credit(64, 1, true, 1_000), 0);
        assert_eq!(next_credit(64, 64, false, 15), 0);
    }
}
