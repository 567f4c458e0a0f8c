//! The wasm that the npm package ships, `build/npm/tollgate_bg.wasm`, through its plain exports: every recorded trace,
//! and handles, slots and numbers that no program of ours would pass. Run it after a build.

#![cfg(target_arch = "wasm32")]
#![allow(clippy::expect_used, clippy::panic)]

mod traces;

use std::collections::HashMap;

use js_sys::WebAssembly::{Instance, Memory, Module};
use js_sys::{Array, BigInt64Array, Float64Array, Function, Int32Array, Object, Reflect, Uint8Array, Uint32Array};
use tollgate::{ALGORITHMS, Answer, Decision, Operation, Policy, Violated};
use traces::Subject;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_test::wasm_bindgen_test as test;

const SHIPPED: &[u8] = include_bytes!("../build/npm/tollgate_bg.wasm");

// As `js/wasm/generated.ts` has them.
const SMALL: i32 = 1;
const VERDICT: i32 = 2;
const ALLOWED: i32 = 1;
const INVALID_COST: f64 = -1.0;
const INVALID_TIME: f64 = -2.0;
const INVALID_HANDLE: f64 = -3.0;
const GET: f64 = 0.0;
const EXPIRES_AT: f64 = 1.0;
const INC: f64 = 2.0;
const SET: f64 = 3.0;
const MAX_COUNT: f64 = 4.0;
const RESERVE: f64 = 2.0;
const BY_POLICY: f64 = 4.0;
const INTEGERS: u32 = 48;
const LIST: u32 = 84;
const HANDLE: u32 = 92;

const NOW: f64 = 1_767_227_321_853.0;
const MAX: f64 = 9_007_199_254_740_991.0;

/// An instance of the shipped wasm.
#[derive(Clone)]
struct Shipped(Object);

impl Shipped {
    fn new() -> Self {
        let module = Module::new(&Uint8Array::from(SHIPPED)).expect("the shipped wasm compiles");
        Self(Instance::new(&module, &Object::new()).expect("an instance").exports())
    }

    /// Calls an export. A trap is an error in JavaScript, and fails the test.
    fn call(&self, name: &str, arguments: &[f64]) -> f64 {
        let export: Function = self.export(name).unchecked_into();
        let array: Array = arguments.iter().map(|number| JsValue::from_f64(*number)).collect();
        match export.apply(&JsValue::UNDEFINED, &array) {
            Ok(returned) => returned.as_f64().unwrap_or_default(),
            Err(thrown) => panic!("{name}({arguments:?}) threw {thrown:?}"),
        }
    }

    fn export(&self, name: &str) -> JsValue {
        Reflect::get(&self.0, &name.into()).expect("an object of exports")
    }

    fn memory(&self) -> JsValue {
        self.export("memory").unchecked_into::<Memory>().buffer()
    }

    /// Writes costs by position, and the numbers of a reservation.
    fn write_reservation(&self, costs: &[f64; 32], id: [f64; 4], ttl: f64, end: f64) {
        let address = self.call("reservation_buffer", &[]) as u32;
        let numbers = [&costs[..], &id, &[ttl, end]].concat();
        Float64Array::new_with_byte_offset_and_length(&self.memory(), address, 38).copy_from(&numbers);
    }

    /// Makes a limiter for policies by their numbers: algorithm, limit, rate, scale, length and `most` of each.
    fn limiter(&self, numbers: &[f64]) -> SlotLimiter {
        let call = Float64Array::new_with_byte_offset(&self.memory(), self.call("call_buffer", &[]) as u32);
        call.subarray(0, numbers.len() as u32).copy_from(numbers);
        let policies = (numbers.len() / 6) as f64;
        // Hammer's traces count denied hits, of which windows alone have a choice.
        let counts = policies == 1.0 && ALGORITHMS[numbers[0] as usize].contains("window");
        self.call("create", &[policies, f64::from(u8::from(counts)), 1_000.0, 0.0, 60_000.0, 0.0, 0.0, 0.0]);
        let buffer = self.call("result_buffer", &[]) as u32;
        let handle = Int32Array::new_with_byte_offset_and_length(&self.memory(), buffer + HANDLE, 2);
        let (index, generation) = (handle.get_index(0).into(), handle.get_index(1).into());
        assert!(index >= 0.0, "{numbers:?}: {index}");
        SlotLimiter { wasm: self.clone(), policies, index, generation, slots: HashMap::new() }
    }

