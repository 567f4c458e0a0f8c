//! Windows of the calendar, held against a calendar that counts day by day.

use std::sync::LazyLock;

use proptest::prelude::*;
use tollgate::{Calendar, Denied, Policy};

use crate::support::*;

/// The days after which the calendar repeats itself, weekdays included: those of 400 years.
const CYCLE: i64 = 146_097;

/// A day of the calendar, as it was counted.
#[derive(Clone, Copy)]
struct Counted {
    /// How many days its month has, and how many of them came before it.
    month: (i64, i64),
    /// How many days came before it since Monday.
    weekday: i64,
}

/// Each day from 1 January 1970 on, counted one by one.
static DAYS: LazyLock<Vec<Counted>> = LazyLock::new(|| {
    let (mut days, mut year, mut month, mut day, mut weekday) = (Vec::new(), 1970, 1, 0, 3);
    while year < 2400 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        days.push(Counted { month: (length, day), weekday });
        weekday = (weekday + 1) % 7;
        day += 1;
        if day == length {
            (day, month) = (0, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    days
});

/// The start and end of the window around a time, at an offset in minutes. None begins before time does.
pub(crate) fn naive_window(unit: Calendar, offset: i64, now: u64) -> (u64, u64) {
    let (ahead, day) = (offset * 60_000, DAY as i64);
    let today = (now as i64 + ahead).div_euclid(day);
    let in_cycle = || &DAYS[today.rem_euclid(CYCLE) as usize];
    let counted = usize::try_from(today).ok().and_then(|today| DAYS.get(today)).unwrap_or_else(in_cycle);
    let (before, length) = match unit {
        Calendar::Day => (0, 1),
        Calendar::Week => (counted.weekday, 7),
        _ => (counted.month.1, counted.month.0),
    };
    let first = today - before;
    ((first * day - ahead).max(0) as u64, ((first + length) * day - ahead) as u64)
}

fn spec(unit: Calendar, offset: i64, limit: u64) -> Spec {
    Spec { kind: CalendarWindow, limit, scale: calendar_scale(unit, offset), rate: 1, denied: Denied::Free }
}

fn units() -> impl Strategy<Value = Calendar> + Clone {
    prop::sample::select(&[Calendar::Day, Calendar::Week, Calendar::Month][..])
}

/// From 1970 to 2400.
fn times() -> impl Strategy<Value = u64> + Clone {
    0..13_569_465_600_000_u64
}

#[test]
fn the_counted_calendar_knows_some_days() {
    assert_eq!(DAYS.len(), 157_054);
    let again = DAYS[CYCLE as usize];
    assert_eq!((again.month, again.weekday), (DAYS[0].month, DAYS[0].weekday));
    // 29 February 2000 was a Tuesday, 1 January 2026 a Thursday.
    assert_eq!((DAYS[11_016].month, DAYS[11_016].weekday), ((29, 28), 1));
    assert_eq!((DAYS[20_454].month, DAYS[20_454].weekday), ((31, 0), 3));
}

#[test]
fn a_window_admits_its_limit_from_its_first_millisecond_to_its_last() {
    check_cases(2_000, (units(), -840..=840_i64, times()), |(unit, offset, now)| {
        let (start, end) = naive_window(unit, offset, now);
        let mut ledger = spec(unit, offset, 2).ledger();
        let first = hit(&mut ledger, 1, start);
        prop_assert_eq!((first.allowed, first.reset_after), (true, end - start));
        prop_assert!(hit(&mut ledger, 1, end - 1).allowed);
        let denied = hit(&mut ledger, 1, now);
        prop_assert_eq!((denied.allowed, denied.retry_after), (false, Some(end - now)));
        prop_assert_eq!(ledger.expires_at(now).unwrap(), end);
        prop_assert_eq!(hit(&mut ledger, 1, end - 1).retry_after, Some(1));
        prop_assert_eq!(hit(&mut ledger, 2, end).remaining, 0);
        Ok(())
    });
}

/// Every month of 430 years, and the weeks and days around its edges.
#[test]
fn months_weeks_and_days_end_where_the_counted_calendar_says() {
    for (unit, step) in [(Calendar::Month, 11), (Calendar::Week, 5), (Calendar::Day, 1)] {
        for offset in [-840, -300, -1, 0, 1, 330, 840] {
            let ledger = spec(unit, offset, 1).ledger();
            for day in (0..DAYS.len() as u64).step_by(step) {
                let now = day * DAY + 40_000_000;
                let decision = hit(&mut ledger.clone(), 1, now);
                assert_eq!(now + decision.reset_after, naive_window(unit, offset, now).1, "{unit:?} {offset} {now}");
            }
        }
    }
}

#[test]
fn a_policy_is_read_as_it_was_written() {
    check((units(), -840..=840_i64), |(unit, offset)| {
        let policy = spec(unit, offset, 7).policy();
        let json = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(json.contains("utcOffset"), offset != 0, "{}", json);
        prop_assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy.clone());
        prop_assert_eq!(Policy::from_json(&json.replace("utcOffset", "utc_offset")).unwrap(), policy);
        Ok(())
    });
}
