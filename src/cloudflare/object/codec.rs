//! What an object stores, as bytes: a version, the alarm and the key's rows, by postcard. Small numbers take one byte each.

use postcard::{take_from_bytes, to_allocvec};

use crate::Error;
use crate::cloudflare::object::states::{Kept, States};
use crate::key::open_reservations::OPEN_ROW;
use crate::policy::schema::RESERVATION_HEAD;
use crate::store::record::StoredRow;

/// The version of these bytes.
const VERSION: u64 = 6;

/// The content of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The time of the alarm.
    pub(crate) alarm: u64,
    pub(crate) states: States,
}

/// Returns the bytes of a row.
pub(crate) fn encode(alarm: u64, states: &States) -> Vec<u8> {
    let mut heads = Vec::new();
    let rows: Vec<_> =
        states.0.iter().map(|Kept { stored, count }| (&stored.0, packed(&stored.1, &mut heads), count)).collect();
    // Numbers, strings and lists of known length always serialize.
    to_allocvec(&(VERSION, alarm, heads, rows)).unwrap_or_default()
}

/// Parses the bytes of a row. Any bytes are safe: corrupt ones are an error.
pub(crate) fn decode(bytes: &[u8]) -> Result<Stored, Error> {
    let unreadable = || Error::state("its bytes are not those of states");
    let (version, rest) = take_from_bytes::<u64>(bytes).map_err(|_| unreadable())?;
    if version != VERSION {
        return Err(Error::UnsupportedVersion { found: version, supported: VERSION });
    }
    let (alarm, rest) = take_from_bytes::<u64>(rest).map_err(|_| unreadable())?;
    let (heads, rest) = take_from_bytes::<Vec<i64>>(rest).map_err(|_| unreadable())?;
    let (rows, rest) = take_from_bytes::<Vec<(String, Vec<i64>, u64)>>(rest).map_err(|_| unreadable())?;
    if !rest.is_empty() {
        return Err(unreadable());
    }
    let kept = |(name, numbers, count)| {
        let numbers: Vec<i64> = numbers;
        Some(Kept { stored: StoredRow(name, unpacked(&numbers, &heads)?), count })
    };
    let rows: Option<Vec<Kept>> = rows.into_iter().map(kept).collect();
    Ok(Stored { alarm, states: States(rows.ok_or_else(unreadable)?) })
}

/// The count of numbers of a row before those of its state.
const HEAD: usize = 4;

/// Splits the numbers of a row into those of its head and state, and the parts of reservations.
fn split(numbers: &[i64]) -> Option<(&[i64], &[i64])> {
    let count = usize::try_from(*numbers.get(HEAD - 1)?).ok()?;
    numbers.split_at_checked(HEAD.checked_add(count)?)
}

/// Returns the numbers of a row with parts of reservations that refer to their heads, which all rows of a reservation share: how
/// many heads come between this one and that of the part before, then the amount, the capacity and the rate, each as the
/// difference to that part's.
fn packed(numbers: &[i64], heads: &mut Vec<i64>) -> Vec<i64> {
    let Some((own, parts)) = split(numbers) else { return numbers.to_vec() };
    let (parts, []) = parts.as_chunks::<OPEN_ROW>() else { return numbers.to_vec() };
    let mut packed = own.to_vec();
    packed.reserve(parts.len() * (OPEN_ROW - RESERVATION_HEAD + 1));
    let (mut next, mut before) = (0, [0; OPEN_ROW]);
    for part in parts {
        let head = &part[..RESERVATION_HEAD];
        let known = heads.as_chunks::<RESERVATION_HEAD>().0;
        // Rows have their parts in one order.
        let at = known.iter().skip(next).position(|known| known == head).map(|skipped| next + skipped);
        let at = at.unwrap_or_else(|| {
            heads.extend_from_slice(head);
            known_len(heads) - 1
        });
        packed.push(at as i64 - next as i64);
        packed.extend((RESERVATION_HEAD..OPEN_ROW).map(|field| part[field].wrapping_sub(before[field])));
        (next, before) = (at + 1, *part);
    }
    packed
}

