//! A policy whose algorithm, `scale` or `per` changes back and forth, as in a gradual deploy or a rollback: each shape is as if
//! the others had never been.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{
    Answer, Clock, Costs, Denied, Limiter, ManualClock, Operation, Policies, Policy, Record, ReservationId, Snapshot,
    step,
};

use crate::support::*;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// A record, through JSON at every step.
#[derive(Clone, Default)]
pub(crate) struct Stored(Option<String>);

impl Stored {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn operate(&mut self, spec: &Spec, operation: Operation<'static>, now: u64) -> Answer {
        self.operate_under(spec.policy(), operation, now)
    }

    fn operate_under(&mut self, policy: Policy, operation: Operation<'static>, now: u64) -> Answer {
        let record: Option<Record> = self.0.as_deref().map(|json| serde_json::from_str(json).unwrap());
        let step = step(&Policies::from(policy), record.as_ref(), operation, now).unwrap();
        assert_eq!(step.expires_at > now, step.record.is_some());
        if step.changed {
            self.0 = step.record.map(|record| serde_json::to_string(&record).unwrap());
        }
        step.answer
    }

    pub(crate) fn hit(&mut self, spec: &Spec, cost: u64, now: u64) -> bool {
        decision(self.operate(spec, Operation::Hit { cost }, now)).allowed
    }
}

/// A limiter in memory, through a snapshot in JSON whenever its policy changes. Cleaned before each operation.
struct Restored<'a> {
    clock: &'a ManualClock,
    policy: Policy,
    limiter: Limiter<u8, &'a ManualClock>,
}

impl<'a> Restored<'a> {
    fn new(policy: Policy, clock: &'a ManualClock) -> Self {
        Self { clock, limiter: Limiter::new(policy.clone(), clock).unwrap(), policy }
    }

    fn hit(&mut self, policy: Policy, cost: u64) -> tollgate::Decision {
        self.limiter.clean().unwrap();
        if policy != self.policy {
            let json = serde_json::to_string(&self.limiter.snapshot().unwrap()).unwrap();
            let snapshot: Snapshot<u8> = serde_json::from_str(&json).unwrap();
            let mut next = Self::new(policy, self.clock);
            next.limiter.restore(&snapshot).unwrap();
            *self = next;
        }
        self.limiter.hit(&1, cost).unwrap()
    }
}

/// Policies under one name, no two of one shape.
fn versions() -> impl Strategy<Value = Vec<Policy>> {
    let any = prop::sample::select(&COUNTING_KINDS[..]).prop_flat_map(specs);
    prop::collection::vec(any, 2..5).prop_map(|specs| {
        let mut policies: Vec<Policy> = Vec::new();
        for spec in specs {
            let policy = Spec { denied: Denied::Free, ..spec }.policy().named("api").unwrap();
            let json = |policy: &Policy| {
                let json: serde_json::Value = serde_json::to_value(policy).unwrap();
                [&json["algorithm"], &json["scale"], &json["per"], &json["utcOffset"]].map(|field| field.to_string())
            };
            if !policies.iter().any(|known| json(known) == json(&policy)) {
                policies.push(policy);
            }
        }
        policies
    })
}

/// Which version comes next, after how many thousandths of the longest period, and what it does.
type Turn = (usize, u64, usize, usize);

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let thousandths = prop_oneof![2 => Just(0), 4 => 1..=60_u64, 2 => 61..=500_u64, 1 => 501..=1_500_u64];
    prop::collection::vec((0..4_usize, thousandths, 0..7_usize, 0..4_usize), 1..80)
}

/// Each version equals one that is alone on its key; reservations act where they were opened, whoever closes them.
#[test]
fn each_shape_is_as_if_the_others_had_never_been() {
    check((versions(), starts(), turns()), |(versions, start, turns)| {
        let longest = versions.iter().map(Policy::period).max().unwrap().min(40 * DAY);
        let (mut now, mut shared, mut alone) = (start, Stored::default(), vec![Stored::default(); versions.len()]);
        let mut opened: Vec<(usize, ReservationId)> = Vec::new();
        for (turn, (version, thousandths, kind, which)) in turns.into_iter().enumerate() {
            now += (longest * thousandths).div_ceil(1_000);
            let version = version % versions.len();
            let cost = [0, 1, versions[version].limit() / 3, versions[version].limit()][which];
            let reservation = opened.get(which).copied();
            let (operation, own) = match (kind, reservation) {
                (0..=2, _) => (Operation::Hit { cost }, version),
                (3, _) => (Operation::Inc { policy: None, cost: cost as i64 }, version),
                (4, _) | (_, None) => {
                    let ttl = (1 + longest * thousandths / 700).min(DAY);
                    (Operation::Reserve { costs: Costs::All(cost), ttl: Some(ttl), random: turn as u128 }, version)
                }
                (5, Some((own, id))) => (Operation::Settle { id, used: Some(Costs::All(cost)) }, own),
                (_, Some((own, id))) => (Operation::Extend { id, ttl: 1_000 + thousandths }, own),
            };
            let found = shared.operate_under(versions[version].clone(), operation, now);
            let expected = alone[own].operate_under(versions[own].clone(), operation, now);
            prop_assert_eq!(found, expected, "{:?} at {} by {:?}", operation, now, &versions[version]);
            if let Answer::Reserved { id: Some(id), .. } = found {
                opened.insert(0, (version, id));
            }
        }
        Ok(())
    });
}

