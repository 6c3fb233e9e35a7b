//! Jobs as operators and clients see and change them, and lanes that become live or stop being live.

use std::time::Duration;

use windlass_core::{
    Error, JobChange, JobRecord, JobState, LaneId, Name, Result, State, TaskId, TaskRecord,
    gate::{COUNT_MAX, GateView},
    source::DutyReport,
};

use crate::{
    connection::{
        error::Failure,
        pool::Session,
        repeat::repeat,
        values::{Cells, ms, narrow},
    },
    gates::{
        admit::{self, Admitted, Todo},
        turns, workflow,
    },
    operate,
    shared::Shared,
    sql,
};

/// Tasks that one transaction cancels, or moves because of a lane.
const CHUNK: i64 = 1_000;
/// Tasks with a place in a job that an answer names.
const OCCUPANTS: i64 = 5;

pub(crate) fn cancelled_reason(name: &str) -> String {
    format!("job {name} is cancelled")
}

pub(crate) fn removed_reason(name: &str) -> String {
    format!("job {name} was removed")
}

/// Jobs by name.
pub(crate) async fn list(
    shared: &Shared,
    after: Option<&Name>,
    only: Option<&Name>,
    limit: u32,
) -> Result<Vec<JobRecord>> {
    let (after, only) = (after.map(Name::as_str), only.map(Name::as_str));
    let rows =
        shared.pool.query(&sql::JOB_LIST, &[&after, &only, &i64::from(limit), &(COUNT_MAX as i64)]).await?;
    Ok(rows.iter().filter_map(record).collect())
}

fn record(row: &tokio_postgres::Row) -> Option<JobRecord> {
    Some(JobRecord {
        name: Name::stored("job", row.get::<_, &str>(0)).ok()?,
        state: row.job_state(1),
        concurrency: row.get::<_, Option<i32>>(2).map(|n| n.max(0) as u32),
        delay: row.get::<_, Option<i64>>(3).map(|ms| Duration::from_millis(ms.max(0) as u64)),
        created_at: row.time(4),
        last_start: row.time_if_any(5),
        ready: row.number(6),
        running: row.number(7),
        held: row.number(8),
    })
}

/// Makes a job or changes it. Ready tasks beyond its new limit are held again in the same transaction
/// (LIMIT).
pub(crate) async fn set(shared: &Shared, name: &Name, change: &JobChange) -> Result<JobRecord> {
    if change.state == Some(JobState::Removing) {
        return Err(Error::invalid("a job is removed by a call of its own"));
    }
    let admitted = repeat(|| set_once(shared, name, change)).await?;
    let mut report = DutyReport::default();
    admit::follow_up(shared, &admitted, &mut report).await?;
    admit::tell_of(shared, &mut report).await?;
    admit::admit_after(shared).await;
    if change.state == Some(JobState::Cancelled) && change.now {
        ask_running(shared, name, i64::MAX, &cancelled_reason(name.as_str())).await?;
    }
    let found = list(shared, None, Some(name), 1).await?;
    found.into_iter().next().ok_or_else(|| Error::NotFound(format!("job {name}")))
}

async fn set_once(shared: &Shared, name: &Name, change: &JobChange) -> Result<Admitted, Failure> {
    let mut session = shared.pool.session().await?;
    session.begin().await?;
    let limit = shared.rules.job_default_concurrency.map(narrow);
    session.query(&sql::JOB_MAKE, &[&vec![name.as_str()], &limit]).await?;
    let state = lock_state(&mut session, name).await?;
    if state == Some(JobState::Removing) && change.state.is_some() {
        session.rollback().await;
        return Err(Error::Conflict(format!("job {name} is being removed")).into());
    }
    let (sets_limit, limit) = (change.concurrency.is_some(), change.concurrency.flatten().map(narrow));
    let (sets_delay, delay) = (
        change.delay.is_some(),
        change.delay.flatten().filter(|delay| !delay.is_zero()).map(|delay| ms(delay).max(1)),
    );
    let code = change.state.map(|state| state.code() as i16);
    let row = session
        .row(&sql::JOB_SET, &[&name.as_str(), &sets_limit, &limit, &sets_delay, &delay, &code])
        .await?
        .ok_or_else(|| Error::Unavailable(format!("job {name} was forgotten meanwhile; try again")))?;
    let mut todo = Todo::job(name.as_str());
    if (sets_delay || code.is_some()) && pace(&mut session, name, &row).await? {
        todo.started.insert(name.as_str().to_owned());
    }
    if change.state == Some(JobState::Cancelled) {
        session.query(&sql::JOB_DEMOTE, &[&vec![name.as_str()], &vec![i64::MAX]]).await?;
    }
    let mut admitted = Admitted::default();
    turns::give_turns(shared, &mut session, &todo, &mut admitted).await?;
    session.commit().await?;
    Ok(admitted)
}

/// Records starts if the job has a delay, from the row that it has now. Answers whether a task runs whose
/// start was not recorded. A job that ends its tasks starts nothing, so that waits until the job is resumed.
async fn pace(session: &mut Session<'_>, name: &Name, row: &tokio_postgres::Row) -> Result<bool, Failure> {
    let state = row.job_state(0);
    if state.ends_what_comes_back() {
        return Ok(false);
    }
    let has_delay: bool = row.get(1);
    let changed = session.query(&sql::JOB_PACE, &[&name.as_str(), &has_delay]).await?;
    Ok(changed.iter().any(|row| i64::from(row.get::<_, i16>(0)) == State::Running.code()))
}

