//! What goes wrong between the platform and the core, as JavaScript sees it.

use wasm_bindgen::JsValue;

/// An error to be thrown in JavaScript: the core's carry their `code`, so that a caller can tell them apart.
#[derive(Debug)]
pub struct Fault {
    message: String,
    code: &'static str,
}

impl Fault {
    /// A failure of the platform or its storage.
    pub(super) fn new(message: &str) -> Self {
        Self { message: message.into(), code: "store" }
    }
}

impl From<crate::Error> for Fault {
    fn from(error: crate::Error) -> Self {
        Self { message: error.to_string(), code: error.code() }
    }
}

impl From<worker::Error> for Fault {
    fn from(error: worker::Error) -> Self {
        Self::new(&error.to_string())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self { message: error.to_string(), code: "json" }
    }
}

impl From<Fault> for JsValue {
    fn from(fault: Fault) -> Self {
        let error = js_sys::Error::new(&fault.message);
        // Setting a property on a fresh error cannot fail.
        let _ = js_sys::Reflect::set(&error, &"code".into(), &fault.code.into());
        error.into()
    }
}
