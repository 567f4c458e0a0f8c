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

/// The number of hits that make a lease worth its message. A key with fewer in the ttl gets a longer lease.
const HITS_OF_TURN: u64 = 32;

/// A lease to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) size: u64,
    /// Its duration in milliseconds.
    pub(super) lasts: u64,
}

/// Returns the lease to request, from the amount spent in the last `ttl`, the amounts of a longer time with that time, the
/// longest duration, and the last size: `None` for none. It lasts for as long as [`HITS_OF_TURN`] hits take; the first
/// ones of a key, which may be a burst, get the `ttl`.
pub(super) fn turn(recent: u64, ttl: u64, (slow, time): (u64, u64), longest: u64, last: u64) -> Option<Turn> {
    let (spent, lasts) = if recent >= HITS_OF_TURN || time <= ttl || slow < LEAST_SPENT {
        (recent, ttl)
    } else {
        let lasts = (HITS_OF_TURN * time / slow.max(1)).clamp(ttl, longest);
        let expected = u128::from(slow) * u128::from(lasts) / u128::from(time);
        (recent.max(expected as u64), lasts)
    };
    let size = wanted(spent, last);
    (size > 0).then_some(Turn { size, lasts })
}

/// Returns the size of a lease for a request of `wanted`, if `rest` of the old one is left. `remaining` includes `rest`.
pub(super) fn granted(wanted: u64, rest: u64, remaining: u64) -> u64 {
    let granted = wanted.min(remaining / SHARE);
    if granted < SMALLEST { rest } else { granted.max(rest) }
}

/// Returns the size of the lease to request: the amount spent in the last ttl, at most twice the last size; 0 for none.
fn wanted(spent: u64, last: u64) -> u64 {
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
    fn a_lease_lasts_for_as_long_as_its_hits_take() {
        let turn = |recent, slow, time| turn(recent, 1_000, (slow, time), 8_000, 1_000);
        let of = |size, lasts| Some(Turn { size, lasts });
        assert_eq!([turn(0, 0, 8_000), turn(1, 2, 8_000), turn(2, 2, 1_000)], [None; 3]);
        assert_eq!([turn(0, 3, 8_000), turn(3, 24, 8_000)], [of(3, 8_000), of(24, 8_000)]);
        assert_eq!([turn(8, 64, 8_000), turn(16, 32, 2_000)], [of(32, 4_000), of(32, 2_000)]);
        assert_eq!(
            [turn(31, 31, 1_000), turn(32, 32, 8_000), turn(32, 800, 8_000)],
            [of(31, 1_000), of(32, 1_000), of(32, 1_000)]
        );
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
