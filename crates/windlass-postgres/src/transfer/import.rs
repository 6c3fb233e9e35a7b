//! Imports a whole store from another one, in batches. Each batch commits together with a note of the rows
//! done.
//!
//! ```text
//!  begin ──► take ──► take ──► … ──► finish
//!    ▲         │        │
//!    └─────────┴────────┘   killed: the next process begins where the last commit was
//! ```
//!
//! During the copy every queue of the source is paused, so that a worker that starts too early takes nothing.
//! The note stays in `meta` afterwards: the same source is not copied twice, and another one is refused.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_postgres::Row;
use windlass_core::{
    Error, Result, State, TaskId,
    transfer::{Counts, LaneRow, Marks, Part, Rows},
};

use crate::{
    connection::{
        conn::{Commits, Conn, Server},
        driver::Driver,
        error::{Failure, OpenError},
        options::{Location, Options},
    },
    sql,
    transfer::rows,
    upkeep::migrate::{self, MIGRATIONS},
};

/// Bits of a position that count rows; the bits above them number the part.
const ROW_BITS: u32 = 48;
/// How far the newest id may be ahead of the server's clock. The copy waits that long at its end, so that new
/// ids are larger.
const AHEAD_MAX: Duration = Duration::from_mins(1);
/// How long a statement may take: at the end all rows are counted.
const STATEMENT_TIMEOUT: Duration = Duration::from_mins(30);
/// How often the clock is read meanwhile.
const CLOCK_LOOK: Duration = Duration::from_millis(100);
/// The most parts that are made for the copied history. Each is dropped whole, so a few hours make no
/// difference.
const PARTS_MAX: i64 = 168;
/// The shortest time that a part covers.
const HOUR_MS: i64 = 3_600_000;

/// A schema that a store is copied into.
pub struct Import {
    conn: Conn,
    _driver: Driver,
    schema: crate::sql::Schema,
    position: i64,
    /// Lanes of the source, by their numbers in this schema.
    lanes: HashMap<i64, i32>,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// These rows of this part are copied, and all parts before it. Nothing is copied if it is the first part
    /// and no row.
    At {
        /// The part.
        part: Part,
        /// Its rows that are copied.
        rows: u64,
    },
    /// Everything is copied.
    Done,
}

impl Import {
    /// Connects to a schema. It must exist, unless the options say that the caller wants it made.
    ///
    /// # Errors
    /// [`OpenError`], one line that says what to do.
    pub async fn connect(location: &Location, options: &Options) -> Result<Self, OpenError> {
        let unreachable = |reason: String| OpenError::Unreachable { location: location.to_string(), reason };
        let driver = Driver::start("windlass-copy").map_err(|error| unreachable(error.to_string()))?;
        let options = Options { statement_timeout: STATEMENT_TIMEOUT, ..options.clone() };
        let server = Arc::new(Server::new(location, &options).map_err(OpenError::Invalid)?);
        let conn = server
            .connect(&driver, "copy", &server.patience(), Commits::Safe)
            .await
            .map_err(|refusal| unreachable(refusal.text))?;
        let schema = options.schema.clone();
        if options.migrate {
            migrate::apply(&conn, location, &schema, MIGRATIONS).await?;
        } else {
            migrate::check_server(&conn, location).await?;
            let (shown, name) = (location.to_string(), schema.as_str().to_owned());
            let needed = migrate::newest(MIGRATIONS);
            match migrate::check(&conn, location, &schema, MIGRATIONS).await? {
                None => return Err(OpenError::NoSchema { location: shown, schema: name }),
                Some(found) if found.version < needed => {
                    let found = found.version;
                    return Err(OpenError::OlderSchema { location: shown, schema: name, found, needed });
                }
                Some(_) => {}
            }
        }
        Ok(Self { conn, _driver: driver, schema, position: 0, lanes: HashMap::new() })
    }

    /// Reads what the schema contains, and begins, or goes on where an earlier copy of the same source was
    /// interrupted. `lanes` must be all lanes of the source.
    ///
    /// # Errors
    /// [`Error::Conflict`] if workers are live, if the schema already contains rows that are not of this
    /// source, or if the source's clock is ahead.
    pub async fn begin(&mut self, source: i64, marks: &Marks, lanes: &[LaneRow]) -> Result<Progress> {
        let name = self.schema.as_str().to_owned();
        let rows = self.conn.query_alone(&sql::COPY_STATE, &[]).await?;
        let Some(state) = rows.first() else {
            return Err(Error::Unavailable("the server did not describe the schema".to_owned()));
        };
        let workers: i64 = state.get(0);
        if workers > 0 {
            let (are, them) = if workers == 1 { ("worker is", "it") } else { ("workers are", "them") };
            return Err(Error::Conflict(format!(
                "{workers} {are} live on schema {name:?}; stop {them}, then copy"
            )));
        }
        let (has_tasks, has_other): (bool, bool) = (state.get(1), state.get(2));
        let (known, position): (Option<i64>, Option<i64>) = (state.get(3), state.get(4));
        match known.zip(position) {
            None if has_tasks || has_other => {
                let what = if has_tasks { "tasks" } else { "jobs, schedules, keys or paused queues" };
                return Err(Error::Conflict(format!(
                    "schema {name:?} already holds {what} of its own; name an empty schema with --schema, or drop this one"
                )));
            }
            None => {
                refuse_ahead(marks, state.get(5))?;
                if self.conn.query_alone(&sql::COPY_BEGIN, &[&source]).await?.is_empty() {
                    return Err(taken_over());
                }
            }
            Some((known, _)) if known != source => {
                return Err(Error::Conflict(format!(
                    "schema {name:?} has a copy of another source, or of this one before it changed; name an empty schema \
                     with --schema, or drop this one"
                )));
            }
            Some((_, position)) => self.position = position,
        }
        self.map_lanes(lanes).await?;
        Ok(self.progress())
    }

