//! Errors as JavaScript sees them.

use wasm_bindgen::JsValue;

use crate::items::Refusal;

/// An error to be thrown in JavaScript.
#[derive(Debug)]
pub enum Fault {
    /// With a `code`, so that a caller can tell errors apart.
    Mistake {
        /// The stable name of the error.
        code: &'static str,
        /// The message.
        message: String,
    },
    /// An error of the platform, unchanged.
    Platform(JsValue),
}

impl From<tollgate::Error> for Fault {
    fn from(error: tollgate::Error) -> Self {
        Self::Mistake { code: error.code(), message: error.to_string() }
    }
}

impl From<Refusal> for Fault {
    fn from(Refusal { code, message }: Refusal) -> Self {
        Self::Mistake { code, message }
    }
}

impl From<JsValue> for Fault {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

impl From<serde_wasm_bindgen::Error> for Fault {
    fn from(error: serde_wasm_bindgen::Error) -> Self {
        Self::Platform(error.into())
    }
}

impl From<Fault> for JsValue {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Platform(thrown) => thrown,
            Fault::Mistake { code, message } => {
                let error = js_sys::Error::new(&message);
                // Setting a property on a fresh error cannot fail.
                let _ = js_sys::Reflect::set(&error, &"code".into(), &code.into());
                error.into()
            }
        }
    }
}
