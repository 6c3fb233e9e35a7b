//! Enqueue: a batch in one statement. Callers of one moment share a commit (see `enqueue/group_commit.rs`).
//! Tasks with keys need several statements (see `enqueue/keyed.rs`).

pub(crate) mod group_commit;
pub(crate) mod in_transaction;
pub(crate) mod keyed;
pub(crate) mod one;

use std::time::Duration;

use windlass_core::{
    Enqueued, Error, Name, NewTask, Result, RetryPolicy, Rules, Start, State, TaskId, Timestamp,
};

use crate::{
    connection::{error::Failure, pool::Session},
    shared::Shared,
    sql,
};

/// Refuses a batch that breaks a rule, before anything is sent.
pub(crate) fn check(tasks: &[NewTask], rules: &Rules) -> Result<()> {
    if tasks.len() > rules.batch_max {
        return Err(Error::invalid(format!(
            "a batch of {} tasks is over batch_max ({})",
            tasks.len(),
            rules.batch_max
        )));
    }
    for task in tasks {
        task.check(rules)?;
    }
    Ok(())
}

/// Adds tasks without keys, all in one commit; the answers are in the order of the tasks.
pub(crate) async fn add(shared: &Shared, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
    let lanes = lanes_of(shared, tasks).await?;
    let mut session = shared.pool.session().await?;
    if let ([task], [lane]) = (tasks, &*lanes)
        && task.is_plain()
    {
        return Ok(vec![one::add_one(shared, &mut session, task, *lane, None, |_| {}).await?]);
    }
    let added = insert(shared, &mut session, tasks, &lanes, None).await?;
    tell(shared, &added);
    Ok(added.tasks)
}

/// What an insert made.
pub(crate) struct Added {
    pub tasks: Vec<Enqueued>,
    pub is_ready: bool,
    pub due: Option<Timestamp>,
}

/// Tells the workers of this process. The statement itself has notified another process.
pub(crate) fn tell(shared: &Shared, added: &Added) {
    if added.is_ready {
        shared.tell_ready();
    }
    if let Some(due) = added.due {
        shared.subscribers.tell_due(due);
    }
}

/// The lane of every task. New lanes are made first, in a transaction of their own.
pub(crate) async fn lanes_of(shared: &Shared, tasks: &[NewTask]) -> Result<Vec<i32>> {
    if let Some(lanes) = shared.lanes.of_tasks(tasks) {
        return Ok(lanes);
    }
    let mut session = shared.pool.session().await?;
    if !shared.lanes.are_loaded() {
        shared.lanes.load(&mut session).await?;
    }
    let pairs: Vec<(&Name, &Name)> = tasks.iter().map(|task| (&task.queue, &task.kind)).collect();
    if shared.lanes.make(&mut session, &pairs, &shared.rules).await? {
        shared.subscribers.tell_lanes();
        session.query(&sql::NOTIFY, &[&shared.doorbell.channel, &"lanes"]).await?;
    }
    shared
        .lanes
        .of_tasks(tasks)
        .ok_or_else(|| Error::Unavailable("a lane that was just made does not exist".to_owned()))
}

