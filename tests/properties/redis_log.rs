//! A log is replayed to the same results by everyone, wherever its base is and whatever policies are their own.

use proptest::prelude::*;
use tollgate::redis_log::{NUMBERS_PER_RESULT, Replicas, reading};
use tollgate::{Answer, Denied, Operation, Policies};

use crate::support::*;

fn replicas(spec: &Spec) -> Replicas {
    Replicas::new(Policies::from(spec.policy())).unwrap()
}

/// A time as the script writes it.
fn stamp(time: u64) -> String {
    (0..7).rev().map(|digit| char::from(b'0' + (time >> (6 * digit) & 63) as u8)).collect()
}

/// The beginning of a value whose entries are under the policies of a limiter.
fn head(start: u64, own: &Replicas) -> String {
    format!("a{}{}|", stamp(start), own.policies_text())
}

/// Something that an entry does.
#[derive(Clone, Debug)]
enum Deed {
    Act(Act),
    Reset(bool),
    /// Reserves a weight for so many thousandths of a period.
    Reserve(u64, u64),
    /// Settles, with this weight or all of it, or extends one of the reservations before.
    Settle(prop::sample::Index, Option<u64>),
    Extend(prop::sample::Index, u64),
    /// Sets an exception for so many thousandths of a period: allows, denies, or has these numbers. Without any, lifts it.
    Except(u64, Option<Result<bool, (u64, u64)>>),
    /// Hits, and renews one of the leases or reservations before, or takes a new one.
    Lease(Option<prop::sample::Index>, Renewed),
}

/// What a renewal says, in weights: what was used, the cost of the hit, and the size. Then the ttl in milliseconds.
type Renewed = (u64, u64, u64, u64);

/// The entry before which a reservation was made, its end and its random bits.
type Made = (u64, u128);

/// The operations of an entry as text.
fn text_of(deed: &Deed, spec: &Spec, now: u64, made: &mut Vec<Made>) -> String {
    let ttl = |thousandths: u64| (spec.period() * thousandths / 1_000).clamp(1, 86_400_000);
    let chosen = |index: &prop::sample::Index, made: &[Made]| match made {
        [] => (0, 7),
        made => made[index.index(made.len())],
    };
    match deed {
        Deed::Act(act) => match act.operation(spec) {
            Operation::Hit { cost } => format!("h{cost}"),
            Operation::Inc { cost, .. } => format!("i{cost}:0"),
            Operation::Set { count, .. } => format!("s{count}:0"),
            other => panic!("{other:?}"),
        },
        Deed::Reset(reservations) => format!("r{}", u8::from(*reservations)),
        Deed::Except(_, None) => "e0:".into(),
        Deed::Except(thousandths, Some(given)) => {
            let fields = match given {
                Ok(true) => "+".into(),
                Ok(false) => "-".into(),
                Err((limit, rate)) => format!("0.2.{limit}.3.{limit}.4.{rate}.5.{rate}"),
            };
            let length = ttl(*thousandths);
            // The end is a time, or follows from the entry's.
            match thousandths % 2 {
                0 => format!("e+{length}:{fields}"),
                _ => format!("e{}:{fields}", now + length),
            }
        }
        Deed::Reserve(weight, thousandths) => {
            let (ttl, random) = (ttl(*thousandths), made.len() as u128 + (1 << 90));
            made.push((now + ttl, random));
            format!("v{}:{ttl}:{random:032x}", fit(*weight, spec.limit))
        }
        Deed::Settle(index, used) => {
            let (end, random) = chosen(index, made);
            let used = used.map_or("_".into(), |weight| fit(weight, spec.limit).to_string());
            format!("t{random:032x}.{}.a:{used}", base_36(end))
        }
        Deed::Extend(index, thousandths) => {
            let (end, random) = chosen(index, made);
            format!("x{random:032x}.{}.a:{}", base_36(end), ttl(*thousandths))
        }
        Deed::Lease(index, (used, cost, size, ttl)) => {
            let [used, cost, size] = [used, cost, size].map(|weight| fit(*weight, spec.limit));
            let id = index.as_ref().map_or(String::new(), |index| {
                let (end, random) = chosen(index, made);
                format!("{random:032x}.{}.a", base_36(end))
            });
            let random = made.len() as u128 + (1 << 80);
            made.push((now + ttl, random));
            format!("l{cost}:{id},{used},{size},{ttl}:{random:024x}")
        }
    }
}

fn tag(number: u64) -> String {
    format!("proce{:0>4}", base_36(number))
}

fn mark(number: u64) -> String {
    format!("!{}", tag(number))
}

