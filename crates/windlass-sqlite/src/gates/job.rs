//! Jobs as the store keeps them.

use std::{sync::Arc, time::Duration};

use rusqlite::{OptionalExtension, Row, params};
use windlass_core::{JobRecord, JobState, Name, TaskId, Timestamp, gate::COUNT_MAX};

use crate::{
    connection::tx::{Step, Tx},
    sql,
};

/// A job as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub name: Name,
    pub state: JobState,
    pub concurrency: Option<u32>,
    pub delay: Option<Duration>,
    pub last_start: Option<Timestamp>,
    /// Its limit fell below the number of its tasks, and there are still more than that.
    pub over_limit: bool,
    /// The log has reported that it has more tasks than room.
    pub at_limit: bool,
    /// The last id that was given out when the job was removed.
    pub gone_before: Option<TaskId>,
    pub again_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Job {
    /// The state of a job at its first use.
    pub(crate) fn new(tx: &Tx<'_>, name: &Name) -> Self {
        Self {
            name: name.clone(),
            state: JobState::Active,
            concurrency: tx.options.rules.job_default_concurrency,
            delay: None,
            last_start: None,
            over_limit: false,
            at_limit: false,
            gone_before: None,
            again_at: None,
            created_at: tx.now,
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let time = |place| -> rusqlite::Result<Option<Timestamp>> {
            Ok(row.get::<_, Option<i64>>(place)?.map(Timestamp::from_ms))
        };
        Ok(Self {
            name: name(row, 0)?,
            state: JobState::from_code(row.get(1)?).unwrap_or(JobState::Paused),
            concurrency: row.get(2)?,
            delay: row.get::<_, Option<i64>>(3)?.map(|ms| Duration::from_millis(ms as u64)),
            last_start: time(4)?,
            over_limit: row.get(5)?,
            at_limit: row.get(6)?,
            gone_before: row.get::<_, Option<i64>>(7)?.map(TaskId::from_raw),
            again_at: time(8)?,
            created_at: Timestamp::from_ms(row.get(9)?),
        })
    }

    /// Stores the job, and updates what the writer caches of it.
    pub(crate) fn save(&self, tx: &mut Tx<'_>, before: Option<Timestamp>) -> Step<()> {
        // Rounded up, so that a short delay does not become zero.
        let delay_ms =
            |delay: Duration| i64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        tx.sql(sql::PUT_JOB)?.execute(params![
            self.name.as_str(),
            self.state.code(),
            self.concurrency,
            self.delay.map(delay_ms),
            self.last_start.map(Timestamp::as_ms),
            self.over_limit,
            self.at_limit,
            self.gone_before.map(TaskId::raw),
            self.again_at.map(Timestamp::as_ms),
            self.created_at.as_ms()
        ])?;
        tx.memory.rooms.set_again(&self.name, before, self.again_at);
        tx.memory.rooms.set_delayed(&self.name, self.delay.is_some());
        tx.memory.rooms.set_row(&self.name, Some(Arc::new(self.clone())));
        if let Some(again_at) = self.again_at {
            tx.effects.scheduled(again_at);
        }
        Ok(())
    }

    /// The job with its figures.
    pub(crate) fn record(&self, tx: &Tx<'_>) -> JobRecord {
        let room = tx.memory.rooms.get(&self.name);
        JobRecord {
            name: self.name.clone(),
            state: self.state,
            concurrency: self.concurrency,
            delay: self.delay,
            created_at: self.created_at,
            last_start: self.last_start,
            ready: room.map_or(0, |room| u64::from(room.ready()).min(COUNT_MAX)),
            running: room.map_or(0, |room| u64::from(room.running)),
            held: room.map_or(0, |room| (room.held() + room.aside()).min(COUNT_MAX)),
        }
    }

    /// The reason with which its tasks are cancelled, if they are.
    pub(crate) fn reason(&self) -> String {
        match self.state {
            JobState::Removing => format!("job {} was removed", self.name),
            _ => format!("job {} is cancelled", self.name),
        }
    }
}

/// A name in a row.
pub(crate) fn name(row: &Row<'_>, place: usize) -> rusqlite::Result<Name> {
    let text = row.get_ref(place)?.as_str()?;
    Name::stored("name", text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(place, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// A name in a row, if there is one.
pub(crate) fn optional_name(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<Name>> {
    if row.get_ref(place)?.as_str_or_null()?.is_none() {
        return Ok(None);
    }
    name(row, place).map(Some)
}

/// One job.
pub(crate) fn find(tx: &Tx<'_>, name: &Name) -> Step<Option<Job>> {
    Ok(tx.sql(sql::FIND_JOB)?.query_row([name.as_str()], Job::read).optional()?)
}

/// One job, from memory if its row was read since the job last had no tasks.
pub(crate) fn recall(tx: &mut Tx<'_>, name: &Name) -> Step<Option<Arc<Job>>> {
    if let Some(job) = tx.memory.rooms.row(name) {
        return Ok(Some(Arc::clone(job)));
    }
    let found = find(tx, name)?.map(Arc::new);
    if found.is_some() {
        tx.memory.rooms.set_row(name, found.clone());
    }
    Ok(found)
}

/// Creates a job with a limit, unless it exists.
pub(crate) fn make_limited(tx: &mut Tx<'_>, name: &Name, limit: u32) -> Step<()> {
    if recall(tx, name)?.is_some() {
        return Ok(());
    }
    Job { concurrency: Some(limit), ..Job::new(tx, name) }.save(tx, None)
}

/// Jobs by name.
pub(crate) fn list(tx: &Tx<'_>, after: Option<&Name>, limit: u32) -> Step<Vec<JobRecord>> {
    let mut statement = tx.sql(sql::LIST_JOBS)?;
    let jobs = statement.query_map((after.map_or("", Name::as_str), limit), Job::read)?;
    let jobs = jobs.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(jobs.iter().map(|job| job.record(tx)).collect())
}

/// Whether the job has tasks that have reached it: later steps of a workflow have not.
pub(crate) fn has_tasks(tx: &Tx<'_>, name: &Name) -> Step<bool> {
    if tx.memory.rooms.get(name).is_some() {
        return Ok(true);
    }
    Ok(tx.sql(sql::HAS_SCHEDULED)?.query_row([name.as_str()], |row| row.get(0))?)
}
