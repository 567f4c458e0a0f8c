//! The exports as JavaScript sees them: every call goes out to the engine and comes back.

#![allow(clippy::expect_used)]

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use js_sys::{Array, Float64Array, Function, Int32Array, Reflect, Uint8Array, Uint32Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_test::wasm_bindgen_test;

use super::FAILED;
use crate::MAX;

const TWO_A_MINUTE: &str = "algorithm\u{1f}tfix_window\u{1f}limit\u{1f}n2\u{1f}scale\u{1f}t1m\u{1f}\u{1e}";
const NONE: f64 = -1.0;

/// Calls an export; what answers nothing answers 0.
fn call(name: &str, arguments: &[f64]) -> f64 {
    let function: Function = Reflect::get(&wasm_bindgen::exports(), &name.into()).expect("an export").unchecked_into();
    let arguments: Array = arguments.iter().map(|&number| JsValue::from(number)).collect();
    function.apply(&JsValue::NULL, &arguments).expect("an answer").as_f64().unwrap_or(0.0)
}

fn memory() -> JsValue {
    Reflect::get(&wasm_bindgen::memory(), &"buffer".into()).expect("a memory")
}

fn give_text(text: &str) {
    let at = call("text", &[text.len() as f64]) as u32;
    Uint8Array::new_with_byte_offset_and_length(&memory(), at, text.len() as u32).copy_from(text.as_bytes());
}

fn give_numbers(numbers: &[f64]) {
    let at = call("numbers", &[numbers.len() as f64]) as u32;
    Float64Array::new_with_byte_offset_and_length(&memory(), at, numbers.len() as u32).copy_from(numbers);
}

/// Where the text and the numbers that were answered lie.
fn places() -> Vec<u32> {
    Uint32Array::new_with_byte_offset_and_length(&memory(), call("area", &[]) as u32 + 72, 4).to_vec()
}

fn numbers() -> Vec<f64> {
    Float64Array::new_with_byte_offset_and_length(&memory(), places()[2], places()[3]).to_vec()
}

/// The code of the mistake that was made last.
fn code() -> String {
    let bytes = Uint8Array::new_with_byte_offset_and_length(&memory(), places()[0], places()[1]).to_vec();
    String::from_utf8_lossy(&bytes).split('\n').next().map(ToString::to_string).unwrap_or_default()
}

fn policies(written: &str) -> f64 {
    give_text(written);
    call("policies", &[])
}

/// A slab that JavaScript holds.
struct Slab(f64);

impl Slab {
    fn new(written: &str, options: &str) -> Self {
        let policies = policies(written);
        give_text(options);
        Self(call("slab", &[policies, 1.0, 0.0]))
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
    let slab = Slab::new(TWO_A_MINUTE, "");
    let (allowed, small, taken) = (1.0, 2.0, 8.0);
    assert_eq!(slab.call("hit", &[NONE, 2.0, 15_000.0]), allowed + small + taken);
    assert_eq!(slab.area().1, [2, 2, 0, 0, 45_000, 0, 0, 0]);
    assert_eq!(slab.call("hit", &[0.0, 1.0, 15_000.9]), small);
    assert_eq!(slab.area().1, [3, 2, 0, 45_000, 45_000, 0, 1, 0]);
    assert_eq!(slab.call("hit_with", &[0.0, 3.0, 15_000.0, NONE, 0.0]), small);
    assert_eq!(slab.area().1[3], -1);
}

#[wasm_bindgen_test]
fn a_decision_of_large_numbers_lies_among_the_floats() {
    let slab = Slab::new(&TWO_A_MINUTE.replace("n2", "n9007199254740991"), "");
    assert_eq!(slab.call("hit", &[NONE, 4_294_967_296.0, 0.0]), 1.0 + 8.0);
    let remaining = (MAX - (1 << 32)) as f64;
    assert_eq!(slab.area().0, [4_294_967_296.0, MAX as f64, remaining, 0.0, 60_000.0]);
}

#[wasm_bindgen_test]
fn what_is_no_cost_or_no_time_is_a_status_and_changes_nothing() {
    let slab = Slab::new(TWO_A_MINUTE, "");
    for cost in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(slab.call("hit", &[NONE, cost, 0.0]), -1.0, "{cost}");
        assert_eq!(slab.call("inc", &[NONE, cost, 0.0, 0.0]), -1.0, "{cost}");
    }
    for time in [-1.0, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(slab.call("hit", &[NONE, 1.0, time]), -2.0, "{time}");
        assert_eq!(slab.call("clean", &[time]), -2.0, "{time}");
    }
    assert_eq!(slab.call("set", &[NONE, -1.0, 0.0, 0.0]), -3.0);
    assert_eq!(code(), "invalid_count");
    // The first slot is still the first to be taken.
    slab.call("hit", &[NONE, 1.0, 0.0]);
    assert_eq!(slab.area().1[7], 0);
}

#[wasm_bindgen_test]
fn a_freed_slot_is_told_with_what_it_held() {
    let slab = Slab::new(TWO_A_MINUTE, "maxKeys\u{1f}n1\u{1f}");
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
    let slab = Slab::new(TWO_A_MINUTE, "");
    slab.call("hit", &[NONE, 2.0, 61_000.0]);
    slab.call("save", &[0.0, 61_000.0]);
    let saved = numbers();
    assert_eq!(saved, [2.0, 60_000.0, 2.0]);
    assert_eq!(slab.area().0[0], 120_000.0);
    let other = Slab::new(TWO_A_MINUTE, "");
    give_text("any\u{1f}fix_window\u{1f}60000\u{1f}");
    give_numbers(&saved);
    assert_eq!(other.call("load", &[NONE, 61_000.0, 1.0]), 8.0);
    other.call("get", &[0.0, 61_000.0, 0.0, 0.0]);
    assert_eq!(other.area().0[0], 2.0);
    give_text("any\u{1f}fix_window\u{1f}60000\u{1f}");
    give_numbers(&[3.0, 60_000.0, 2.0]);
    assert_eq!(other.call("load", &[NONE, 61_000.0, 1.0]), f64::from(FAILED));
    assert_eq!(code(), "invalid_state");
}

#[wasm_bindgen_test]
fn what_is_stored_outside_the_process_has_narrower_limits() {
    let log = policies(&TWO_A_MINUTE.replace("tfix_window", "tsliding_window").replace("n2", "n1001"));
    give_text("");
    assert!(call("slab", &[log, 0.0, 0.0]) >= 0.0);
    assert_eq!(call("slab", &[log, 0.0, 1.0]), f64::from(FAILED));
    assert_eq!(code(), "invalid_policy");
}

#[wasm_bindgen_test]
fn policies_are_read_from_text_and_their_mistakes_named() {
    for (written, mistake) in [
        ("", "invalid_policy"),
        ("algorithm\u{1f}tfixed\u{1f}\u{1e}", "unknown_algorithm"),
        ("algorithm\u{1f}tfix_window\u{1f}limit\u{1f}o0.5\u{1f}scale\u{1f}t1m\u{1f}\u{1e}", "invalid_policy"),
        ("algorithm\u{1f}tfix_window\u{1f}limits\u{1f}n1\u{1f}\u{1e}", "unknown_field"),
        ("\u{1f}\u{1f}\u{1e}\u{1f}", "unknown_algorithm"),
    ] {
        assert_eq!(policies(written), f64::from(FAILED), "{written:?}");
        assert_eq!(code(), mistake, "{written:?}");
    }
}
