//! Errors as JavaScript sees them.

use wasm_bindgen::JsValue;

/// An error to be thrown in JavaScript.
#[derive(Debug)]
pub enum Fault {
    /// With a `code`, so that a caller can tell errors apart.
    Coded {
        /// The stable name of the error.
        code: &'static str,
        /// The message.
        message: String,
    },
    /// An error of the platform, unchanged.
    Platform(JsValue),
}

impl From<crate::Error> for Fault {
    fn from(error: crate::Error) -> Self {
        Self::Coded { code: error.code(), message: error.to_string() }
    }
}

impl From<JsValue> for Fault {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

impl From<Fault> for JsValue {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Platform(thrown) => thrown,
            Fault::Coded { code, message } => {
                let error = js_sys::Error::new(&message);
                // Setting a property on a fresh error cannot fail.
                let _ = js_sys::Reflect::set(&error, &"code".into(), &code.into());
                error.into()
            }
        }
    }
}
