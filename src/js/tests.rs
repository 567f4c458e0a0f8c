//! The exports as JavaScript sees them: every call goes out to the engine and comes back through the glue.

#![allow(clippy::expect_used)]

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use js_sys::{Array, Float64Array, Function, Int32Array, Reflect, Uint32Array};
use wasm_bindgen::JsCast;
use wasm_bindgen_test::wasm_bindgen_test;

use super::*;
use crate::MAX;

const TWO_A_MINUTE: &str = "algorithm\u{1f}tfix_window\u{1f}limit\u{1f}n2\u{1f}scale\u{1f}t1m\u{1f}\u{1e}";
const NONE: f64 = -1.0;

/// An object of JavaScript that Rust made.
struct Object(JsValue);

impl Object {
    fn core(policies: &str, options: &str) -> Self {
        let policies = PolicySet::make(policies).expect("policies");
        Self(Core::make(&policies, options, true).expect("a core").into())
    }

    fn call(&self, method: &str, arguments: &[f64]) -> JsValue {
        let function: Function = Reflect::get(&self.0, &method.into()).expect("a method").unchecked_into();
        let arguments: Array = arguments.iter().map(|&number| JsValue::from(number)).collect();
        function.apply(&self.0, &arguments).expect("an answer")
    }

    fn status(&self, method: &str, arguments: &[f64]) -> f64 {
        self.call(method, arguments).as_f64().expect("a number")
    }

    /// What lies in the area: the floats, then the integers.
    fn area(&self) -> (Vec<f64>, Vec<i32>) {
        let at = self.status("area", &[]) as u32;
        let memory = Reflect::get(&wasm_bindgen::memory(), &"buffer".into()).expect("a memory");
        let floats = Float64Array::new_with_byte_offset_and_length(&memory, at, 5);
        let integers = Int32Array::new_with_byte_offset_and_length(&memory, at + 40, 8);
        (floats.to_vec(), integers.to_vec())
    }
}

/// The code of the mistake that was kept last.
fn code() -> String {
    complaint().split('\n').next().map(ToString::to_string).unwrap_or_default()
}

#[wasm_bindgen_test]
fn a_decision_of_small_numbers_lies_among_the_integers() {
    let core = Object::core(TWO_A_MINUTE, "");
    let (allowed, small, taken) = (1.0, 2.0, 8.0);
    assert_eq!(core.status("hit", &[NONE, 2.0, 15_000.0]), allowed + small + taken);
    assert_eq!(core.area().1, [2, 2, 0, 0, 45_000, 0, 0, 0]);
    assert_eq!(core.status("hit", &[0.0, 1.0, 15_000.9]), small);
    assert_eq!(core.area().1, [3, 2, 0, 45_000, 45_000, 0, 1, 0]);
    assert_eq!(core.status("peek", &[0.0, 3.0, 15_000.0]), small);
    assert_eq!(core.area().1[3], -1);
}

#[wasm_bindgen_test]
fn a_decision_of_large_numbers_lies_among_the_floats() {
    let core = Object::core(&TWO_A_MINUTE.replace("n2", "n9007199254740991"), "");
    assert_eq!(core.status("hit", &[NONE, 4_294_967_296.0, 0.0]), 1.0 + 8.0);
    let remaining = (MAX - (1 << 32)) as f64;
    assert_eq!(core.area().0, [4_294_967_296.0, MAX as f64, remaining, 0.0, 60_000.0]);
}

#[wasm_bindgen_test]
fn what_is_no_cost_or_no_time_is_a_status_and_changes_nothing() {
    let core = Object::core(TWO_A_MINUTE, "");
    for cost in [-1.0, 0.5, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(core.status("hit", &[NONE, cost, 0.0]), -1.0, "{cost}");
        assert_eq!(core.status("inc", &[NONE, cost, 0.0, 0.0]), -1.0, "{cost}");
    }
    for time in [-1.0, f64::NAN, f64::INFINITY, MAX as f64 + 1.0] {
        assert_eq!(core.status("hit", &[NONE, 1.0, time]), -2.0, "{time}");
        assert_eq!(core.status("clean", &[time]), -2.0, "{time}");
    }
    assert_eq!(core.status("set", &[NONE, -1.0, 0.0, 0.0]), -3.0);
    assert_eq!(code(), "invalid_count");
    // The first slot is still the first to be taken.
    core.status("hit", &[NONE, 1.0, 0.0]);
    assert_eq!(core.area().1[7], 0);
}

#[wasm_bindgen_test]
fn a_freed_slot_is_told_with_what_it_held() {
    let core = Object::core(TWO_A_MINUTE, "maxKeys\u{1f}n1\u{1f}");
    let (freed, taken) = (4.0, 8.0);
    core.status("hit", &[NONE, 1.0, 0.0]);
    assert_eq!(core.status("inc", &[NONE, 2.0, 60_000.0, 0.0]), freed + taken);
    assert_eq!(core.call("take_freed", &[]).unchecked_into::<Uint32Array>().to_vec(), [0]);
    let expired = core.call("take_expired", &[]).unchecked_into::<Float64Array>();
    assert_eq!(expired.to_vec(), [0.0, 0.0, 1.0, 60_000.0]);
    assert_eq!(core.status("inc", &[NONE, 1.0, 60_000.0, 0.0]), freed + taken);
    assert_eq!(core.status("evicted", &[]), 1.0);
}

#[wasm_bindgen_test]
fn states_go_out_as_numbers_and_come_back() {
    let core = Object::core(TWO_A_MINUTE, "");
    core.status("hit", &[NONE, 2.0, 61_000.0]);
    let numbers = core.call("export", &[0.0, 61_000.0]).unchecked_into::<Float64Array>().to_vec();
    assert_eq!(numbers, [2.0, 60_000.0, 2.0]);
    let policies = PolicySet::make(TWO_A_MINUTE).expect("policies");
    let mut other = Core::make(&policies, "", false).expect("a core");
    assert_eq!(other.import(-1, &policies, &numbers, 61_000.0), 8);
    assert_eq!(other.import(-1, &policies, &[3.0, 60_000.0, 2.0], 61_000.0), FAILED);
    assert_eq!(code(), "invalid_state");
    let other = Object(other.into());
    other.status("get", &[0.0, 61_000.0, 0.0]);
    assert_eq!(other.area().0[0], 2.0);
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
        assert!(PolicySet::make(written).is_none(), "{written:?}");
        assert_eq!(code(), mistake, "{written:?}");
    }
    let policies = PolicySet::make(&TWO_A_MINUTE.repeat(2)).expect("policies");
    assert_eq!(policies.position(Some("fix_window-2".into())), 1);
    assert_eq!(policies.position(None), -1);
    assert_eq!(code(), "unknown_policy");
}
