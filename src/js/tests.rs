//! The exports as JavaScript sees them: every call goes out to the engine and comes back.

#![allow(clippy::expect_used)]

use alloc::vec::Vec;

use js_sys::{Array, Float64Array, Function, Int32Array, Reflect, Uint32Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_test::wasm_bindgen_test;

use super::FAILED;
use crate::MAX;

/// An algorithm by its place in the list, limit, rate, scale, and nothing said of denied hits.
const TWO_A_MINUTE: [f64; 5] = [0.0, 2.0, 1.0, 60_000.0, 0.0];
const LOG: f64 = 2.0;
const TOKENS: f64 = 4.0;
/// The slot of a key that has none.
const NONE: f64 = -1.0;
/// Where policies and slabs are that there are not.
const NOWHERE: f64 = 0.0;

/// Calls an export; what answers nothing answers 0.
fn call(name: &str, arguments: &[f64]) -> f64 {
    let function: Function = Reflect::get(&wasm_bindgen::exports(), &name.into()).expect("an export").unchecked_into();
    let arguments: Array = arguments.iter().map(|&number| JsValue::from(number)).collect();
    function.apply(&JsValue::NULL, &arguments).expect("an answer").as_f64().unwrap_or(0.0)
}

fn memory() -> JsValue {
    Reflect::get(&wasm_bindgen::memory(), &"buffer".into()).expect("a memory")
}

fn give_numbers(numbers: &[f64]) {
    let at = call("numbers", &[numbers.len() as f64]) as u32;
    Float64Array::new_with_byte_offset_and_length(&memory(), at, numbers.len() as u32).copy_from(numbers);
}

fn numbers() -> Vec<f64> {
    let list = Uint32Array::new_with_byte_offset_and_length(&memory(), call("area", &[]) as u32 + 72, 2).to_vec();
    Float64Array::new_with_byte_offset_and_length(&memory(), list[0], list[1]).to_vec()
}

fn policies(numbers: &[f64]) -> f64 {
    give_numbers(numbers);
    call("policies", &[])
}

/// A slab that JavaScript holds.
struct Slab(f64);

impl Slab {
    fn new(numbers: [f64; 5]) -> Self {
        Self::of(numbers, 1_000_000.0)
    }

    fn of(numbers: [f64; 5], max_keys: f64) -> Self {
        let (reports, evicts) = (1.0, 0.0);
        Self(call("slab", &[policies(&numbers), reports, 0.0, max_keys, evicts, 60_000.0, 0.0]))
    }

    fn call(&self, name: &str, arguments: &[f64]) -> f64 {
        let slab = [self.0];
        call(name, &slab.iter().chain(arguments).copied().collect::<Vec<_>>())
    }

    /// What lies in the area: the floats, then the integers.
    fn area(&self) -> (Vec<f64>, Vec<i32>) {
        let at = call("area", &[]) as u32;
        let floats = Float64Array::new_with_byte_offset_and_length(&memory(), at, 5);
        let integers = Int32Array::new_with_byte_offset_and_length(&memory(), at + 40, 8);
        (floats.to_vec(), integers.to_vec())
    }
}

#[wasm_bindgen_test]
fn a_decision_of_small_numbers_lies_among_the_integers() {
    let slab = Slab::new(TWO_A_MINUTE);
    let (allowed, small, taken) = (1.0, 2.0, 8.0);
    assert_eq!(slab.call("hit", &[NONE, 2.0, 15_000.0]), allowed + small + taken);
    assert_eq!(slab.area().1, [2, 2, 0, 0, 45_000, 0, 0, 0]);
    assert_eq!(slab.call("hit", &[0.0, 1.0, 15_000.9]), small);
    assert_eq!(slab.area().1, [3, 2, 0, 45_000, 45_000, 0, 1, 0]);
}

#[wasm_bindgen_test]
fn a_decision_to_wait_for_ever_lies_among_the_floats() {
    let slab = Slab::new(TWO_A_MINUTE);
    assert_eq!(slab.call("hit_with", &[NONE, 3.0, 15_000.0, NOWHERE, 0.0]), 0.0);
    assert_eq!(slab.area().0, [3.0, 2.0, 0.0, f64::INFINITY, 45_000.0]);
}

#[wasm_bindgen_test]
fn a_decision_of_large_numbers_lies_among_the_floats() {
    let slab = Slab::new([0.0, MAX as f64, 1.0, 60_000.0, 0.0]);
    assert_eq!(slab.call("hit", &[NONE, 4_294_967_296.0, 0.0]), 1.0 + 8.0);
    let remaining = (MAX - (1 << 32)) as f64;
    assert_eq!(slab.area().0, [4_294_967_296.0, MAX as f64, remaining, 0.0, 60_000.0]);
}

#[wasm_bindgen_test]
fn what_is_no_cost_or_no_time_is_a_status_and_changes_nothing() {
    let slab = Slab::new(TWO_A_MINUTE);
    for cost in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(slab.call("hit", &[NONE, cost, 0.0]), -1.0, "{cost}");
        assert_eq!(slab.call("inc", &[NONE, cost, 0.0, 0.0]), -1.0, "{cost}");
    }
    for time in [-1.0, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(slab.call("hit", &[NONE, 1.0, time]), -2.0, "{time}");
        assert_eq!(slab.call("clean", &[time]), -2.0, "{time}");
    }
    assert_eq!(slab.call("set", &[NONE, -1.0, 0.0, 0.0]), f64::from(FAILED));
    // The first slot is still the first to be taken.
    slab.call("hit", &[NONE, 1.0, 0.0]);
    assert_eq!(slab.area().1[7], 0);
}

