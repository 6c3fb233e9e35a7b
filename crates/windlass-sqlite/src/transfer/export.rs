//! Everything in a store, row by row, for a copy into another sort of store.
//!
//! The store itself is only read, under its lock. The rows come from a snapshot beside it. The snapshot was
//! opened as a store once, so tasks of dead workers are recovered and no task runs. `close` removes the
//! snapshot.

use std::{
    hash::{DefaultHasher, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, Params, Row, types::ValueRef};
use windlass_core::{
    Result, State, Store,
    transfer::{
        Counts, HistoryRow, JobRow, KeyRow, LaneRow, Marks, Part, PausedQueueRow, Rows, ScheduleRow, TaskRow,
        WorkflowRow,
    },
};

use crate::{
    connection::{
        error::OpenError,
        lock::{Lock, lock_path},
        open,
        options::{Durability, Location, Options},
        reader::{self, read_error},
    },
    sql,
    store::SqliteStore,
    transfer::{
        backup,
        restore::{remove_store, with_suffix},
    },
    upkeep::migrate::{self, MIGRATIONS},
};

/// A batch is full after so many bytes of payloads and outputs.
const BATCH_BYTES: usize = 4 << 20;
/// What identifies a source: every table that is copied, and the workers.
const TABLES: [&str; 10] =
    ["figure", "lane", "paused_queue", "worker", "key", "task", "job", "workflow", "schedule", "history"];

/// A store that is being copied.
#[derive(Debug)]
pub struct Export {
    snapshot: PathBuf,
    store: Arc<SqliteStore>,
    conn: Connection,
    id: i64,
    _lock: Lock,
}

impl Export {
    /// Locks a store, makes a snapshot beside it and recovers the snapshot's running tasks.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if a process has the store, [`OpenError::NoSuchStore`] if there is none.
    pub async fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        if !path.is_file() {
            return Err(OpenError::NoSuchStore(path.to_owned()));
        }
        let lock = Lock::take(path, None)?;
        let snapshot = with_suffix(path, ".copying");
        remove_snapshot(&snapshot)?;
        let id = prepare(path, &snapshot, &options)?;
        // The snapshot is temporary, so its writes need no sync.
        let mut options = options.durability(Durability::Normal).existing_only();
        options.nobody_lives = true;
        let store = SqliteStore::open(&Location::File(snapshot.clone()), options).await?;
        let conn =
            reader::connect(&snapshot).map_err(|error| OpenError::sqlite(&snapshot, "read", &error))?;
        Ok(Self { snapshot, store, conn, id, _lock: lock })
    }

    /// A number that identifies this source in its current state: it changes with any row.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The snapshot, opened as a store.
    pub fn store(&self) -> &Arc<SqliteStore> {
        &self.store
    }

    /// The highest values of the store's counters.
    ///
    /// # Errors
    /// If the snapshot cannot be read.
    pub fn marks(&self) -> Result<Marks> {
        let marks = self.conn.query_row(sql::EXPORT_MARKS, [], |row| {
            let first_end: Option<i64> = row.get(3)?;
            Ok(Marks {
                last_id: row.get(0)?,
                last_seq: row.get(1)?,
                last_worker: row.get(2)?,
                ended: first_end.zip(row.get(4)?),
            })
        });
        marks.map_err(|error| read_error(&error))
    }

    /// How many rows there are of each sort.
    ///
    /// # Errors
    /// If the snapshot cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let count = || -> rusqlite::Result<Counts> {
            let mut statement = self.conn.prepare(sql::EXPORT_COUNTS)?;
            let mut rows = statement.query([])?;
            let mut counts = Counts::new();
            while let Some(row) = rows.next()? {
                let state = row.get::<_, Option<i64>>(0)?;
                let name = match state.map(|code| State::from_code(code).map_or("unknown", State::as_str)) {
                    Some(state) => state.to_owned(),
                    None => row.get(1)?,
                };
                *counts.entry(name).or_default() += row.get::<_, i64>(2)? as u64;
            }
            Ok(counts)
        };
        count().map_err(|error| read_error(&error))
    }

    /// The rows of a part, after the first `skip`.
    pub fn rows(&self, part: Part, skip: u64) -> Stream<'_> {
        Stream { conn: &self.conn, part, skip, after: Place::default() }
    }

    /// Removes the snapshot.
    ///
    /// # Errors
    /// If the snapshot cannot be closed or removed.
    pub async fn close(self) -> Result<()> {
        self.store.close().await?;
        let Self { snapshot, store, conn, .. } = self;
        drop((store, conn));
        remove_snapshot(&snapshot).map_err(|error| windlass_core::Error::Unavailable(error.to_string()))
    }
}

