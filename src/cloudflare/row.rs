//! The one row of an object's database, and its alarm.

use js_sys::{Array, JsString, Uint8Array};
use wasm_bindgen::prelude::*;
use worker_sys::types::{SqlStorage, SqlStorageCursor};

use super::codec;
use super::fault::Fault;
use super::states::States;

#[wasm_bindgen]
extern "C" {
    /// `ctx.storage`: as much of it as is used here.
    pub type Storage;

    #[wasm_bindgen(method, getter)]
    fn sql(this: &Storage) -> SqlStorage;

    /// `storage.sql`, for the statement that most hits end with: its values are no list that has to be made first.
    type Saver;

    #[wasm_bindgen(method, catch, js_name = exec)]
    fn save(this: &Saver, query: &JsString, states: &[u8], alarm: f64) -> Result<(), JsValue>;

    // The answer is a promise; what follows is held back until it is kept, so nothing waits for it.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    fn set_alarm(this: &Storage, time: f64) -> Result<JsValue, JsValue>;
}

thread_local! {
    /// A string of JavaScript's own, so that it need not be copied from here every time.
    static SAVE: JsString = "INSERT OR REPLACE INTO state (id, states, alarm) VALUES (0, ?, ?)".into();
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Storage")
    }
}

/// How long a key is left alone before its alarm: hits within that time need not move it.
const REST: u64 = 600_000;

/// Where everything is that there is to know of one key.
#[derive(Debug)]
pub(super) struct Row {
    storage: Storage,
    sql: SqlStorage,
    has_table: bool,
    /// When the alarm was last set to ring; 0 when it never was, or has rung.
    alarm: u64,
}

impl Row {
    pub(super) fn new(storage: Storage) -> Self {
        Self { sql: storage.sql(), storage, has_table: false, alarm: 0 }
    }

    /// What was last saved. A key that was never used has no table, and is not given one.
    pub(super) fn load(&mut self) -> Result<States, Fault> {
        if first(&self.exec("SELECT 1 FROM sqlite_master WHERE name = 'state'", &Array::new())?)?.is_none() {
            return Ok(States::default());
        }
        self.has_table = true;
        let cursor = self.exec("SELECT states, alarm FROM state", &Array::new())?;
        let Some(columns) = first(&cursor)? else { return Ok(States::default()) };
        self.alarm = columns.get(1).as_f64().unwrap_or_default() as u64;
        Ok(codec::decode(&Uint8Array::new(&columns.get(0)).to_vec())?)
    }

    /// Replaces what was saved: one row written, and now and then an alarm set.
    pub(super) fn save(&mut self, states: &States, now: u64) -> Result<(), Fault> {
        if states.0.is_empty() {
            return self.delete();
        }
        self.make_table()?;
        // An alarm that rings too early finds the key in use, and is set again; so it need not follow every hit.
        let late = self.alarm <= now;
        // The later of the key's end and some time from now.
        let alarm = if late { states.ends().max(now + REST) } else { self.alarm };
        let saver: &Saver = self.sql.unchecked_ref();
        SAVE.with(|query| saver.save(query, &codec::encode(states), alarm as f64))?;
        if late {
            self.storage.set_alarm(alarm as f64)?;
            self.alarm = alarm;
        }
        Ok(())
    }

    /// Knows that the alarm has rung, so that what is saved next sets it again.
    pub(super) fn rung(&mut self) {
        self.alarm = 0;
    }

    /// Forgets what is known of the storage: it is about to be emptied.
    pub(super) fn emptied(&mut self) {
        (self.has_table, self.alarm) = (false, 0);
    }

    fn delete(&mut self) -> Result<(), Fault> {
        if self.has_table {
            self.exec("DELETE FROM state", &Array::new())?;
            // The next row has to know of an alarm: setting it again is the way to be sure.
            self.alarm = 0;
        }
        Ok(())
    }

    fn make_table(&mut self) -> Result<(), Fault> {
        if !self.has_table {
            let columns = "id INTEGER PRIMARY KEY, states BLOB NOT NULL, alarm INTEGER NOT NULL";
            self.exec(&format!("CREATE TABLE IF NOT EXISTS state ({columns})"), &Array::new())?;
            self.has_table = true;
        }
        Ok(())
    }

    fn exec(&self, query: &str, values: &Array) -> Result<SqlStorageCursor, Fault> {
        Ok(self.sql.exec(query, values.clone())?)
    }
}

/// The first row of an answer, as a list of columns.
fn first(cursor: &SqlStorageCursor) -> Result<Option<Array>, Fault> {
    let next = cursor.raw().next()?;
    Ok(if next.done() { None } else { Some(next.value().into()) })
}
