//! The one row of an object's storage, and its alarm.

use js_sys::{JsString, Uint8Array};
use wasm_bindgen::prelude::*;

use super::codec::{self, Stored};
use super::object_error::ObjectError;
use super::random::random_bits;
use super::states::States;
use crate::Error;

#[wasm_bindgen]
extern "C" {
    /// `ctx.storage`, for two calls that the `worker` crate does not have.
    #[derive(Clone, Debug)]
    type RawStorage;

    #[wasm_bindgen(method, getter)]
    fn kv(this: &RawStorage) -> SyncKv;

    // Returns a promise that need not be awaited: the output gate holds every response back until it is kept.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    fn set_alarm(this: &RawStorage, time: f64) -> Result<JsValue, JsValue>;

    /// `ctx.storage.kv`: its table is not billed to the object, unlike one that the object creates.
    #[derive(Clone, Debug)]
    type SyncKv;

    #[wasm_bindgen(method, catch)]
    fn get(this: &SyncKv, key: &JsString) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn put(this: &SyncKv, key: &JsString, value: &JsValue) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn delete(this: &SyncKv, key: &JsString) -> Result<bool, JsValue>;
}

thread_local! {
    /// The key of the row, as a string of JavaScript's own: it need not be copied on every hit.
    static STATES: JsString = "states".into();
    /// The key of a row that could not be read.
    static UNREADABLE: JsString = "unreadable".into();
}

/// How long a key is left alone before its alarm: hits within that time do not move it.
const REST: u64 = 600_000;

/// How long a row that could not be read is kept.
const KEPT_ASIDE: u64 = 7 * 86_400_000;

/// Where the states of one key are stored.
#[derive(Debug)]
pub(super) struct Row {
    storage: RawStorage,
    kv: SyncKv,
    /// Whether there is a row.
    stored: bool,
    /// When the alarm was last set to ring; 0 if it never was, or has rung.
    alarm: u64,
}

/// Why a row was not loaded.
#[derive(Debug)]
pub(super) enum LoadError {
    /// It is corrupt, or of a later format.
    Unreadable(Error),
    /// The platform failed.
    Platform(JsValue),
}

impl From<JsValue> for LoadError {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

/// A storage of the states of one key.
pub(super) trait Storage {
    /// Returns the states that were last saved.
    fn load(&mut self) -> Result<States, LoadError>;
    /// Replaces the row, and sets the alarm if none is due.
    fn save(&mut self, states: &States, now: u64) -> Result<(), ObjectError>;
    /// Sets the alarm again after it has rung, for a key whose row is still right: the row need not know of it.
    fn ring_again(&mut self, states: &States, now: u64) -> Result<(), ObjectError>;
    /// Records that the alarm has rung.
    fn rung(&mut self);
    /// Forgets what is known of the storage: it is about to be emptied.
    fn emptied(&mut self);
    /// Moves a row that cannot be read out of the way, where it is kept for a week. Returns its bytes.
    fn set_aside(&mut self, now: u64) -> Result<Vec<u8>, ObjectError>;
    /// Returns 128 bits that nobody can guess.
    fn random(&mut self) -> Result<u128, ObjectError>;
}

impl Row {
    pub(super) fn new(storage: &worker::Storage) -> Self {
        let storage: RawStorage = storage.as_raw().unchecked_ref::<RawStorage>().clone();
        Self { kv: storage.kv(), storage, stored: false, alarm: 0 }
    }
}

impl Storage for Row {
    fn load(&mut self) -> Result<States, LoadError> {
        let value = STATES.with(|key| self.kv.get(key))?;
        if value.is_undefined() {
            return Ok(States::default());
        }
        self.stored = true;
        let Stored { alarm, states } = codec::decode(&bytes_of(&value)).map_err(LoadError::Unreadable)?;
        self.alarm = alarm;
        Ok(states)
    }

    fn save(&mut self, states: &States, now: u64) -> Result<(), ObjectError> {
        if states.0.is_empty() {
            return self.delete();
        }
        let alarm = self.next_alarm(states, now);
        let bytes = Uint8Array::from(codec::encode(alarm, states).as_slice());
        STATES.with(|key| self.kv.put(key, &bytes))?;
        self.stored = true;
        self.set_alarm(alarm)
    }

    fn ring_again(&mut self, states: &States, now: u64) -> Result<(), ObjectError> {
        let alarm = self.next_alarm(states, now);
        self.set_alarm(alarm)
    }

    fn rung(&mut self) {
        self.alarm = 0;
    }

    fn emptied(&mut self) {
        (self.stored, self.alarm) = (false, 0);
    }

    fn set_aside(&mut self, now: u64) -> Result<Vec<u8>, ObjectError> {
        let value = STATES.with(|key| self.kv.get(key))?;
        UNREADABLE.with(|key| self.kv.put(key, &value))?;
        self.delete()?;
        self.set_alarm(now + KEPT_ASIDE)?;
        Ok(bytes_of(&value))
    }

    fn random(&mut self) -> Result<u128, ObjectError> {
        random_bits()
    }
}

impl Row {
    fn delete(&mut self) -> Result<(), ObjectError> {
        if self.stored {
            STATES.with(|key| self.kv.delete(key))?;
            self.stored = false;
        }
        Ok(())
    }

    /// Returns the alarm that is due, or the later of the key's end and some time from now. An alarm that rings too
    /// early finds the key in use and is set again, so it need not follow every hit.
    fn next_alarm(&self, states: &States, now: u64) -> u64 {
        if self.alarm > now { self.alarm } else { states.ends().max(now + REST) }
    }

    fn set_alarm(&mut self, alarm: u64) -> Result<(), ObjectError> {
        if alarm != self.alarm {
            self.storage.set_alarm(alarm as f64)?;
            self.alarm = alarm;
        }
        Ok(())
    }
}

/// Returns the bytes of a stored value; none if it is anything else.
fn bytes_of(value: &JsValue) -> Vec<u8> {
    value.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec).unwrap_or_default()
}