fn base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap());
        number /= 36;
    }
    digits.iter().rev().collect()
}

/// Entries as the script would write them: each with its mark, and with its policies where they are not those of the first
/// writer.
fn log(specs: &[Spec], start: u64, history: &[(Move, usize, Deed)]) -> Vec<(String, String)> {
    let writers: Vec<Replicas> = specs.iter().map(replicas).collect();
    let mut now = start;
    let (mut entries, mut made) = (Vec::new(), Vec::new());
    for (number, (step, writer, deed)) in history.iter().enumerate() {
        let writer = writer % specs.len();
        now = step.from(now, specs[writer].period());
        let text = match writer {
            0 => String::new(),
            _ => format!("@{};", writers[writer].policies_text()),
        };
        let text = format!("{}{text}{}", stamp(now), text_of(deed, &specs[writer], now, &mut made));
        entries.push((text, mark(number as u64 + 1)));
    }
    entries
}

fn joined(entries: &[(String, String)]) -> String {
    entries.iter().map(|(entry, mark)| format!("{entry}{mark}")).collect()
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => acts().prop_map(Deed::Act),
        1 => any::<bool>().prop_map(Deed::Reset),
        4 => (weights(), 1..2_500_u64).prop_map(|(weight, ttl)| Deed::Reserve(weight, ttl)),
        3 => (any::<prop::sample::Index>(), prop::option::of(weights())).prop_map(|(at, used)| Deed::Settle(at, used)),
        1 => (any::<prop::sample::Index>(), 1..2_500_u64).prop_map(|(at, ttl)| Deed::Extend(at, ttl)),
        2 => (1..2_500_u64, prop::option::weighted(0.8, given())).prop_map(|(length, given)| Deed::Except(length, given)),
        6 => (prop::option::of(any::<prop::sample::Index>()), renewals()).prop_map(|(at, all)| Deed::Lease(at, all)),
    ]
}

fn given() -> impl Strategy<Value = Result<bool, (u64, u64)>> {
    // A few are rejected: a log has at most 1,000 hits.
    prop_oneof![1 => any::<bool>().prop_map(Ok), 3 => (1..1_050_u64, 1..50_u64).prop_map(Err)]
}

/// Of these, a few are rejected: a lease lasts at most ten seconds.
fn renewals() -> impl Strategy<Value = Renewed> {
    (weights(), weights(), weights(), 1..10_500_u64)
}

fn histories() -> impl Strategy<Value = Vec<(Move, usize, Deed)>> {
    prop::collection::vec((anywhere(), prop_oneof![3 => Just(0_usize), 1 => 0..3_usize], deeds()), 1..30)
}

fn every_reader_comes_to_the_same_results(kind: Kind) {
    let few = prop::collection::vec(specs(kind), 1..4);
    check((few, starts(), histories(), any::<prop::sample::Index>()), |(specs, start, history, cut)| {
        let entries = log(&specs, start, &history);
        let mut first = replicas(&specs[0]);
        let slot = first.take().unwrap();
        let head = head(start, &first);
        first.load(slot, &head, b"").unwrap();
        let mut results = Vec::new();
        let mut bases = Vec::new();
        let cut = cut.index(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            let text = joined(core::slice::from_ref(entry));
            first.clear();
            prop_assert!(first.replay(slot, &text, tag(number as u64 + 1).as_bytes()).unwrap().own);
            results.push((first.results().to_vec(), first.text(0).map(String::from)));
            if number == cut {
                // Where the policies switch, entries that name none would be under others.
                bases.push((format!("{}{}{}", &head[..8], first.base(slot, false), entry.1), false));
                if cut + 1 == entries.len() {
                    bases.push((format!("{}{}{}", &head[..8], first.base(slot, true), entry.1), true));
                }
            }
        }
        let mut values = vec![(format!("{head}{}", joined(&entries)), 0, false)];
        for (base, switches) in bases {
            values.push((base + &joined(&entries[cut + 1..]), cut + 1, switches));
        }
        for (own, (value, from, switches)) in specs.iter().flat_map(|own| values.iter().map(move |value| (own, value)))
        {
            let mut other = replicas(own);
            let slot = other.take().unwrap();
            for (number, expected) in results.iter().enumerate().skip(*from) {
                other.clear();
                prop_assert!(other.load(slot, value, tag(number as u64 + 1).as_bytes()).unwrap().own);
                let (numbers, lease) = expected;
                prop_assert_eq!(other.results(), &numbers[..], "entry {} of {}", number, value);
                prop_assert_eq!(other.text(0), lease.as_deref(), "entry {} of {}", number, value);
            }
            other.load(slot, value, b"").unwrap();
            prop_assert_eq!(other.base(slot, *switches), first.base(0, *switches));
        }
        Ok(())
    });
}

