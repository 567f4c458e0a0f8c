//! The sizes of leases and credits.

/// The divisor of the remaining amount for the largest lease or credit, so that decisions near the limit are exact.
const SHARE: u64 = 8;

/// The duration of a credit, in milliseconds.
#[cfg(feature = "cloudflare")]
pub(crate) const CREDIT_TTL: u64 = 30_000;

/// The smallest lease and credit: a size of 1 would be a plain hit.
const SMALLEST: u64 = 2;

/// The least amount that must have been spent in the last ttl. Below it a lease or a credit costs more messages than it
/// saves: it is renewed before its end, and its rest is given back.
const LEAST_SPENT: u64 = 3;

/// Returns the size of a lease for a request of `wanted`, if `rest` of the old one is left. `remaining` includes `rest`.
pub(super) fn granted(wanted: u64, rest: u64, remaining: u64) -> u64 {
    let granted = wanted.min(remaining / SHARE);
    if granted < SMALLEST { rest } else { granted.max(rest) }
}

/// Returns the size of the lease to request: the amount spent in the last ttl, at most twice the last size; 0 for none.
pub(super) fn wanted(spent: u64, last: u64) -> u64 {
    if spent < LEAST_SPENT { 0 } else { spent.min((2 * last).max(LEAST_SPENT)) }
}

/// Returns the size of the next credit, by the algorithms of a lease.
#[cfg(feature = "cloudflare")]
pub(crate) fn next_credit(spent: u64, last: u64, remaining: u64) -> u64 {
    granted(wanted(spent, last), 0, remaining)
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
        assert_eq!(wanted(50, 0), 3);
        assert_eq!(wanted(50, 20), 40);
        assert_eq!(wanted(5, 20), 5);
        assert_eq!(wanted(2, 20), 0);
    }
}