    /// Returns the list that the last operation left.
    fn list(&self) -> Vec<i64> {
        let buffer = self.call("result_buffer", &[]) as u32;
        let list = Uint32Array::new_with_byte_offset_and_length(&self.memory(), buffer + LIST, 2);
        let (address, length) = (list.get_index(0), list.get_index(1));
        BigInt64Array::new_with_byte_offset_and_length(&self.memory(), address, length).to_vec()
    }

    /// Returns the decision that the last operation left.
    fn decision(&self, status: i32) -> Decision {
        let buffer = self.call("result_buffer", &[]) as u32;
        let integers = Int32Array::new_with_byte_offset_and_length(&self.memory(), buffer + INTEGERS, 8).to_vec();
        let numbers: Vec<f64> = match status & SMALL {
            0 => Float64Array::new_with_byte_offset_and_length(&self.memory(), buffer, 6).to_vec(),
            _ => integers.iter().map(|&number| number.into()).collect(),
        };
        Decision {
            allowed: status >> VERDICT == ALLOWED,
            count: numbers[0] as u64,
            limit: numbers[1] as u64,
            remaining: numbers[2] as u64,
            retry_after: numbers[3].is_finite().then_some(numbers[3] as u64),
            reset_after: numbers[4] as u64,
            more_after: numbers[5] as u64,
            policy: integers[6] as usize,
            violated: Violated::from_bits(integers[7] as u32),
            reason: None,
        }
    }
}

/// A limiter, and the slots of its keys, as `js/limiter/limiter.ts` keeps them.
struct SlotLimiter {
    wasm: Shipped,
    policies: f64,
    index: f64,
    generation: f64,
    slots: HashMap<String, f64>,
}

impl SlotLimiter {
    /// Calls an export that takes the limiter's handle before its other arguments.
    fn call(&self, name: &str, arguments: &[f64]) -> f64 {
        self.wasm.call(name, &[&[self.index, self.generation], arguments].concat())
    }

    fn slot(&self, key: &str) -> f64 {
        self.slots.get(key).copied().unwrap_or(-1.0)
    }

    fn peek(&self, key: &str, cost: f64, now: f64) -> Decision {
        let status = self.call("hit_with", &[self.slot(key), cost, now, 0.0, 1.0]);
        assert!(status >= 0.0, "{status}");
        self.wasm.decision(status as i32)
    }

    fn hit(&mut self, key: &str, cost: f64, now: f64) -> Decision {
        let status = self.call("hit", &[self.slot(key), cost, now]);
        assert!(status >= 0.0, "{status}");
        let decision = self.wasm.decision(status as i32);
        self.take_moves(key);
        decision
    }

    fn count(&mut self, key: &str, operation: f64, amount: f64, now: f64) -> u64 {
        let number = self.call("count", &[operation, self.slot(key), amount, now, 0.0]);
        assert!(number >= 0.0, "{number}");
        self.take_moves(key);
        number as u64
    }

    /// Forgets the keys whose slots were freed, and gives the key of the last operation its slot.
    fn take_moves(&mut self, key: &str) {
        assert!(self.call("moves", &[0.0]) >= 2.0);
        let moves = self.wasm.list();
        let freed = &moves[2..][..moves[1] as usize];
        self.slots.retain(|_, slot| !freed.contains(&(*slot as i64)));
        if moves[0] >= 0 {
            self.slots.insert(key.into(), moves[0] as f64);
        }
        assert_eq!(self.call("acknowledge", &[]), 0.0);
    }