    /// How far the copy has come.
    pub fn progress(&self) -> Progress {
        let part = usize::try_from(self.position >> ROW_BITS).unwrap_or(usize::MAX);
        match Part::ALL.get(part) {
            Some(part) => Progress::At { part: *part, rows: (self.position & ((1 << ROW_BITS) - 1)) as u64 },
            None => Progress::Done,
        }
    }

    /// Copies rows of the current part, and commits. Without rows the part is complete, and the next one is
    /// current.
    ///
    /// # Errors
    /// Any refusal of the server. Nothing of the batch is written then, and the copy can be begun again.
    pub async fn take(&mut self, rows: &Rows, marks: &Marks) -> Result<()> {
        let next = if rows.is_empty() {
            ((self.position >> ROW_BITS) + 1) << ROW_BITS
        } else {
            self.position + rows.len() as i64
        };
        if matches!(self.progress(), Progress::At { part: Part::History, rows: 0 }) {
            self.make_parts(marks).await?;
        }
        // After the last part `finish` takes that step itself.
        if rows.is_empty() && matches!(self.progress(), Progress::At { part: Part::Keys, .. }) {
            return Ok(());
        }
        self.conn.batch(&self.conn.begin_text()).await?;
        let taken = async {
            self.advance(next).await?;
            self.insert(rows).await
        };
        let taken = taken.await;
        self.end(taken).await?;
        self.position = next;
        Ok(())
    }

    /// Makes later numbers larger than all copied ones, resumes the queues and notes that the copy is
    /// complete.
    ///
    /// # Errors
    /// Any refusal of the server; the copy can be begun again.
    pub async fn finish(&mut self, marks: &Marks, paused: &[String]) -> Result<()> {
        self.pass_clock(marks).await?;
        let next = (Part::ALL.len() as i64) << ROW_BITS;
        self.conn.batch(&self.conn.begin_text()).await?;
        let finished = async {
            self.advance(next).await?;
            self.conn.query(&sql::COPY_NUMBERS, &[&marks.last_seq, &marks.last_worker]).await?;
            self.conn.query(&sql::COPY_TODO, &[]).await?;
            self.conn.query(&sql::COPY_RESUME, &[&paused]).await?;
            Ok(())
        };
        let finished = finished.await;
        self.end(finished).await?;
        self.position = next;
        let look =
            self.schema.render("ANALYZE windlass.task; ANALYZE windlass.history; ANALYZE windlass.key");
        if let Err(failure) = self.conn.batch(&look).await {
            tracing::debug!(error = %failure.error, "ANALYZE of the new rows failed; autovacuum does it later");
        }
        Ok(())
    }