/// Makes the snapshot; returns the number that identifies the source.
fn prepare(path: &Path, snapshot: &Path, options: &Options) -> Result<i64, OpenError> {
    let source = reader::connect(path).map_err(|error| OpenError::sqlite(path, "read", &error))?;
    migrate::check(&source, path, MIGRATIONS)?.ok_or_else(|| OpenError::NotADatabase(path.to_owned()))?;
    backup::copy(&source, snapshot).map_err(|error| OpenError::sqlite(snapshot, "write", &error))?;
    let conn = open::connect(Some(snapshot), MIGRATIONS)?;
    migrate::migrate(&conn, None, MIGRATIONS)?;
    digest(&conn, options).map_err(|error| OpenError::sqlite(snapshot, "read", &error))
}

/// A digest of all rows, and of the settings that recovery uses: other settings would recover other rows.
fn digest(conn: &Connection, options: &Options) -> rusqlite::Result<i64> {
    let mut hash = DefaultHasher::new();
    hash.write_u32(options.rules.max_crashes);
    hash.write(format!("{:?}", options.history).as_bytes());
    for table in TABLES {
        hash.write(table.as_bytes());
        // In the order of the primary key, as stored.
        let mut statement = conn.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Null => hash.write_u8(0),
                    ValueRef::Integer(number) => hash.write_i64(number),
                    ValueRef::Real(number) => hash.write_u64(number.to_bits()),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                        hash.write_usize(bytes.len());
                        hash.write(bytes);
                    }
                }
            }
        }
    }
    Ok(hash.finish() as i64)
}

fn remove_snapshot(snapshot: &Path) -> Result<(), OpenError> {
    remove_store(snapshot)?;
    let lock = lock_path(snapshot);
    match std::fs::remove_file(&lock) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(OpenError::io(&lock, "remove", &error))
        }
        _ => Ok(()),
    }
}

/// The position of a stream: after this row, in the order of its part.
#[derive(Debug, Clone, Default)]
struct Place {
    id: i64,
    name: String,
    key: String,
}

/// The rows of one part, in order.
#[derive(Debug)]
pub struct Stream<'a> {
    conn: &'a Connection,
    part: Part,
    skip: u64,
    after: Place,
}

impl Stream<'_> {
    /// The next rows: at most `most`, fewer if they are large, none at the end.
    ///
    /// # Errors
    /// If the snapshot cannot be read.
    pub fn next(&mut self, most: usize) -> Result<Rows> {
        let most = most as i64;
        let rows = match self.part {
            Part::Lanes => self.by_id(sql::EXPORT_LANES, most, lane, |row| row.id).map(Rows::Lanes),
            Part::Tasks => self.by_id(sql::EXPORT_TASKS, most, task, |row| row.id).map(Rows::Tasks),
            Part::History => self.by_id(sql::EXPORT_HISTORY, most, history, |row| row.id).map(Rows::History),
            Part::PausedQueues => {
                self.by_name(sql::EXPORT_PAUSED, most, paused_queue, |row| &row.queue).map(Rows::PausedQueues)
            }
            Part::Jobs => self.by_name(sql::EXPORT_JOBS, most, job, |row| &row.name).map(Rows::Jobs),
            Part::Workflows => {
                self.by_name(sql::EXPORT_WORKFLOWS, most, workflow, |row| &row.name).map(Rows::Workflows)
            }
            Part::Schedules => {
                self.by_name(sql::EXPORT_SCHEDULES, most, schedule, |row| &row.name).map(Rows::Schedules)
            }
            Part::Keys => self.keys(most).map(Rows::Keys),
        };
        // Only the first query skips rows; later ones continue from their position.
        self.skip = 0;
        rows.map_err(|error| read_error(&error))
    }

    fn by_id<T>(
        &mut self,
        sql: &str,
        most: i64,
        read: impl Fn(&Row<'_>, &mut usize) -> rusqlite::Result<T>,
        id: impl Fn(&T) -> i64,
    ) -> rusqlite::Result<Vec<T>> {
        let rows = self.query(sql, (self.after.id, most, self.skip as i64), read)?;
        self.after.id = rows.last().map_or(self.after.id, id);
        Ok(rows)
    }

    fn by_name<T>(
        &mut self,
        sql: &str,
        most: i64,
        read: impl Fn(&Row<'_>, &mut usize) -> rusqlite::Result<T>,
        name: impl Fn(&T) -> &str,
    ) -> rusqlite::Result<Vec<T>> {
        let rows = self.query(sql, (&self.after.name, most, self.skip as i64), read)?;
        if let Some(last) = rows.last() {
            name(last).clone_into(&mut self.after.name);
        }
        Ok(rows)
    }

    fn keys(&mut self, most: i64) -> rusqlite::Result<Vec<KeyRow>> {
        let after = (&self.after.name, &self.after.key, most, self.skip as i64);
        let rows = self.query(sql::EXPORT_KEYS, after, key)?;
        if let Some(last) = rows.last() {
            self.after.name.clone_from(&last.queue);
            self.after.key.clone_from(&last.key);
        }
        Ok(rows)
    }

    /// Reads until there are enough rows or bytes.
    fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>, &mut usize) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(row) = rows.next()?
        {
            found.push(read(row, &mut bytes)?);
        }
        Ok(found)
    }
}

