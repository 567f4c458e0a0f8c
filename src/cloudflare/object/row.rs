//! The one row of an object's storage, and its alarm.

use js_sys::{JsString, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::Error;
use crate::cloudflare::object::codec::{self, Stored};
use crate::cloudflare::object::random::random_bits;
use crate::cloudflare::object::states::States;
use crate::cloudflare::thrown::ThrownError;

#[wasm_bindgen]
extern "C" {
    /// `ctx.storage`, for two calls that the `worker` crate lacks.
    #[derive(Clone, Debug)]
    type RawStorage;

    #[wasm_bindgen(method, getter)]
    fn kv(this: &RawStorage) -> SyncKv;

    // Returns a promise that need not be awaited: the output gate delays every response until the alarm is stored.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    fn set_alarm(this: &RawStorage, time: f64) -> Result<JsValue, JsValue>;

    /// `ctx.storage.kv`: its table is not billed, unlike one that the object creates.
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
    /// The key of the row, as a JavaScript string so that it is not copied on every hit.
    static STATES: JsString = "states".into();
    /// The key of a row in quarantine.
    static UNREADABLE: JsString = "unreadable".into();
}

/// The least time from a write to a new alarm, in milliseconds. Hits do not move an alarm that is set.
const MIN_ALARM_DELAY: u64 = 600_000;

/// How long an unreadable row is kept, in milliseconds.
const QUARANTINE: u64 = 7 * 86_400_000;

/// The stored row of one key, and its alarm.
#[derive(Debug)]
pub(crate) struct Row {
    storage: RawStorage,
    kv: SyncKv,
    /// Whether there is a row.
    stored: bool,
    /// The time of the alarm; 0 if none is set.
    alarm: u64,
    /// The least time from a write to a new alarm, in milliseconds.
    kept_for: u64,
}

/// The error of loading a row.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The row is corrupt, or of a later format.
    Unreadable(Error),
    /// The platform failed.
    Platform(JsValue),
}

impl From<JsValue> for LoadError {
    fn from(thrown: JsValue) -> Self {
        Self::Platform(thrown)
    }
}

/// The storage of one key's states.
pub(crate) trait Storage {
    /// Returns the saved states.
    fn load(&mut self) -> Result<States, LoadError>;
    /// Sets how long a new row is kept at least, in milliseconds.
    fn keep_for(&mut self, time: u64);
    /// Replaces the row, and sets the alarm unless one is set.
    fn save(&mut self, states: &States, now: u64) -> Result<(), ThrownError>;
    /// Sets the alarm again without writing the row, which has not changed.
    fn renew_alarm(&mut self, states: &States, now: u64) -> Result<(), ThrownError>;
    /// Records that the alarm has fired.
    fn clear_alarm(&mut self);
    /// Sets an earlier alarm, which replaces the one of [`save`](Self::save) until it has fired.
    fn wake_at(&mut self, time: u64) -> Result<(), ThrownError>;
    /// Returns whether the alarm of [`save`](Self::save) is due, or none is set.
    fn is_due(&self, now: u64) -> bool;
    /// Records that there is no row and no alarm: the caller is about to delete the storage.
    fn clear(&mut self);
    /// Moves an unreadable row to another key, where it is kept for a week. Returns its bytes.
    fn quarantine(&mut self, now: u64) -> Result<Vec<u8>, ThrownError>;
    /// Returns 128 cryptographically random bits.
    fn random(&mut self) -> Result<u128, ThrownError>;
}

impl Row {
    pub(crate) fn new(storage: &worker::Storage) -> Self {
        let storage: RawStorage = storage.as_raw().unchecked_ref::<RawStorage>().clone();
        Self { kv: storage.kv(), storage, stored: false, alarm: 0, kept_for: MIN_ALARM_DELAY }
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

    fn keep_for(&mut self, time: u64) {
        self.kept_for = MIN_ALARM_DELAY.max(time);
    }

    fn save(&mut self, states: &States, now: u64) -> Result<(), ThrownError> {
        if states.0.is_empty() {
            return self.delete();
        }
        let alarm = self.next_alarm(states, now);
        let bytes = Uint8Array::from(codec::encode(alarm, states).as_slice());
        STATES.with(|key| self.kv.put(key, &bytes))?;
        self.stored = true;
        self.set_alarm(alarm)
    }

    fn renew_alarm(&mut self, states: &States, now: u64) -> Result<(), ThrownError> {
        let alarm = self.next_alarm(states, now);
        self.set_alarm(alarm)
    }

    fn clear_alarm(&mut self) {
        self.alarm = 0;
    }

    fn wake_at(&mut self, time: u64) -> Result<(), ThrownError> {
        self.storage.set_alarm(time as f64)?;
        Ok(())
    }

    fn is_due(&self, now: u64) -> bool {
        self.alarm <= now
    }

    fn clear(&mut self) {
        (self.stored, self.alarm) = (false, 0);
    }

    fn quarantine(&mut self, now: u64) -> Result<Vec<u8>, ThrownError> {
        let value = STATES.with(|key| self.kv.get(key))?;
        UNREADABLE.with(|key| self.kv.put(key, &value))?;
        self.delete()?;
        self.set_alarm(now + QUARANTINE)?;
        Ok(bytes_of(&value))
    }

    fn random(&mut self) -> Result<u128, ThrownError> {
        random_bits()
    }
}

impl Row {
    fn delete(&mut self) -> Result<(), ThrownError> {
        if self.stored {
            STATES.with(|key| self.kv.delete(key))?;
            self.stored = false;
        }
        Ok(())
    }

    /// Returns the alarm that is set, or else the later of the key's end and the least time from now. An alarm that
    /// fires too early finds the key in use and is set again, so hits need not move it.
    fn next_alarm(&self, states: &States, now: u64) -> u64 {
        if self.alarm > now { self.alarm } else { states.ends().max(now + self.kept_for) }
    }

    fn set_alarm(&mut self, alarm: u64) -> Result<(), ThrownError> {
        if alarm != self.alarm {
            self.storage.set_alarm(alarm as f64)?;
            self.alarm = alarm;
        }
        Ok(())
    }
}

/// Returns the bytes of a stored value; empty if it is not a `Uint8Array`.
fn bytes_of(value: &JsValue) -> Vec<u8> {
    value.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec).unwrap_or_default()
}
