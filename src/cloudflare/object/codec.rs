//! The row of an object as bytes: a version, the alarm and the states, by postcard. Small numbers take one byte each.

use postcard::{take_from_bytes, to_allocvec};

use crate::Error;
use crate::cloudflare::object::states::{Kept, States};
use crate::store::record::StoredState;

/// The version of these bytes.
const VERSION: u64 = 5;

/// The content of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The time of the alarm.
    pub(crate) alarm: u64,
    pub(crate) states: States,
}

/// Returns the bytes of a row.
pub(crate) fn encode(alarm: u64, states: &States) -> Vec<u8> {
    let states: Vec<_> = states.0.iter().map(|Kept { stored, count, ends }| (stored, count, ends)).collect();
    // Numbers, strings and lists of known length always serialize.
    to_allocvec(&(VERSION, alarm, states)).unwrap_or_default()
}

/// Parses the bytes of a row. Any bytes are safe: corrupt ones are an error.
pub(crate) fn decode(bytes: &[u8]) -> Result<Stored, Error> {
    let unreadable = || Error::state("its bytes are not those of states");
    let (version, rest) = take_from_bytes::<u64>(bytes).map_err(|_| unreadable())?;
    if version != VERSION {
        return Err(Error::UnsupportedVersion { found: version, supported: VERSION });
    }
    let (alarm, rest) = take_from_bytes::<u64>(rest).map_err(|_| unreadable())?;
    let (states, rest) = take_from_bytes::<Vec<(StoredState, u64, u64)>>(rest).map_err(|_| unreadable())?;
    if !rest.is_empty() {
        return Err(unreadable());
    }
    let kept = |(stored, count, ends)| Kept { stored, count, ends };
    Ok(Stored { alarm, states: States(states.into_iter().map(kept).collect()) })
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
        states.0[0].stored.state = vec![i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65];
        (states.0[0].count, states.0[0].ends) = (u64::MAX, 0);
        states.0[1].stored.state.clear();
        states.0[1].stored.open = vec![[i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65, 1, 2]; 2];
        assert_eq!(decode(&encode(7, &states)).unwrap(), Stored { alarm: 7, states });
    }

    #[test]
    fn a_scale_of_the_calendar_is_read_as_it_was_written() {
        let month = Policy::calendar(9, crate::Calendar::Month).unwrap().utc_offset("-05:30").unwrap();
        let mut ledger = Ledger::new(month.clone()).unwrap();
        ledger.apply(Operation::Hit { cost: 3 }, 1_767_225_600_123).unwrap();
        let mut states = States::default();
        states.keep(&ledger, 1_767_225_600_123);
        assert_eq!(states.0[0].stored.scale, -29_670);
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
        assert!(decode(&[5, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_later_version_is_an_error_of_its_own() {
        let error = decode(&[6, 0, 0]).unwrap_err();
        assert_eq!(error.code(), "unsupported_version");
    }
}
