//! Looks for tasks that break a promise.

use rusqlite::Connection;
use windlass_core::{Result, TaskId, store::Finding};

use crate::{reader::read_error, sql};

/// Findings beyond this number tell nothing new.
const FINDINGS_MAX: i64 = 1_000;

/// Everything that is wrong in the file.
pub(crate) fn audit(conn: &Connection) -> Result<Vec<Finding>> {
    let find = || -> rusqlite::Result<Vec<Finding>> {
        conn.prepare(sql::AUDIT)?
            .query_map([FINDINGS_MAX], |row| {
                Ok(Finding {
                    task: Some(TaskId::from_raw(row.get(0)?)),
                    promise: row.get(1)?,
                    detail: row.get(2)?,
                })
            })?
            .collect()
    };
    find().map_err(|error| read_error(&error))
}
