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
    format!("b{}{}|", stamp(start), own.policies_text())
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
    /// Hits so that it can be undone, and undoes one of the hits before, with so much beside it.
    HitUndoable(u64),
    Undo(prop::sample::Index, u64, u64),
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
        Deed::HitUndoable(weight) => {
            made.push((now, made.len() as u128));
            format!("y{}", fit(*weight, spec.limit))
        }
        Deed::Undo(index, weight, beside) => {
            let (at, random) = chosen(index, made);
            let random = random as u64;
            format!("u{random:016x}.{}.{}:{}", base_36(at), base_36(*beside), fit(*weight, spec.limit))
        }
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

/// Policies as the script names them in an entry: those that have no number yet get the next one.
fn named(numbered: &mut Vec<String>, text: &str) -> String {
    if let Some(index) = numbered.iter().position(|known| known == text) {
        return format!("${}", index + 1);
    }
    numbered.push(text.into());
    format!("{{{text}}}{}", numbered.len())
}

/// Entries as the script would write them: each with its mark, and with its policies where they are not those of the first
/// writer.
fn log(specs: &[Spec], start: u64, history: &[(Move, usize, Deed)]) -> Vec<(String, String)> {
    let writers: Vec<Replicas> = specs.iter().map(replicas).collect();
    let mut now = start;
    let (mut entries, mut made, mut numbered) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (step, writer, deed)) in history.iter().enumerate() {
        let writer = writer % specs.len();
        now = step.from(now, specs[writer].period());
        let policies = writers[writer].policies_text();
        let text = match (writer, number % 8) {
            (0, _) => String::new(),
            // As if there were too many numbers.
            (_, 7) => format!("@{policies};"),
            _ => named(&mut numbered, policies),
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
        3 => weights().prop_map(Deed::HitUndoable),
        3 => (any::<prop::sample::Index>(), weights(), 0..4_u64).prop_map(|(at, cost, beside)| Deed::Undo(at, cost, beside)),
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
        let mut base = String::new();
        let cut = cut.index(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            let text = joined(core::slice::from_ref(entry));
            first.clear();
            prop_assert!(first.replay(slot, &text, tag(number as u64 + 1).as_bytes()).unwrap().own);
            results.push((first.results().to_vec(), first.text(0).map(String::from)));
            if number == cut {
                base = format!("{}{}{}", &head[..8], first.base(slot), entry.1);
            }
        }
        let values = [(format!("{head}{}", joined(&entries)), 0), (base + &joined(&entries[cut + 1..]), cut + 1)];
        for (own, (value, from)) in specs.iter().flat_map(|own| values.iter().map(move |value| (own, value))) {
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
            prop_assert_eq!(other.base(slot), first.base(0));
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
    let value = format!("b{}{}{}{renewed}", stamp(now), writer.base(slot), mark(1));
    writer.clear();
    writer.replay(slot, &renewed, tag(2).as_bytes()).unwrap();
    reader.load(other, &value, tag(2).as_bytes()).unwrap();
    let base = writer.base(slot);
    for replicas in [&mut writer, &mut reader] {
        // 1, 1, 40 and 2 were used; what is open is the holder's, and so remains.
        let later = format!("1 44 1000 956 0 59500 0 0 59500 {:032x}.{}.a,100,875,0", 0x2a, base_36(now + 1_500));
        assert_eq!((replicas.text(0), replicas.text(1)), (None, Some(&later[..])));
        assert_eq!(replicas.base(0).split('|').nth(2), base.split('|').nth(2));
    }
    // What is open is charged at its end, also if nobody says so.
    reader.read(other, reading::GET, "0", 0, None, now + 2_000).unwrap();
    assert_eq!(reader.results().last_chunk::<NUMBERS_PER_RESULT>().unwrap()[1], 144.0);
}

/// Returns the count and the limit of a hit.
fn count(replicas: &mut Replicas, slot: u32, now: u64) -> Vec<f64> {
    replicas.clear();
    replicas.read(slot, reading::PEEK, "1", 0, None, now).unwrap();
    replicas.results()[1..3].to_vec()
}

/// Whoever knows the mark of a base reads what follows as those do who read the base.
#[test]
fn a_base_switches_no_policies() {
    let spec = |limit| Spec { kind: FixWindow, limit, scale: 60_000, rate: 1, denied: Denied::Free };
    let (mut first, mut second) = (replicas(&spec(100)), replicas(&spec(200)));
    let slots = [first.take().unwrap(), second.take().unwrap()];
    let now = 1_800_000_000_000_u64;
    let entry = |number: u64, text: &str| format!("{}{text}{}", stamp(now), mark(number));
    let introduced = format!("{{{}}}1h7", second.policies_text());
    let before = format!("{}{}{}", head(now, &first), entry(1, "h5"), entry(2, &introduced));
    for (replicas, slot) in [(&mut first, slots[0]), (&mut second, slots[1])] {
        replicas.load(slot, &before, b"").unwrap();
    }
    let value = format!("b{}{}{}", stamp(now), second.base(slots[1]), mark(2));
    let later = [entry(3, "$1h150"), entry(4, "h1"), entry(5, "$1h2")].concat();
    let mut reader = replicas(&spec(300));
    let slot = reader.take().unwrap();
    reader.load(slot, &(value + &later), b"").unwrap();
    for (replicas, slot) in [(&mut first, slots[0]), (&mut second, slots[1])] {
        assert!(replicas.replay(slot, &later, b"").unwrap().foreign);
        assert_eq!(replicas.base(slot), reader.base(0));
    }
    // 5, 7, 150 and 2, and one of limit 100 that was denied.
    assert_eq!(count(&mut second, slots[1], now), [165.0, 200.0]);
    assert_eq!(count(&mut first, slots[0], now), [164.0, 100.0]);
}

/// A new beginning drops policies that nobody used for a minute, and numbers the others anew.
#[test]
fn a_new_beginning_keeps_the_policies_in_use() {
    let spec = |limit| Spec { kind: FixWindow, limit, scale: 60_000, rate: 1, denied: Denied::Free };
    let mut fleet: Vec<Replicas> = (1..=5).map(|number| replicas(&spec(100 * number))).collect();
    let texts: Vec<String> = fleet.iter().map(|one| one.policies_text().into()).collect();
    let now = 1_800_000_000_000_u64;
    let entry = |number: u64, at: u64, text: &str| format!("{}{text}{}", stamp(at), mark(number));
    let news: Vec<String> =
        (1..=4).map(|number| entry(number, now, &format!("{{{}}}{number}h1", texts[number as usize]))).collect();
    let value = format!("{}{}", head(now, &fleet[0]), news.concat());
    let later = entry(5, now + 60_000, "$3h1");
    let own = &mut fleet[4];
    let slot = own.take().unwrap();
    own.load(slot, &value, b"").unwrap();
    // All were used just now.
    assert_eq!(own.new_beginning(slot).unwrap(), "");
    own.replay(slot, &later, b"").unwrap();
    let began = own.new_beginning(slot).unwrap();
    assert!(began.starts_with(&format!("{}|#{}{{{}}}1$1;", texts[4], stamp(now + 60_000), texts[3])), "{began}");
    // The tag before its mark stays known.
    let began = format!("b{}{began}{}", stamp(now), mark(6));
    assert!(began.contains(&format!("~{}", tag(5))));
    let mut reader = replicas(&spec(100));
    let other = reader.take().unwrap();
    reader.load(other, &began, b"").unwrap();
    for replicas in [own, &mut reader] {
        assert_eq!(count(replicas, 0, now + 60_000)[0], 2.0);
    }
    assert_eq!(reader.new_beginning(other).unwrap(), "");
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
    let characters = prop::sample::select(&b"0123456789abhilrsz!\"#@${};:.,*~|-'%fcZ\xc3"[..]);
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
            value = format!("{}{}{}", &head[..8], replicas.base(slot), entries.last().unwrap().1).into_bytes();
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
        let base = replicas.base(slot);
        prop_assert_eq!(base.is_empty(), !loaded);
        replicas.restoring_base(slot).unwrap();
        replicas.new_beginning(slot).unwrap();
        let _ = replicas.meet(slot, &text, start);
        // A row that no entry named is read here.
        let _ = replicas.read(slot, reading::GET, "0", 0, None, start);
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
        for value in [text.clone(), format!("b{text}"), start + &text] {
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