    /// Returns everything that the limiter holds of its keys, policy by policy.
    fn contents(&self) -> Vec<(String, u32, Vec<i64>)> {
        let mut all = Vec::new();
        for (key, &slot) in &self.slots {
            for position in 0..self.policies as u32 {
                assert!(self.call("rescue", &[slot, position.into(), 0.0]) > 0.0);
                all.push((key.clone(), position, self.wasm.list()));
            }
        }
        all.sort();
        all
    }

    fn free(self) {
        self.call("dispose", &[]);
    }
}

/// Answers the operations of a trace through the exports.
fn through_exports(policy: Policy) -> Subject {
    let rate = serde_json::to_value(&policy).expect("JSON");
    let rate = ["refillRate", "leakRate"].iter().find_map(|field| rate[field].as_f64()).unwrap_or(1.0);
    let algorithm = ALGORITHMS.iter().position(|name| *name == policy.algorithm()).expect("an algorithm");
    let (limit, scale) = (policy.limit() as f64, policy.scale() as f64);
    let mut limiter = Shipped::new().limiter(&[algorithm as f64, limit, rate, scale, 0.0, 0.0]);
    Box::new(move |op| {
        let (key, now) = (op.key.as_str(), op.at as f64);
        Answer::Number(match op.operation() {
            Operation::Hit { cost } => {
                let peeked = limiter.peek(key, cost as f64, now);
                let decision = limiter.hit(key, cost as f64, now);
                assert_eq!(peeked, decision);
                return Answer::Decision(decision);
            }
            Operation::Inc { cost, .. } => limiter.count(key, INC, cost as f64, now),
            Operation::Set { count, .. } => limiter.count(key, SET, count as f64, now),
            Operation::Get { .. } => limiter.count(key, GET, 0.0, now),
            _ => limiter.count(key, EXPIRES_AT, 0.0, now),
        })
    })
}

macro_rules! traces {
    ($($algorithm:ident)+) => { $(
        #[test]
        fn $algorithm() {
            traces::run(include_str!(concat!("vectors/", stringify!($algorithm), ".json")), through_exports);
        }
    )+ };
}

traces!(fix_window fix_window_per_key sliding_window token_bucket leaky_bucket);

/// A limiter of each algorithm that counts hits and one of several policies with a ban, each with a few keys in use and a
/// reservation.
fn in_use(wasm: &Shipped) -> Vec<SlotLimiter> {
    let one = |algorithm: usize| vec![algorithm as f64, 5.0, 2.0, 1_000.0, 1_000.0, 9_000.0];
    let counts_hits = |algorithm: &usize| !["concurrency", "ban"].contains(&ALGORITHMS[*algorithm]);
    let mut all: Vec<_> = (0..ALGORITHMS.len()).filter(counts_hits).map(one).collect();
    let ban = ALGORITHMS.iter().position(|name| *name == "ban").map(one).expect("a ban");
    all.push([all.concat(), ban].concat());
    let mut limiters: Vec<_> = all.iter().map(|numbers| wasm.limiter(numbers)).collect();
    for limiter in &mut limiters {
        for (key, cost) in [("a", 1.0), ("b", 2.0), ("c", 3.0)] {
            assert!(limiter.hit(key, cost, NOW).allowed);
        }
        wasm.write_reservation(&[1.0; 32], [1.0, 2.0, 3.0, 4.0], 60_000.0, NOW + 60_000.0);
        assert_eq!(limiter.call("hit_with", &[0.0, 1.0, NOW, 0.0, RESERVE]) as i32 >> VERDICT, ALLOWED);
    }
    limiters
}

