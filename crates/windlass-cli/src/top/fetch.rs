//! Asks the server for the data of a screen.

use std::time::Duration;

use windlass_core::{State, TaskId, why::human};
use windlass_server::api::{
    CancelRequest, ErrorCode, Overview, Queues, RetryRequest, Snapshot, TaskFilter, TaskView, WorkerState,
};

use super::{
    board::{Board, Job, TaskLine, Workers},
    view::{Act, Of},
};
use crate::{
    backend::{Answer, Backend as _, remote::Remote},
    duration,
};

/// Most jobs on the board, the first by name. `windlass jobs show` shows any other one.
const JOBS_MAX: u32 = 200;
/// Tasks in a list.
const TASKS_MAX: u32 = 100;
/// How long the server may take for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Everything on the board.
pub async fn board(server: &Remote) -> Result<Board, String> {
    within(async {
        let overview: Overview = server.look("/v1/overview").await?;
        let snapshot = match server.look::<Snapshot>("/v1/snapshot").await {
            Ok(snapshot) => Some(snapshot),
            Err(error) if error.code == ErrorCode::NotFound => None,
            Err(error) => return Err(error),
        };
        let queues: Queues = server.look("/v1/queues").await?;
        let jobs = server.jobs(None, JOBS_MAX).await?;
        let workers: Workers = server.look("/v1/workers").await?;
        let mut board = Board {
            overview,
            snapshot,
            queues: queues.queues.into_iter().map(Into::into).collect(),
            more_jobs: jobs.next.is_some(),
            jobs: jobs.jobs.into_iter().map(Into::into).collect(),
            workers: workers.workers,
        };
        // The busiest jobs first; workers that are gone last.
        board.jobs.sort_by_key(|job: &Job| std::cmp::Reverse((job.running, job.held)));
        board.workers.sort_by_key(|worker| worker.state == WorkerState::Gone);
        Ok(board)
    })
    .await
}

/// The newest tasks of a queue or a job.
pub async fn tasks(server: &Remote, of: &Of) -> Result<Vec<TaskLine>, String> {
    let filter = match of {
        Of::Queue(name) => TaskFilter { queue: Some(name.clone()), ..TaskFilter::default() },
        Of::Job(name) => TaskFilter { job: Some(name.clone()), ..TaskFilter::default() },
    };
    let page = within(server.tasks(&filter, None, TASKS_MAX)).await?;
    Ok(page.tasks.iter().map(Into::into).collect())
}

/// One task, and why it is not running.
pub async fn task(server: &Remote, id: TaskId) -> Result<Vec<(String, String)>, String> {
    within(async {
        let task = server.task(id).await?;
        let why = server.why(id).await?;
        Ok(fields(&task, &why.sentence))
    })
    .await
}

/// Pauses or resumes a queue; returns the notice to show.
pub async fn set_paused(
    server: &Remote,
    queue: &windlass_core::Name,
    paused: bool,
) -> Result<String, String> {
    let change = within(server.set_queue_paused(queue, paused)).await?;
    let verb = if change.paused { "paused" } else { "resumed" };
    Ok(format!("queue {} {verb}", change.queue))
}

/// Retries or cancels a task; returns the notice to show.
pub async fn act(server: &Remote, act: Act, id: TaskId) -> Result<String, String> {
    let change = match act {
        Act::Retry => within(server.retry(id, RetryRequest::default())).await?,
        Act::Cancel => within(server.cancel(id, CancelRequest::default())).await?,
    };
    Ok(match (act, change.repeats) {
        (_, Some(repeats)) => format!("task {} repeats {repeats}", change.id),
        (Act::Cancel, None) if change.state == State::Running => format!("task {id} was asked to end"),
        (_, None) => format!("task {id} is {}", change.state),
    })
}

async fn within<T>(asking: impl Future<Output = Answer<T>>) -> Result<T, String> {
    match tokio::time::timeout(ANSWER_MAX, asking).await {
        Ok(answer) => answer.map_err(|error| error.message),
        Err(_) => Err(format!("no answer within {} s", ANSWER_MAX.as_secs())),
    }
}

fn fields(task: &TaskView, why: &str) -> Vec<(String, String)> {
    let now = duration::now();
    let ago = |at: windlass_core::Timestamp| format!("{} ago", human(now.since(at)));
    let name = |name: &Option<windlass_core::Name>| name.as_ref().map(ToString::to_string);
    let mut fields: Vec<(String, String)> = [
        ("state", Some(task.state.to_string())),
        ("why", Some(why.to_owned())),
        ("kind", Some(task.kind.to_string())),
        ("queue", Some(task.queue.to_string())),
        ("job", name(&task.job)),
        ("workflow", name(&task.workflow)),
        ("key", task.key.clone()),
        ("repeats", task.repeats.map(|id| id.to_string())),
        ("repeated by", task.repeated_by.map(|id| id.to_string())),
        ("attempt", Some(format!("{} of {}", task.attempt, task.max_attempts))),
        ("worker", task.worker.clone()),
        ("enqueued", Some(ago(task.enqueued_at))),
        ("started", task.started_at.map(ago)),
        ("ended", task.ended_at.map(ago)),
        ("progress", task.progress.clone()),
        ("error", task.error.clone()),
        ("payload", Some(task.payload.get().to_owned())),
        ("output", task.output.as_ref().map(|output| output.get().to_owned())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    for attempt in task.attempts.iter().rev() {
        let result = serde_json::to_value(attempt.result).ok();
        let result = result.as_ref().and_then(|result| result.as_str()).unwrap_or("ended").to_owned();
        let error = attempt.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        fields.push((
            format!("attempt {}", attempt.attempt),
            format!("{result} {}{error}", ago(attempt.ended_at)),
        ));
    }
    fields
}
