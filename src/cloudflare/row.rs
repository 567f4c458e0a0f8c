//! The one row of an object's database.

use worker::{SqlStorage, SqlStorageValue};

use super::fault::Fault;
use crate::Record;

/// The row that holds everything there is to know of one key.
#[derive(Debug)]
pub(super) struct Row {
    sql: SqlStorage,
}

impl Row {
    /// Makes the table where there is none yet.
    pub(super) fn open(sql: SqlStorage) -> Result<Self, Fault> {
        sql.exec("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, record TEXT NOT NULL)", None)?;
        Ok(Self { sql })
    }

    /// What was last saved.
    pub(super) fn load(&self) -> Result<Option<Record>, Fault> {
        let cursor = self.sql.exec("SELECT record FROM state WHERE id = 0", None)?;
        let Some(columns) = cursor.raw().next() else {
            return Ok(None);
        };
        match columns?.pop() {
            Some(SqlStorageValue::String(text)) => Ok(Some(serde_json::from_str(&text)?)),
            _ => Err(Fault::new("what is stored is not a record")),
        }
    }

    /// Replaces what was saved: one row written.
    pub(super) fn save(&self, record: Option<&Record>) -> Result<(), Fault> {
        match record {
            Some(record) => {
                let text = SqlStorageValue::String(serde_json::to_string(record)?);
                self.sql.exec("INSERT OR REPLACE INTO state (id, record) VALUES (0, ?)", vec![text])?
            }
            None => self.sql.exec("DELETE FROM state WHERE id = 0", None)?,
        };
        Ok(())
    }
}