/// Numbers of which some are valid as a cost, a time, a slot or a part of a handle, and most are not.
const NUMBERS: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    2.0,
    7.0,
    -1.0,
    0.5,
    -0.5,
    1e3,
    2_147_483_647.0,
    -2_147_483_648.0,
    2_147_483_648.0,
    4_294_967_295.0,
    4_294_967_296.0,
    MAX,
    MAX + 1.0,
    9.3e18,
    1.8e19,
    1e308,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

/// The exports that take a handle, with arguments that are valid.
const BY_HANDLE: [(&str, &[f64]); 12] = [
    ("hit", &[0.0, 1.0, NOW]),
    ("hit_with", &[0.0, 1.0, NOW, 0.0, 0.0]),
    ("count", &[INC, 0.0, 1.0, NOW, 0.0]),
    ("close_reservation", &[0.0, NOW, 0.0]),
    ("reset", &[0.0, 0.0, NOW]),
    ("release", &[0.0]),
    ("clean", &[NOW, 0.0]),
    ("moves", &[]),
    ("acknowledge", &[]),
    ("evicted", &[]),
    ("save", &[0.0, NOW]),
    ("except", &[0.0, NOW]),
];

#[test]
fn a_handle_that_is_stale_wrong_or_was_never_given_changes_nothing() {
    let wasm = Shipped::new();
    let mut limiters = in_use(&wasm);
    // Its index is given again, to the last limiter, and the old handle is stale.
    let dropped = limiters.remove(2);
    let stale = (dropped.index, dropped.generation);
    dropped.free();
    limiters.push(wasm.limiter(&[0.0, 5.0, 1.0, 1_000.0, 0.0, 0.0]));
    let last = limiters.last_mut().expect("a limiter");
    assert_eq!((last.index, last.generation), (stale.0, stale.1 + 1.0));
    last.hit("a", 1.0, NOW);

    let contents = |limiters: &[SlotLimiter]| limiters.iter().map(SlotLimiter::contents).collect::<Vec<_>>();
    let before = contents(&limiters);
    // As wasm takes them: 32 bits of the number.
    let bits = |number: f64| if number.is_finite() { number.trunc().rem_euclid(4_294_967_296.0) as u32 } else { 0 };
    let live: Vec<_> = limiters.iter().map(|limiter| (bits(limiter.index), bits(limiter.generation))).collect();
    let parts = NUMBERS.iter().flat_map(|&index| NUMBERS.map(|generation| (index, generation)));
    let wrong: Vec<_> = parts.chain([stale]).filter(|&(a, b)| !live.contains(&(bits(a), bits(b)))).collect();
    assert!(wrong.len() > 300 && wrong.contains(&stale));
    for (index, generation) in wrong {
        for (name, arguments) in BY_HANDLE {
            let status = wasm.call(name, &[&[index, generation], arguments].concat());
            assert_eq!(status, INVALID_HANDLE, "{name} of {index} {generation}");
        }
        assert_eq!(wasm.call("rescue", &[index, generation, 0.0, 0.0, 0.0]), INVALID_HANDLE);
        wasm.call("input", &[4.0]);
        assert_eq!(wasm.call("load", &[index, generation, 0.0, NOW, 1.0]), INVALID_HANDLE);
    }
    assert_eq!(contents(&limiters), before);
}