fn results_are_those_of_a_ledger(kind: Kind) {
    let histories = prop::collection::vec((anywhere(), Just(0_usize), acts().prop_map(Deed::Act)), 1..30);
    check((specs(kind), starts(), histories), |(spec, start, history)| {
        let entries = log(std::slice::from_ref(&spec), start, &history);
        let mut replicas = replicas(&spec);
        let slot = replicas.take().unwrap();
        let (mut ledger, mut now) = (spec.ledger(), start);
        for (number, ((step, _, deed), entry)) in history.iter().zip(&entries).enumerate() {
            now = step.from(now, spec.period());
            let Deed::Act(act) = deed else { continue };
            let operation = act.operation(&spec);
            replicas.clear();
            replicas.replay(slot, &joined(core::slice::from_ref(entry)), tag(number as u64 + 1).as_bytes()).unwrap();
            prop_assert_eq!(replicas.results().len(), NUMBERS_PER_RESULT);
            let number = replicas.results()[1] as u64;
            match ledger.apply(operation, now).unwrap().0 {
                Answer::Decision(decision) => {
                    prop_assert_eq!(replicas.results()[0] == 1.0, decision.allowed);
                    prop_assert_eq!(number, decision.count);
                }
                Answer::Number(count) => prop_assert_eq!(number, count),
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert_eq!(replicas.ends_at(slot, now), ledger.expires_at(now).unwrap());
        }
        Ok(())
    });
}

#[test]
fn a_lease_is_in_the_base_and_is_renewed_from_it() {
    let spec = Spec { kind: FixWindow, limit: 1_000, scale: 60_000, rate: 1, denied: Denied::Free };
    let (mut writer, mut reader) = (replicas(&spec), replicas(&spec));
    let (slot, other) = (writer.take().unwrap(), reader.take().unwrap());
    let (random, now) = ("00000000000000000000002a", 1_800_000_000_000_u64);
    let entry = |number: u64, at: u64, text: &str| format!("{}{text}{}", stamp(at), mark(number));
    let taken = entry(1, now, &format!("l1:,0,100,1000:{random}"));
    assert!(writer.replay(slot, &taken, tag(1).as_bytes()).unwrap().own);
    let end = base_36(now + 1_000);
    let id = format!("{:032x}.{end}.a", 0x2a);
    assert_eq!(writer.text(0), Some(&format!("1 1 1000 999 0 60000 0 0 60000 {id},100,875,0")[..]));
    assert_eq!(writer.text(1), None);

    let renewed = entry(2, now + 500, &format!("h;l2:{id},40,100,1000:{random}"));
    let value = format!("a{}{}{}{renewed}", stamp(now), writer.base(slot, true), mark(1));
    writer.clear();
    writer.replay(slot, &renewed, tag(2).as_bytes()).unwrap();
    reader.load(other, &value, tag(2).as_bytes()).unwrap();
    let base = writer.base(slot, true);
    for replicas in [&mut writer, &mut reader] {
        // 1, 1, 40 and 2 were used; what is open is the holder's, and so remains.
        let later = format!("1 44 1000 956 0 59500 0 0 59500 {:032x}.{}.a,100,875,0", 0x2a, base_36(now + 1_500));
        assert_eq!((replicas.text(0), replicas.text(1)), (None, Some(&later[..])));
        assert_eq!(replicas.base(0, true).split('|').nth(2), base.split('|').nth(2));
    }
    // What is open is charged at its end, also if nobody says so.
    reader.read(other, reading::GET, "0", 0, None, now + 2_000).unwrap();
    assert_eq!(reader.results().last_chunk::<NUMBERS_PER_RESULT>().unwrap()[1], 144.0);
}

/// A process whose base took the place of entries under other policies reads what follows as all others do.
#[test]
fn a_base_that_is_taken_switches_the_policies_of_entries_that_name_none() {
    let spec = |limit| Spec { kind: FixWindow, limit, scale: 60_000, rate: 1, denied: Denied::Free };
    let (mut first, mut second) = (replicas(&spec(100)), replicas(&spec(200)));
    let slots = [first.take().unwrap(), second.take().unwrap()];
    let now = 1_800_000_000_000_u64;
    let entry = |number: u64, text: &str| format!("{}{text}{}", stamp(now), mark(number));
    let policies = format!("@{};", second.policies_text());
    let text = format!("{}{}{}", head(now, &first), entry(1, "h5"), entry(2, &format!("{policies}h7")));
    second.load(slots[1], &text, tag(2).as_bytes()).unwrap();
    let base = second.base(slots[1], true);
    // The reply has the caller's entry, which still names its policies.
    let own = entry(3, &format!("{policies}h1"));
    let reply = |number: u64, text: &str| format!("{}\n{}{text}", tag(number), slots[1]);
    second.replay_all(&reply(3, &format!("#{own}")), now).unwrap();
    let value = format!("a{}{base}{}{own}{}", stamp(now), mark(2), entry(4, "h1"));
    second.replay_all(&reply(4, &format!("+{}", entry(4, "h1"))), now).unwrap();
    first.load(slots[0], &value, tag(1).as_bytes()).unwrap();
    let count = |replicas: &mut Replicas, slot| {
        replicas.clear();
        replicas.read(slot, reading::PEEK, "1", 0, None, now).unwrap();
        replicas.results()[1..3].to_vec()
    };
    assert_eq!(count(&mut second, slots[1]), [15.0, 200.0]);
    assert_eq!(count(&mut first, slots[0]), [15.0, 100.0]);
    assert_eq!(first.base(slots[0], false), second.base(slots[1], false));
}

#[test]
fn a_denial_is_certain_beside_leases_and_not_beside_other_reservations() {
    let spec = Spec { kind: FixWindow, limit: 100, scale: 60_000, rate: 1, denied: Denied::Free };
    let now = 1_800_000_000_000_u64;
    for (open, beside_leases) in
        [("l1:,0,5,1000:00000000000000000000002a", true), ("v5:1000:8000000000000000000000000000002a", false)]
    {
        let mut replicas = replicas(&spec);
        let slot = replicas.take().unwrap();
        let text = format!("{}{open};h{}{}", stamp(now), 90, mark(1));
        replicas.replay(slot, &text, b"").unwrap();
        assert_eq!(replicas.deny(slot, 20, now, now + 1, true), beside_leases, "{open}");
        assert!(!replicas.deny(slot, 20, now, now + 1, false));
        assert!(!replicas.deny(slot, 1, now, now + 1, true));
    }
}

/// A change of a text at a place: another character, one more, or one less.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    let characters = prop::sample::select(&b"0123456789abhilrsz!\"#@;:.,*~|-'%fcZ\xc3"[..]);
    prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, characters), 0..4)
}

