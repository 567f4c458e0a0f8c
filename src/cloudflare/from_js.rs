//! Plain data from JavaScript. By hand: what serde brings along to say what it found is a tenth of the wasm.

use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use super::tree::{DEEPEST, Tree};

#[wasm_bindgen]
extern "C" {
    /// A string of JavaScript, which may hold what no text of Rust can.
    #[wasm_bindgen(is_type_of = JsValue::is_string)]
    type Text;

    #[wasm_bindgen(method, js_name = isWellFormed)]
    fn is_well_formed(this: &Text) -> bool;
}

/// The data in a value; nothing when it is nested too deeply, or not plain.
pub(super) fn read(value: &JsValue) -> Option<Tree> {
    level(value, DEEPEST)
}

fn level(value: &JsValue, depth: usize) -> Option<Tree> {
    if value.is_null() || value.is_undefined() {
        return Some(Tree::Nothing);
    }
    if let Some(truth) = value.as_bool() {
        return Some(Tree::Truth(truth));
    }
    if let Some(number) = value.as_f64() {
        return Some(Tree::Number(number));
    }
    if let Some(text) = value.dyn_ref::<Text>() {
        return Some(if text.is_well_formed() { Tree::Text(value.as_string()?) } else { Tree::Broken });
    }
    let deeper = depth.checked_sub(1)?;
    if let Some(list) = value.dyn_ref::<Array>() {
        return list.iter().map(|value| level(&value, deeper)).collect::<Option<_>>().map(Tree::List);
    }
    let entries = Object::entries(value.dyn_ref::<Object>()?);
    let field = |entry: JsValue| {
        let entry: Array = entry.into();
        Some((entry.get(0).as_string()?, level(&entry.get(1), deeper)?))
    };
    entries.iter().map(field).collect::<Option<_>>().map(Tree::Table)
}