/// Inserts tasks. `ids` are the ids that were drawn for tasks with keys.
pub(crate) async fn insert(
    shared: &Shared,
    session: &mut Session<'_>,
    tasks: &[NewTask],
    lanes: &[i32],
    ids: Option<&[i64]>,
) -> Result<Added, Failure> {
    let attempts: Vec<i32> =
        tasks.iter().map(|task| task.max_attempts.unwrap_or(shared.rules.max_attempts) as i32).collect();
    let priorities: Vec<i32> = tasks.iter().map(|task| task.priority).collect();
    let encodings: Vec<i16> = tasks.iter().map(|task| task.payload.encoding().code() as i16).collect();
    let payloads: Vec<&[u8]> = tasks.iter().map(|task| task.payload.as_bytes()).collect();
    let (channel, listener) = (&shared.doorbell.channel, shared.doorbell.listener);
    // An idle worker of this process is told directly.
    let notify = !shared.doorbell.covers(lanes);
    if ids.is_none() && tasks.iter().all(has_only_a_payload) {
        let rows = session
            .query(
                &sql::ENQUEUE_PLAIN,
                &[&lanes, &priorities, &attempts, &encodings, &payloads, channel, &notify, &listener],
            )
            .await?;
        return Ok(Added { tasks: rows.iter().map(added).collect(), is_ready: true, due: None });
    }
    let delays: Vec<Option<i64>> = tasks.iter().map(|task| delay_ms(task.start)).collect();
    let dues: Vec<Option<i64>> = tasks.iter().map(|task| due_ms(task.start)).collect();
    let timeouts: Vec<Option<i64>> = tasks.iter().map(|task| task.timeout.map(ms_up)).collect();
    let retries: Vec<Option<String>> =
        tasks.iter().map(|task| task.retry.map(RetryPolicy::to_stored)).collect();
    let jobs: Vec<Option<&str>> = tasks.iter().map(|task| task.job.as_ref().map(Name::as_str)).collect();
    let workflows: Vec<Option<&str>> =
        tasks.iter().map(|task| task.workflow.as_ref().map(Name::as_str)).collect();
    let policies: Vec<Option<i16>> =
        tasks.iter().map(|task| task.on_failure.map(|policy| policy.code() as i16)).collect();
    let keys: Vec<Option<&str>> =
        tasks.iter().map(|task| task.key.as_ref().map(|key| key.text.as_str())).collect();
    let traces: Vec<Option<String>> =
        tasks.iter().map(|task| task.trace.map(|trace| trace.to_string())).collect();
    let limits: Vec<Option<i32>> = tasks.iter().map(|task| task.job_concurrency.map(narrow)).collect();
    let ids: Vec<Option<i64>> = match ids {
        Some(ids) => ids.iter().copied().map(Some).collect(),
        None => vec![None; tasks.len()],
    };
    let rows = session
        .query(
            &sql::ENQUEUE,
            &[
                &lanes,
                &priorities,
                &attempts,
                &encodings,
                &payloads,
                channel,
                &notify,
                &listener,
                &delays,
                &dues,
                &timeouts,
                &retries,
                &jobs,
                &keys,
                &ids,
                &workflows,
                &policies,
                &traces,
                &limits,
            ],
        )
        .await?;
    let due = |row: &tokio_postgres::Row| row.get::<_, Option<i64>>(2).map(Timestamp::from_ms);
    Ok(Added {
        tasks: rows.iter().map(|row| Enqueued { cancelled: row.get(4), ..added(row) }).collect(),
        is_ready: rows.iter().any(|row| row.get::<_, i32>(3) == State::Ready.code() as i32),
        due: rows.iter().filter_map(due).min(),
    })
}

fn added(row: &tokio_postgres::Row) -> Enqueued {
    Enqueued::new(TaskId::from_raw(row.get(0)))
}

/// Whether a task may start at once and has nothing that `enqueue_plain.sql` does not write.
fn has_only_a_payload(task: &NewTask) -> bool {
    task.is_plain() && task.timeout.is_none() && task.retry.is_none() && task.trace.is_none()
}

/// Whether admission decides about a task.
pub(crate) fn is_gated(task: &NewTask) -> bool {
    task.job.is_some() || task.workflow.is_some()
}

pub(crate) fn delay_ms(start: Start) -> Option<i64> {
    match start {
        Start::In(delay) => Some(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)),
        Start::Now | Start::At(_) => None,
    }
}

pub(crate) fn due_ms(start: Start) -> Option<i64> {
    match start {
        Start::At(at) => Some(at.as_ms()),
        Start::Now | Start::In(_) => None,
    }
}

/// A limit as the database stores it.
pub(crate) fn narrow(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// A time limit in milliseconds, rounded up so that a short one does not vanish.
pub(crate) fn ms_up(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
