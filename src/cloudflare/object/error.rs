//! Errors that the object throws in JavaScript.

use wasm_bindgen::JsValue;

/// An error of the object, which JavaScript throws.
#[derive(Debug)]
pub enum ObjectError {
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

impl From<crate::Error> for ObjectError {
    fn from(error: crate::Error) -> Self {
        Self::Coded { code: error.code(), message: error.to_string() }
    }
}

impl From<JsValue> for ObjectError {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

impl From<ObjectError> for JsValue {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Platform(thrown) => thrown,
            ObjectError::Coded { code, message } => {
                let thrown = js_sys::Error::new(&message);
                // Setting a property on a new error cannot fail.
                let _ = js_sys::Reflect::set(&thrown, &"code".into(), &code.into());
                thrown.into()
            }
        }
    }
}
