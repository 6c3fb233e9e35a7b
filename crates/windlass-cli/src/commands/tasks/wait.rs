//! `windlass tasks wait`, and the wait of `enqueue --wait`.

use std::time::{Duration, Instant};

use clap::Args;
use windlass_core::{State, TaskId};
use windlass_server::api::{TaskView, WAIT_IDS_MAX};

use crate::{
    backend::Backend,
    failure::{Exit, Failure},
    output::{Output, text},
    session::Session,
};

/// Length of one long poll; the next one follows at once.
const POLL: Duration = Duration::from_secs(20);

/// Arguments of `tasks wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The tasks
    #[arg(required = true, value_name = "ID")]
    ids: Vec<TaskId>,
    /// Give up after this time, with exit code 1
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    timeout: Option<Duration>,
}

/// Runs it.
pub async fn run(session: &Session, args: WaitArgs) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let out = session.out;
    let exit = each_ended(&*backend, args.ids, args.timeout, |task| show(out, task)).await?;
    backend.close().await?;
    Ok(exit)
}

/// Waits for every task and passes each on when it ends. Answers 6 if one ended dead or cancelled.
pub async fn each_ended(
    backend: &dyn Backend,
    mut open: Vec<TaskId>,
    timeout: Option<Duration>,
    mut ended: impl FnMut(&TaskView) -> anyhow::Result<()> + Send,
) -> anyhow::Result<Exit> {
    open.sort_unstable();
    open.dedup();
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut exit = Exit::Done;
    while !open.is_empty() {
        let left = match deadline {
            _ if !backend.has_worker() => Duration::ZERO,
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => POLL,
        };
        let some: Vec<TaskId> = open.iter().copied().take(WAIT_IDS_MAX).collect();
        let answer = backend.wait(&some, left.min(POLL)).await?;
        if let Some(missing) = answer.missing.first() {
            return Err(Failure::new(Exit::NotFound, format!("task {missing} not found")).into());
        }
        for task in &answer.ended {
            ended(task)?;
            if task.state != State::Done {
                exit = Exit::EndedBadly;
            }
        }
        open.retain(|id| !answer.ended.iter().any(|task| task.id == *id));
        if !open.is_empty() && !backend.has_worker() {
            return Err(no_worker_runs(backend).into());
        }
        if left.is_zero() && answer.ended.is_empty() {
            let first = open.first().map_or_else(String::new, ToString::to_string);
            let message = match open.len() {
                1 => format!("task {first} had not ended in time"),
                n => format!("{} had not ended in time, {first} among them", text::tasks(n as u64)),
            };
            return Err(Failure::new(Exit::Failed, message)
                .hint(format!("`windlass tasks why {first}` says what it waits for"))
                .into());
        }
    }
    Ok(exit)
}

/// The failure of a wait on a store that this process holds: no worker can run on it, so the wait would
/// never end.
pub fn no_worker_runs(backend: &dyn Backend) -> Failure {
    Failure::new(Exit::Unreachable, format!("no server runs on {}, so nothing would end", backend.place()))
        .hint("start one with `windlass up`")
}

/// Prints one ended task on a line: id, state, output or error.
pub fn show(out: Output, task: &TaskView) -> anyhow::Result<()> {
    if out.is_json() {
        return out.json(task);
    }
    Ok(out.line(line(out, task, ""))?)
}

/// The line of an ended task; `took` stands after the state.
pub fn line(out: Output, task: &TaskView, took: &str) -> String {
    let result = match (task.state, &task.output, &task.error) {
        (State::Done, Some(output), _) => format!("  {}", text::clean(output.get())),
        (State::Done, None, _) | (_, _, None) => String::new(),
        (_, _, Some(error)) => format!("  {}", text::clean(error)),
    };
    format!("{} {}{took}{result}", task.id, text::state(out, task.state))
}
