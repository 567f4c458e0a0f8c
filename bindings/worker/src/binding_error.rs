//! Errors that the binding throws in JavaScript.

use wasm_bindgen::JsValue;

use crate::api::request_error::RequestError;

/// An error of the binding, which JavaScript throws.
#[derive(Debug)]
pub enum BindingError {
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

impl From<tollgate::Error> for BindingError {
    fn from(error: tollgate::Error) -> Self {
        Self::Coded { code: error.code(), message: error.to_string() }
    }
}

impl From<RequestError> for BindingError {
    fn from(RequestError { code, message }: RequestError) -> Self {
        Self::Coded { code, message }
    }
}

impl From<JsValue> for BindingError {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

impl From<serde_wasm_bindgen::Error> for BindingError {
    fn from(error: serde_wasm_bindgen::Error) -> Self {
        Self::Platform(error.into())
    }
}

impl From<BindingError> for JsValue {
    fn from(error: BindingError) -> Self {
        match error {
            BindingError::Platform(thrown) => thrown,
            BindingError::Coded { code, message } => {
                let thrown = js_sys::Error::new(&message);
                // Setting a property on a new error cannot fail.
                let _ = js_sys::Reflect::set(&thrown, &"code".into(), &code.into());
                thrown.into()
            }
        }
    }
}