#[test]
fn a_limiter_finds_its_shape_in_the_snapshots_of_others() {
    check((versions(), starts(), turns()), |(versions, start, turns)| -> TestCaseResult {
        let longest = versions.iter().map(Policy::period).max().unwrap().min(40 * DAY);
        let clock = ManualClock::new(start);
        let mut limiter = Restored::new(versions[0].clone(), &clock);
        let mut alone = vec![Stored::default(); versions.len()];
        for (version, thousandths, _, which) in turns {
            clock.advance((longest * thousandths).div_ceil(1_000));
            let policy = versions[version % versions.len()].clone();
            let cost = [0, 1, policy.limit() / 3, policy.limit()][which];
            let operation = Operation::Hit { cost };
            let expected = alone[version % versions.len()].operate_under(policy.clone(), operation, clock.now());
            prop_assert_eq!(limiter.hit(policy, cost), decision(expected), "at {}", clock.now());
        }
        Ok(())
    });
}

fn spec(kind: Kind, scale: u64) -> Spec {
    Spec { kind, limit: 5, scale, rate: 5, denied: Denied::Free }
}

#[test]
fn alternating_an_hour_and_a_minute_admits_five_of_each() {
    for kind in COUNTING_KINDS.into_iter().filter(|&kind| kind != CalendarWindow) {
        let mut key = Stored::default();
        let mut admitted = [0; 2];
        for round in 0..20 {
            for _ in 0..10 {
                admitted[round % 2] += u64::from(key.hit(&spec(kind, [HOUR, MINUTE][round % 2]), 1, HOUR));
            }
        }
        assert_eq!(admitted, [5, 5], "{kind:?}");
    }
}

#[test]
fn a_reset_clears_every_shape_of_its_names_and_set_only_its_own() {
    for kind in [FixWindow, FixWindowPerKey, SlidingWindow, SlidingCounter, LeakyBucket] {
        for (operation, is_admitted) in [(Operation::Set { policy: None, count: 0 }, false), (Operation::Reset, true)] {
            let mut key = Stored::default();
            assert!(key.hit(&spec(kind, DAY), 5, 0));
            key.operate(&spec(kind, MINUTE), operation, 1);
            assert_eq!(key.hit(&spec(kind, DAY), 5, 1), is_admitted, "{kind:?} {operation:?}");
        }
    }
}

/// As many policies as a key keeps rows, one named by each call, in any order: each admits its own limit and no more.
#[test]
fn each_of_many_policies_on_one_key_holds() {
    for policies in [10, 24, 40, tollgate::MAX_ROWS as u64] {
        let mut key = Stored::default();
        let mut admitted = vec![0; policies as usize];
        for call in 0..7 * policies {
            let policy = call * 7 % policies;
            admitted[policy as usize] +=
                u64::from(key.hit(&spec(FixWindowPerKey, (policy + 1) * MINUTE), 1, call / policies));
        }
        assert_eq!(admitted, vec![5; policies as usize]);
    }
}

/// One row more than a key keeps is an error that changes nothing, until a row ends or is reset.
#[test]
fn a_row_too_many_is_an_error() {
    let policies_of = |minutes: u64| Policies::from(spec(FixWindowPerKey, minutes * MINUTE).policy());
    let most = tollgate::MAX_ROWS as u64;
    let mut record = None;
    for minutes in 1..=most {
        record = step(&policies_of(minutes), record.as_ref(), Operation::Hit { cost: 5 }, 0).unwrap().record;
    }
    let another = policies_of(most + 1);
    for operation in [
        Operation::Hit { cost: 1 },
        Operation::Inc { policy: None, cost: 1 },
        Operation::Set { policy: None, count: 1 },
        Operation::Reserve { costs: 1.into(), ttl: None, random: 7 },
    ] {
        let error = step(&another, record.as_ref(), operation, MINUTE - 1).unwrap_err();
        assert_eq!(error.code(), "full");
        assert!(error.to_string().contains("256 policies"), "{error}");
    }
    // Reading needs no row, and the rows of the others still admit no more.
    let peeked = step(&another, record.as_ref(), Operation::Peek { cost: 1 }, 0).unwrap();
    assert_eq!(peeked.record, record);
    let Answer::Decision(denied) =
        step(&policies_of(most), record.as_ref(), Operation::Hit { cost: 1 }, 0).unwrap().answer
    else {
        unreachable!()
    };
    assert!(!denied.allowed);
    let hit = |record: Option<&Record>, now| step(&another, record, Operation::Hit { cost: 1 }, now);
    assert!(hit(record.as_ref(), MINUTE).is_ok());
    let reset = step(&policies_of(1), record.as_ref(), Operation::Reset, 0).unwrap().record;
    // All rows here have one name.
    assert_eq!(reset, None);
    assert!(hit(reset.as_ref(), 0).is_ok());
}
