//! Recurring tasks: a tick is fired once, by the first worker that sees it (SCHEDULE).

use async_trait::async_trait;
use tokio_postgres::Row;
use windlass_core::{
    Enqueued, Error, Fire, Name, Result, ScheduleRow, Schedules, TaskId, Timestamp, schedule::DueSchedules,
    task::batch,
};

use crate::{
    connection::{error::Failure, repeat::repeat, values::Cells},
    enqueue::{self, keyed},
    gates::admit,
    shared::Shared,
    sql,
    store::PostgresStore,
};

#[async_trait]
impl Schedules for PostgresStore {
    async fn put(&self, row: &ScheduleRow) -> Result<()> {
        let (name, next) = (row.name.as_str(), row.next_at.map(Timestamp::as_ms));
        self.shared().pool.query(&sql::SCHEDULE_PUT, &[&name, &row.spec, &row.paused, &next]).await?;
        Ok(())
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        let rows = self.shared().pool.query(&sql::SCHEDULE_LIST, &[]).await?;
        Ok(rows.iter().filter_map(|row| record(row, 0)).collect())
    }

    async fn find(&self, name: &Name) -> Result<Option<ScheduleRow>> {
        let row = self.shared().pool.row(&sql::SCHEDULE_FIND, &[&name.as_str()]).await?;
        Ok(row.and_then(|row| record(&row, 0)))
    }

    async fn remove(&self, name: &Name) -> Result<bool> {
        Ok(self.shared().pool.row(&sql::SCHEDULE_REMOVE, &[&name.as_str()]).await?.is_some())
    }

    async fn due(&self, limit: u32) -> Result<DueSchedules> {
        // One row more than asked for: the first schedule that is not due says when to look again.
        let rows = self.shared().duties.query(&sql::SCHEDULE_DUE, &[&(i64::from(limit) + 1)]).await?;
        let now = rows.first().map(|row| row.time(0));
        let now = now.ok_or_else(|| Error::Unavailable("the server told no time".to_owned()))?;
        let all = rows.iter().filter_map(|row| record(row, 1));
        let (mut due, later): (Vec<_>, Vec<_>) = all.partition(|row| row.next_at.is_some_and(|at| at <= now));
        let more = due.split_off(due.len().min(limit as usize));
        let next_at = more.iter().chain(&later).filter_map(|row| row.next_at).min();
        Ok(DueSchedules { now, due, next_at })
    }

    async fn fire(&self, tick: Fire) -> Result<Option<Enqueued>> {
        let fired = fire(self.shared(), &tick).await?;
        self.shared().enqueues.count(&fired);
        Ok(fired)
    }
}

fn record(row: &Row, from: usize) -> Option<ScheduleRow> {
    let time = |column: usize| row.time_if_any(from + column);
    Some(ScheduleRow {
        name: Name::stored("schedule", row.get::<_, Option<&str>>(from)?).ok()?,
        spec: row.get(from + 1),
        paused: row.get(from + 2),
        next_at: time(3),
        last_at: time(4),
        last_task: row.get::<_, Option<i64>>(from + 5).map(TaskId::from_raw),
    })
}

/// Enqueues the task of a tick and advances the schedule, in one commit.
async fn fire(shared: &Shared, fire: &Fire) -> Result<Option<Enqueued>> {
    let tasks: Vec<_> = fire.task.iter().cloned().collect();
    batch::check(&tasks, &shared.rules)?;
    let lanes = enqueue::lanes_of(shared, &tasks).await?;
    let fired = repeat(|| async {
        let mut session = shared.pool.session().await?;
        session.begin().await?;
        let (name, tick) = (fire.name.as_str(), fire.tick.as_ms());
        if session.row(&sql::SCHEDULE_LOCK, &[&name, &tick, &fire.spec]).await?.is_none() {
            session.rollback().await;
            return Ok::<_, Failure>(None);
        }
        let (answers, added) = keyed::add_within(shared, &mut session, &tasks, &lanes).await?;
        let answer = answers.first().copied();
        let (next, task) = (fire.next_at.map(Timestamp::as_ms), answer.map(|answer| answer.id.raw()));
        session.query(&sql::SCHEDULE_MOVE, &[&name, &tick, &next, &task]).await?;
        session.commit().await?;
        if let Some(added) = &added {
            enqueue::tell(shared, added);
        }
        Ok(Some(answer))
    })
    .await?;
    if tasks.iter().any(enqueue::is_gated) {
        admit::admit_after(shared).await;
    }
    Ok(fired.flatten())
}