    /// How many rows there are of each sort.
    ///
    /// # Errors
    /// Any refusal of the server.
    pub async fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::new();
        for row in self.conn.query_alone(&sql::COPY_COUNTS, &[]).await? {
            let state: Option<i16> = row.get(0);
            let name = match state.map(|code| State::from_code(i64::from(code))) {
                Some(state) => state.map_or("unknown", State::as_str).to_owned(),
                None => row.get(1),
            };
            *counts.entry(name).or_default() += row.get::<_, i64>(2) as u64;
        }
        Ok(counts)
    }

    async fn end(&self, done: Result<(), Failure>) -> Result<()> {
        match done {
            Ok(()) => Ok(self.conn.batch("COMMIT").await?),
            Err(failure) => {
                let _ = self.conn.batch("ROLLBACK").await;
                Err(failure.error)
            }
        }
    }

    async fn advance(&self, next: i64) -> Result<(), Failure> {
        if self.conn.query(&sql::COPY_ADVANCE, &[&self.position, &next]).await?.is_empty() {
            return Err(taken_over().into());
        }
        Ok(())
    }

    async fn insert(&mut self, rows: &Rows) -> Result<(), Failure> {
        rows::insert(&self.conn, &self.lanes, rows).await?;
        match rows {
            Rows::Lanes(rows) => self.map_lanes(rows).await,
            _ => Ok(()),
        }
    }

    /// Reads the numbers that lanes of the source have in this schema; lanes that it does not have yet are
    /// left out.
    async fn map_lanes(&mut self, lanes: &[LaneRow]) -> Result<(), Failure> {
        let rows = self.conn.query(&sql::COPIED_LANES, &[]).await?;
        let lane = |row: &Row| ((row.get::<_, String>(1), row.get::<_, String>(2)), row.get::<_, i32>(0));
        let here: HashMap<(String, String), i32> = rows.iter().map(lane).collect();
        for lane in lanes {
            if let Some(id) = here.get(&(lane.queue.clone(), lane.kind.clone())) {
                self.lanes.insert(lane.id, *id);
            }
        }
        Ok(())
    }

    /// Makes parts for the copied history where there are none yet. Rows in the rest are removed one by one,
    /// and read each time that a part is made.
    async fn make_parts(&self, marks: &Marks) -> Result<()> {
        let Some((first, last)) = marks.ended else { return Ok(()) };
        let there = self.conn.query_alone(&sql::COPY_PARTS, &[]).await?;
        let there: Vec<(i64, i64)> = there.iter().map(|row| (row.get(0), row.get(1))).collect();
        for (from, until) in missing_parts(first, last, &there) {
            let name = format!("history_{from}");
            let text = self.schema.render(&format!(
                "CREATE TABLE IF NOT EXISTS windlass.{name} PARTITION OF windlass.history FOR VALUES FROM ({from}) TO ({until})"
            ));
            self.conn.batch(&self.conn.begin_text()).await?;
            let made = async {
                self.conn.batch(&text).await?;
                self.conn.query(&sql::NOTE_PART, &[&name, &from, &until]).await.map(drop)
            };
            let made = made.await;
            self.end(made).await?;
        }
        Ok(())
    }

    /// Waits until the server's clock is past the newest id: ids begin with the time.
    async fn pass_clock(&self, marks: &Marks) -> Result<()> {
        loop {
            let rows = self.conn.query_alone(&sql::COPY_STATE, &[]).await?;
            let now: i64 = rows.first().map_or(0, |row| row.get(5));
            if TaskId::from_raw(marks.last_id).enqueued_at().as_ms() < now {
                return Ok(());
            }
            refuse_ahead(marks, now)?;
            tokio::time::sleep(CLOCK_LOOK).await;
        }
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import")
            .field("schema", &self.schema)
            .field("position", &self.progress())
            .finish_non_exhaustive()
    }
}

fn taken_over() -> Error {
    Error::Conflict(
        "another process has gone on with this copy; wait for its end, then run it again".to_owned(),
    )
}

fn refuse_ahead(marks: &Marks, now_ms: i64) -> Result<()> {
    let ahead = TaskId::from_raw(marks.last_id).enqueued_at().as_ms() - now_ms;
    if u128::from(ahead.max(0) as u64) > AHEAD_MAX.as_millis() {
        let seconds = ahead / 1000;
        return Err(Error::Conflict(format!(
            "the newest task was enqueued {seconds} s after the time of this server; set the clocks right, or copy later"
        )));
    }
    Ok(())
}

/// The times that no part covers, from the hour of the first end to that of the last, in pieces of whole
/// hours.
fn missing_parts(first: i64, last: i64, there: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let begin = first.div_euclid(HOUR_MS) * HOUR_MS;
    let end = (last.div_euclid(HOUR_MS) + 1) * HOUR_MS;
    let hours = (end - begin) / HOUR_MS;
    let width = (hours + PARTS_MAX - 1) / PARTS_MAX * HOUR_MS;
    let mut missing = Vec::new();
    let mut from = begin;
    while from < end {
        if let Some((_, until)) = there.iter().find(|(start, until)| *start <= from && from < *until) {
            from = *until;
            continue;
        }
        let next = there.iter().map(|(start, _)| *start).filter(|start| *start > from).min();
        let until = (from + width).min(end).min(next.unwrap_or(i64::MAX));
        missing.push((from, until));
        from = until;
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: i64 = HOUR_MS;

    #[test]
    fn parts_fill_the_gaps_and_overlap_nothing() {
        assert_eq!(missing_parts(H + 5, 3 * H + 5, &[]), [(H, 2 * H), (2 * H, 3 * H), (3 * H, 4 * H)]);
        assert_eq!(
            missing_parts(H, 5 * H, &[(2 * H, 3 * H), (5 * H, 6 * H)]),
            [(H, 2 * H), (3 * H, 4 * H), (4 * H, 5 * H)]
        );
        assert!(missing_parts(H, H, &[(0, 9 * H)]).is_empty());
    }

    #[test]
    fn a_long_history_has_wide_parts() {
        let parts = missing_parts(0, 10_000 * H, &[(9_990 * H, 9_999 * H)]);
        assert!(parts.len() <= PARTS_MAX as usize + 1, "{}", parts.len());
        assert_eq!(parts.first().map(|part| part.0), Some(0));
        assert_eq!(parts.last().map(|part| part.1), Some(10_001 * H));
        assert!(parts.windows(2).all(|pair| pair[0].1 == pair[1].0 || pair[1].0 == 9_999 * H));
    }
}