#[wasm_bindgen_test]
fn a_freed_slot_is_told_with_what_it_held() {
    let slab = Slab::of(TWO_A_MINUTE, 1.0);
    let (freed, taken) = (4.0, 8.0);
    slab.call("hit", &[NONE, 1.0, 0.0]);
    assert_eq!(slab.call("inc", &[NONE, 2.0, 60_000.0, 0.0]), freed + taken);
    slab.call("take_freed", &[]);
    assert_eq!(numbers(), [1.0, 0.0, 0.0, 0.0, 1.0, 60_000.0]);
    assert_eq!(slab.call("inc", &[NONE, 1.0, 60_000.0, 0.0]), freed + taken);
    assert_eq!(slab.call("evicted", &[]), 1.0);
}

#[wasm_bindgen_test]
fn states_go_out_as_numbers_and_come_back() {
    let slab = Slab::new(TWO_A_MINUTE);
    slab.call("hit", &[NONE, 2.0, 61_000.0]);
    slab.call("save", &[0.0, 61_000.0]);
    let saved = numbers();
    assert_eq!(saved, [2.0, 60_000.0, 2.0]);
    assert_eq!(slab.area().0[0], 120_000.0);
    let other = Slab::new(TWO_A_MINUTE);
    give_numbers(&[60_000.0, saved[0], saved[1], saved[2]]);
    assert_eq!(other.call("load", &[NONE, 61_000.0, 1.0]), 8.0);
    other.call("get", &[0.0, 61_000.0, 0.0, 0.0]);
    assert_eq!(other.area().0[0], 2.0);
    for cut_short in [&[60_000.0, 3.0, 60_000.0, 2.0][..], &[60_000.0], &[]] {
        give_numbers(cut_short);
        assert_eq!(other.call("load", &[NONE, 61_000.0, 1.0]), f64::from(FAILED), "{cut_short:?}");
    }
}

#[wasm_bindgen_test]
fn what_is_stored_outside_the_process_has_narrower_limits() {
    let log = policies(&[LOG, 1_001.0, 1.0, 60_000.0, 0.0]);
    let slab = |stored: f64| call("slab", &[log, 0.0, stored, 1.0, 0.0, 60_000.0, 0.0]);
    assert!(slab(0.0) != NOWHERE);
    assert_eq!(slab(1.0), NOWHERE);
}

#[wasm_bindgen_test]
fn a_policy_that_does_not_go_is_told_by_its_place() {
    let never_full = [TOKENS, MAX as f64, 1.0, 1_000.0, 0.0];
    assert_eq!(policies(&[TWO_A_MINUTE, never_full].concat()), NOWHERE);
    assert_eq!(Slab(NOWHERE).area().0[0], 1.0);
}

#[wasm_bindgen_test]
fn more_tokens_than_fit_are_told_with_how_many_do() {
    let slab = Slab::new([TOKENS, 7.0, 1.0, 1_000.0, 0.0]);
    assert_eq!(slab.call("set", &[NONE, 8.0, 0.0, 0.0]), f64::from(FAILED));
    assert_eq!(slab.area().0[0], 7.0);
}

#[wasm_bindgen_test]
fn numbers_for_one_call_must_go_with_the_own() {
    let slab = Slab::new(TWO_A_MINUTE);
    let larger = policies(&[0.0, 5.0, 1.0, 60_000.0, 0.0]);
    assert_eq!(slab.call("hit_with", &[NONE, 4.0, 0.0, larger, 1.0]), 1.0 + 2.0 + 8.0);
    for [algorithm, scale] in [[1.0, 60_000.0], [0.0, 1_000.0]] {
        let other = policies(&[algorithm, 5.0, 1.0, scale, 0.0]);
        assert_eq!(slab.call("hit_with", &[0.0, 1.0, 0.0, other, 1.0]), f64::from(FAILED));
    }
}