fn known_len(heads: &[i64]) -> usize {
    heads.len() / RESERVATION_HEAD
}

/// Returns the numbers of a row that were packed; `None` if they are invalid.
fn unpacked(numbers: &[i64], heads: &[i64]) -> Option<Vec<i64>> {
    let Some((own, parts)) = split(numbers) else { return Some(numbers.to_vec()) };
    let (heads, []) = heads.as_chunks::<RESERVATION_HEAD>() else { return None };
    let (parts, []) = parts.as_chunks::<{ OPEN_ROW - RESERVATION_HEAD + 1 }>() else { return None };
    let mut all = own.to_vec();
    let (mut next, mut before) = (0_usize, [0_i64; OPEN_ROW - RESERVATION_HEAD]);
    for [skipped, fields @ ..] in parts {
        let at = next.checked_add(usize::try_from(*skipped).ok()?)?;
        all.extend_from_slice(heads.get(at)?);
        for (before, field) in before.iter_mut().zip(fields) {
            *before = before.wrapping_add(*field);
        }
        all.extend_from_slice(&before);
        next = at + 1;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ledger, Operation, Policies, Policy};

    fn states() -> States {
        let policies = [Policy::token_bucket(5, 1, "1s").unwrap(), Policy::sliding_window(9, "1d").unwrap()];
        let mut ledger = Ledger::new(Policies::new(policies).unwrap()).unwrap();
        ledger.apply(Operation::Hit { cost: 3 }, 1_767_225_600_123).unwrap();
        let mut states = States::default();
        states.keep(&ledger, 1_767_225_600_123);
        states
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let mut states = states();
        assert_eq!(states.0.len(), 2);
        states.0[0].stored.1 = vec![i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65];
        let parts = [
            [i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65, 1, 2],
            [5; 10],
            [i64::MAX, 0, 1, 2, 3, 4, 5, i64::MIN, 0, 9],
        ];
        let row = |parts: &[[i64; 10]]| [&[0, 7, 9, 2, 1, 1][..], parts.as_flattened()].concat();
        for some in [&parts[..], &parts[1..], &[parts[2], parts[0]], &[parts[1], parts[1]]] {
            states.0.push(Kept { stored: StoredRow("a".into(), row(some)), count: 3 });
        }
        states.0[0].count = u64::MAX;
        states.0[1].stored.1.clear();
        assert_eq!(decode(&encode(7, &states)).unwrap(), Stored { alarm: 7, states });
    }

    #[test]
    fn a_scale_of_the_calendar_is_read_as_it_was_written() {
        let month = Policy::calendar(9, crate::Calendar::Month).unwrap().utc_offset("-05:30").unwrap();
        let mut ledger = Ledger::new(month.clone()).unwrap();
        ledger.apply(Operation::Hit { cost: 3 }, 1_767_225_600_123).unwrap();
        let mut states = States::default();
        states.keep(&ledger, 1_767_225_600_123);
        assert_eq!(states.0[0].stored.1[1], -29_670);
        let read = decode(&encode(7, &states)).unwrap().states;
        let mut again = Ledger::new(month).unwrap();
        read.load(&mut again, 1_767_225_600_123).unwrap();
        assert_eq!(again.record(1_767_225_600_123), ledger.record(1_767_225_600_123));
    }

    #[test]
    fn anything_else_is_an_error_and_no_panic() {
        let bytes = encode(7, &states());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err());
        }
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let _ = decode(&wrong);
            }
        }
        assert!(decode(&[6, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_later_version_is_an_error_of_its_own() {
        let error = decode(&[7, 0, 0]).unwrap_err();
        assert_eq!(error.code(), "unsupported_version");
    }
}