async fn lock_state(session: &mut Session<'_>, name: &Name) -> Result<Option<JobState>, Failure> {
    let row = session.row(&sql::JOB_LOCK, &[&vec![name.as_str()]]).await?;
    Ok(row.map(|row| row.job_state(1)))
}

/// Cancels what waits in a job, a bounded number at a time. Answers how many, and adds the lanes of the steps
/// that follow.
pub(crate) async fn cancel_tasks(
    shared: &Shared,
    name: &str,
    up_to: i64,
    reason: &str,
    lanes_ready: &mut Vec<LaneId>,
) -> Result<u64> {
    let mut cancelled = 0;
    loop {
        let rows = shared.pool.query(&sql::JOB_TASKS, &[&name, &false, &up_to, &CHUNK]).await?;
        if rows.is_empty() {
            return Ok(cancelled);
        }
        let ids: Vec<TaskId> = rows.iter().map(|row| row.task(0)).collect();
        let (changed, lanes) = operate::cancel_unstarted(shared, &ids, reason).await?;
        lanes_ready.extend(lanes);
        if changed == 0 {
            // All of them started in between.
            return Ok(cancelled);
        }
        cancelled += changed;
    }
}

/// Asks the running tasks of a job to end.
async fn ask_running(shared: &Shared, name: &Name, up_to: i64, reason: &str) -> Result<()> {
    let mut session = shared.pool.session().await?;
    let rows = session.query(&sql::JOB_TASKS, &[&name.as_str(), &true, &up_to, &i64::MAX]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    for chunk in ids.chunks(CHUNK as usize) {
        session.query(&sql::ASK_CANCEL, &[&chunk, &reason, &shared.doorbell.channel]).await?;
    }
    Ok(())
}

/// Cancels what waits in a job, and forgets the job when its last running task has ended.
pub(crate) async fn remove(shared: &Shared, name: &Name, now: bool) -> Result<u64> {
    let reason = removed_reason(name.as_str());
    let gone_before = repeat(|| async {
        let mut session = shared.pool.session().await?;
        session.begin().await?;
        if lock_state(&mut session, name).await?.is_none() {
            session.rollback().await;
            return Err(Error::NotFound(format!("job {name}")).into());
        }
        let gone = session.row(&sql::JOB_GONE, &[&name.as_str()]).await?;
        // From here on none of its tasks starts.
        session.query(&sql::JOB_DEMOTE, &[&vec![name.as_str()], &vec![i64::MAX]]).await?;
        admit::put_jobs(&mut session, std::iter::once(name.as_str())).await?;
        session.commit().await?;
        Ok::<i64, Failure>(gone.map_or(i64::MAX, |row| row.get(0)))
    })
    .await?;
    let mut report = DutyReport::default();
    let cancelled =
        cancel_tasks(shared, name.as_str(), gone_before, &reason, &mut report.lanes_ready).await?;
    admit::tell_of(shared, &mut report).await?;
    if now {
        ask_running(shared, name, gone_before, &reason).await?;
    }
    admit::admit_after(shared).await;
    Ok(cancelled)
}

/// The gates of a task, and what holds it there.
pub(crate) async fn view(shared: &Shared, task: &TaskRecord) -> Result<GateView> {
    let mut view = GateView::default();
    if let Some(name) = &task.job {
        view.job = list(shared, None, Some(name), 1).await?.into_iter().next();
        let rows = shared.pool.query(&sql::JOB_OCCUPANTS, &[&name.as_str(), &OCCUPANTS]).await?;
        view.occupants = rows.iter().map(|row| row.task(0)).collect();
    }
    if let Some(name) = &task.workflow {
        view.workflow = workflow::list(shared, false, None, Some(name), 1).await?.into_iter().next();
    }
    Ok(view)
}

/// Repairs, for the leader, two rare cases (NO-STRANDED). A lane can become live or stop being live while an
/// admission runs, which then misses it. And room can stay unused because no worker was there, or because the
/// new worker died at once.
pub(crate) async fn check_gates(shared: &Shared) {
    lanes_became_dead(shared).await;
    let look = async {
        shared.gates.query(&sql::TODO_ROOM, &[]).await?;
        admit::unpark(shared).await
    };
    forgive(look.await, "held tasks could not be looked at");
    admit::admit_after(shared).await;
}

/// A worker registered or a queue was resumed: held tasks of lanes that were not live take part again.
pub(crate) async fn lanes_became_live(shared: &Shared) {
    note_held(shared).await;
    admit::admit_after(shared).await;
}

/// Lets held tasks of lanes that were not live take part again, and notes in `gate_todo` the jobs with held
/// tasks.
pub(crate) async fn note_held(shared: &Shared) {
    let noted = async {
        shared.gates.query(&sql::TODO_HELD, &[]).await?;
        admit::unpark(shared).await
    };
    forgive(noted.await, "held tasks wait for the next look at their jobs");
}

/// The next look at the gates does what failed.
fn forgive(done: Result<(), Failure>, what: &str) {
    if let Err(failure) = done {
        tracing::debug!(error = %failure.error, "{what}");
    }
}

/// A worker left or a queue was paused: ready tasks of lanes that are not live must not hold the room of
/// their jobs.
pub(crate) async fn lanes_became_dead(shared: &Shared) -> DutyReport {
    let went = async {
        let mut session = shared.gates.session().await?;
        while session.row(&sql::PARK_DEAD, &[&CHUNK]).await?.is_some_and(|row| row.get::<_, i64>(0) > 0) {}
        Ok(())
    };
    forgive(went.await, "ready tasks of a lane that died wait for the next look");
    admit::admit_after(shared).await
}