#[test]
fn any_slot_cost_and_time_is_a_status_and_other_limiters_stay_as_they_are() {
    let wasm = Shipped::new();
    let (mut limiters, others) = (in_use(&wasm), in_use(&wasm));
    let contents = || others.iter().map(SlotLimiter::contents).collect::<Vec<_>>();
    let before = contents();
    for limiter in &mut limiters {
        for slot in NUMBERS {
            for number in NUMBERS {
                let is_cost = (0.0..=MAX).contains(&number) && number.fract() == 0.0;
                let is_time = (0.0..=MAX).contains(&number);
                let hit = limiter.call("hit", &[slot, number, NOW]);
                assert_eq!(hit == INVALID_COST, !is_cost, "a cost of {number}: {hit}");
                let hit = limiter.call("hit", &[slot, 1.0, number]);
                assert_eq!(hit == INVALID_TIME, !is_time, "a time of {number}: {hit}");
                wasm.write_reservation(&[number; 32], [number, slot, 1.0, 2.0], number, slot);
                for question in [0.0, 1.0, RESERVE, BY_POLICY, BY_POLICY + 1.0, BY_POLICY + RESERVE, number] {
                    limiter.call("hit_with", &[slot, number, NOW, 0.0, question]);
                    limiter.call("hit_with", &[slot, 1.0, number, 0.0, question]);
                    limiter.call("hit_with", &[slot, 1.0, NOW, number, question]);
                }
                for extends in [0.0, 1.0] {
                    limiter.call("close_reservation", &[slot, NOW, extends]);
                    limiter.call("close_reservation", &[slot, number, extends]);
                }
                limiter.call("reset", &[slot, 0.0, number]);
                limiter.call("reset", &[slot, 1.0, number]);
                for operation in [GET, EXPIRES_AT, INC, SET, MAX_COUNT, 5.0, 6.0, 7.0, number] {
                    limiter.call("count", &[operation, slot, number, NOW, 0.0]);
                    limiter.call("count", &[operation, slot, 1.0, number, 0.0]);
                    limiter.call("count", &[operation, slot, 1.0, NOW, number]);
                }
                limiter.call("save", &[slot, number]);
                limiter.call("clean", &[number, slot]);
                limiter.call("moves", &[0.0]);
                limiter.call("acknowledge", &[]);
            }
            for position in [0.0, 1.0, 4_294_967_295.0] {
                for from in [0.0, 1.0, 4_294_967_295.0] {
                    limiter.call("rescue", &[slot, position, from]);
                }
            }
            limiter.call("release", &[slot]);
        }
    }
    assert_eq!(contents(), before);
    // The abused ones still decide: a key that they do not know starts afresh.
    for mut limiter in limiters {
        limiter.slots.clear();
        assert_eq!(limiter.hit("new", 1.0, NOW).limit, 5);
        limiter.free();
    }
    for mut limiter in others {
        assert_eq!(limiter.peek("a", 1.0, NOW), limiter.hit("a", 1.0, NOW));
    }
}

#[test]
fn any_numbers_as_a_state_are_a_status_and_other_limiters_stay_as_they_are() {
    let wasm = Shipped::new();
    let (limiters, others) = (in_use(&wasm), in_use(&wasm));
    let contents = || others.iter().map(SlotLimiter::contents).collect::<Vec<_>>();
    let before = contents();
    for limiter in &limiters {
        for length in 0..8 {
            for (at, number) in NUMBERS.iter().enumerate() {
                // A scale and a length that are nearly right, then strange numbers, and one more in any place.
                let mut state = vec![1_000.0, f64::from(length) - 2.0];
                state.extend(NUMBERS.iter().cycle().skip(at).take(8));
                state.truncate(length as usize);
                if let Some(one) = state.get_mut(at % 8) {
                    *one = *number;
                }
                for [slot, now, put] in [[0.0, NOW, 1.0], [-1.0, NOW, 1.0], [*number, NOW, 0.0], [0.0, *number, 1.0]] {
                    let address = wasm.call("input", &[length.into()]) as u32;
                    Float64Array::new_with_byte_offset_and_length(&wasm.memory(), address, length).copy_from(&state);
                    limiter.call("load", &[slot, now, put]);
                    let address = wasm.call("input", &[length.into()]) as u32;
                    Float64Array::new_with_byte_offset_and_length(&wasm.memory(), address, length).copy_from(&state);
                    limiter.call("except", &[slot, now]);
                }
            }
        }
        assert_eq!(wasm.call("input", &[4_294_967_295.0]), 0.0);
    }
    assert_eq!(contents(), before);
}
