//! Enqueue: a batch in one statement. Callers of one moment share a commit (see `enqueue/group_commit.rs`).
//! Tasks with keys need several statements (see `enqueue/keyed.rs`).

pub(crate) mod group_commit;
pub(crate) mod in_transaction;
pub(crate) mod keyed;
pub(crate) mod one;

use windlass_core::{Enqueued, Error, Name, NewTask, Result, RetryPolicy, Rules, Start, State, Timestamp};

use crate::{
    connection::{
        conn::Param,
        error::Failure,
        pool::Session,
        values::{Cells, column, ms, ms_up, narrow},
    },
    shared::Shared,
    sql,
};

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
    let rows = column(tasks, |task| Columns::of(task, &shared.rules));
    let (priorities, attempts) = (column(&rows, |row| row.priority), column(&rows, |row| row.max_attempts));
    let (encodings, payloads) = (column(&rows, |row| row.encoding), column(&rows, |row| row.payload));
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
    let ids: Vec<Option<i64>> = match ids {
        Some(ids) => ids.iter().copied().map(Some).collect(),
        None => vec![None; tasks.len()],
    };
    let params: &[Param<'_>] = &[
        &lanes,
        &priorities,
        &attempts,
        &encodings,
        &payloads,
        channel,
        &notify,
        &listener,
        &column(&rows, |row| row.delay_ms),
        &column(&rows, |row| row.due_at),
        &column(&rows, |row| row.timeout_ms),
        &column(&rows, |row| row.retry.as_deref()),
        &column(&rows, |row| row.job),
        &column(&rows, |row| row.key),
        &ids,
        &column(&rows, |row| row.workflow),
        &column(&rows, |row| row.on_failure),
        &column(&rows, |row| row.trace.as_deref()),
        &column(&rows, |row| row.job_concurrency),
    ];
    let rows = session.query(&sql::ENQUEUE, params).await?;
    let due = |row: &tokio_postgres::Row| row.time_if_any(2);
    Ok(Added {
        tasks: rows.iter().map(|row| Enqueued { cancelled: row.get(4), ..added(row) }).collect(),
        is_ready: rows.iter().any(|row| row.get::<_, i32>(3) == State::Ready.code() as i32),
        due: rows.iter().filter_map(due).min(),
    })
}

fn added(row: &tokio_postgres::Row) -> Enqueued {
    Enqueued::new(row.task(0))
}

/// Whether a task may start at once and has nothing that `enqueue_plain.sql` does not write.
fn has_only_a_payload(task: &NewTask) -> bool {
    task.is_plain() && task.timeout.is_none() && task.retry.is_none() && task.trace.is_none()
}

/// Whether admission decides about a task.
pub(crate) fn is_gated(task: &NewTask) -> bool {
    task.job.is_some() || task.workflow.is_some()
}

/// A new task as its row holds it, however it is added.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    pub kind: &'a str,
    pub queue: &'a str,
    pub priority: i32,
    pub max_attempts: i32,
    pub encoding: i16,
    pub payload: &'a [u8],
    pub due_at: Option<i64>,
    pub delay_ms: Option<i64>,
    pub timeout_ms: Option<i64>,
    pub retry: Option<String>,
    pub job: Option<&'a str>,
    pub job_concurrency: Option<i32>,
    pub workflow: Option<&'a str>,
    pub on_failure: Option<i16>,
    pub key: Option<&'a str>,
    pub trace: Option<String>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(task: &'a NewTask, rules: &Rules) -> Self {
        let (due_at, delay_ms) = match task.start {
            Start::Now => (None, None),
            Start::At(at) => (Some(at.as_ms()), None),
            Start::In(delay) => (None, Some(ms(delay))),
        };
        Self {
            kind: task.kind.as_str(),
            queue: task.queue.as_str(),
            priority: task.priority,
            max_attempts: task.max_attempts.unwrap_or(rules.max_attempts) as i32,
            encoding: task.payload.encoding().code() as i16,
            payload: task.payload.as_bytes(),
            due_at,
            delay_ms,
            timeout_ms: task.timeout.map(ms_up),
            retry: task.retry.map(RetryPolicy::to_stored),
            job: task.job.as_ref().map(Name::as_str),
            job_concurrency: task.job_concurrency.map(narrow),
            workflow: task.workflow.as_ref().map(Name::as_str),
            on_failure: task.on_failure.map(|policy| policy.code() as i16),
            key: task.key.as_ref().map(|key| key.text.as_str()),
            trace: task.trace.map(|trace| trace.to_string()),
        }
    }
}
