//! Errors that the object and the gateway throw in JavaScript.

use wasm_bindgen::JsValue;

/// An error that JavaScript throws.
#[derive(Debug)]
pub enum ThrownError {
    /// An error with a stable `code`, for programs.
    Coded {
        /// The stable name of the error.
        code: &'static str,
        /// The message.
        message: String,
    },
    /// An error of the platform, unchanged.
    Platform(JsValue),
}

impl From<crate::Error> for ThrownError {
    fn from(error: crate::Error) -> Self {
        Self::Coded { code: error.code(), message: error.to_string() }
    }
}

impl From<JsValue> for ThrownError {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

impl From<ThrownError> for JsValue {
    fn from(error: ThrownError) -> Self {
        match error {
            ThrownError::Platform(thrown) => thrown,
            ThrownError::Coded { code, message } => {
                let thrown = js_sys::Error::new(&message);
                // Setting a property on a new error cannot fail.
                let _ = js_sys::Reflect::set(&thrown, &"code".into(), &code.into());
                thrown.into()
            }
        }
    }
}