fn no_text_is_a_panic(kind: Kind) {
    let few = prop::collection::vec(specs(kind), 1..3);
    check((few, starts(), histories(), any::<bool>(), edits()), |(specs, start, history, with_base, edits)| {
        let entries = log(&specs, start, &history);
        let mut replicas = replicas(&specs[0]);
        let slot = replicas.take().unwrap();
        let head = head(start, &replicas);
        let mut value = format!("{head}{}", joined(&entries)).into_bytes();
        if with_base {
            replicas.load(slot, core::str::from_utf8(&value).unwrap(), b"").unwrap();
            value = format!("{}{}{}", &head[..8], replicas.base(slot, false), entries.last().unwrap().1).into_bytes();
        }
        for (place, edit, character) in edits {
            let at = place.index(value.len());
            match edit {
                0 => value[at] = character,
                1 => value.insert(at, character),
                _ => drop(value.remove(at)),
            }
        }
        let text = String::from_utf8_lossy(&value);
        let loaded = replicas.load(slot, &text, tag(1).as_bytes()).is_ok();
        // What was read can be written.
        let base = replicas.base(slot, true);
        prop_assert_eq!(base.is_empty(), !loaded);
        replicas.restoring_base(slot).unwrap();
        let _ = replicas.meet(slot, &text, start);
        replicas.read(slot, reading::GET, "0", 0, None, start).unwrap();
        replicas.deny(slot, 1, start, start + 1, true);
        Ok(())
    });
}

#[test]
fn texts_of_all_kinds_are_no_panic() {
    check_cases(4_000, ".{0,80}", |text| {
        let mut replicas = replicas(&Spec { kind: FixWindow, limit: 5, scale: 1_000, rate: 1, denied: Denied::Free });
        let slot = replicas.take().unwrap();
        let start = format!("{}#{}", head(1_800_000_000_000, &replicas), stamp(1_800_000_000_000));
        for value in [text.clone(), format!("a{text}"), start + &text] {
            let _ = replicas.load(slot, &value, b"");
        }
        Ok(())
    });
}

each_algorithm! {
    no_text_is_a_panic
    every_reader_comes_to_the_same_results
}
each_counting_algorithm!(results_are_those_of_a_ledger);