fn lane(row: &Row<'_>, _bytes: &mut usize) -> rusqlite::Result<LaneRow> {
    Ok(LaneRow { id: row.get(0)?, queue: row.get(1)?, kind: row.get(2)? })
}

fn paused_queue(row: &Row<'_>, _bytes: &mut usize) -> rusqlite::Result<PausedQueueRow> {
    Ok(PausedQueueRow { queue: row.get(0)?, paused_at: row.get(1)? })
}

fn job(row: &Row<'_>, _bytes: &mut usize) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        name: row.get(0)?,
        state: row.get(1)?,
        concurrency: small(row.get(2)?),
        delay_ms: row.get(3)?,
        last_start: row.get(4)?,
        is_over_limit: row.get(5)?,
        is_at_limit: row.get(6)?,
        gone_before: row.get(7)?,
        created_at: row.get(8)?,
    })
}

/// A limit as other stores keep it: above two thousand million it has no effect.
fn small(number: Option<i64>) -> Option<i32> {
    number.map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}

fn workflow(row: &Row<'_>, _bytes: &mut usize) -> rusqlite::Result<WorkflowRow> {
    Ok(WorkflowRow {
        name: row.get(0)?,
        on_failure: row.get(1)?,
        blocked_by: row.get(2)?,
        forgiven_step: row.get(3)?,
        created_at: row.get(4)?,
    })
}

fn schedule(row: &Row<'_>, bytes: &mut usize) -> rusqlite::Result<ScheduleRow> {
    let spec: String = row.get(1)?;
    *bytes += spec.len();
    Ok(ScheduleRow {
        name: row.get(0)?,
        spec,
        paused: row.get(2)?,
        next_at: row.get(3)?,
        last_at: row.get(4)?,
        last_task: row.get(5)?,
    })
}

fn task(row: &Row<'_>, bytes: &mut usize) -> rusqlite::Result<TaskRow> {
    let (log, payload): (Option<String>, Vec<u8>) = (row.get(24)?, row.get(26)?);
    *bytes += payload.len() + log.as_ref().map_or(0, String::len);
    Ok(TaskRow {
        id: row.get(0)?,
        lane: row.get(1)?,
        state: row.get(2)?,
        priority: row.get(3)?,
        ready_seq: row.get(4)?,
        due_at: row.get(5)?,
        ended_at: row.get(6)?,
        lease: row.get(7)?,
        attempt: row.get(8)?,
        max_attempts: row.get(9)?,
        crashes: row.get(10)?,
        worker: row.get(11)?,
        claim_no: row.get(12)?,
        claimed_at: row.get(13)?,
        timeout_ms: row.get(14)?,
        retry: row.get(15)?,
        job: row.get(16)?,
        workflow: row.get(17)?,
        step: row.get(18)?,
        on_failure: row.get(19)?,
        key: row.get(20)?,
        cancel: row.get(21)?,
        progress: row.get(22)?,
        error: row.get(23)?,
        log,
        encoding: row.get(25)?,
        payload,
        trace: row.get(27)?,
    })
}

fn history(row: &Row<'_>, bytes: &mut usize) -> rusqlite::Result<HistoryRow> {
    let (output, payload): (Option<Vec<u8>>, Vec<u8>) = (row.get(19)?, row.get(21)?);
    *bytes += payload.len() + output.as_ref().map_or(0, Vec::len);
    Ok(HistoryRow {
        id: row.get(0)?,
        lane: row.get(1)?,
        state: row.get(2)?,
        priority: row.get(3)?,
        ran: row.get(4)?,
        started_at: row.get(5)?,
        ended_at: row.get(6)?,
        lease: row.get(7)?,
        attempt: row.get(8)?,
        max_attempts: row.get(9)?,
        worker: row.get(10)?,
        timeout_ms: row.get(11)?,
        job: row.get(12)?,
        workflow: row.get(13)?,
        key: row.get(14)?,
        progress: row.get(15)?,
        error: row.get(16)?,
        log: row.get(17)?,
        output_encoding: row.get(18)?,
        output,
        encoding: row.get(20)?,
        payload,
    })
}

fn key(row: &Row<'_>, _bytes: &mut usize) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow { queue: row.get(0)?, key: row.get(1)?, task: row.get(2)?, expires_at: row.get(3)? })
}
