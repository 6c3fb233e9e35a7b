//! Bulk runs: a change of every task that a filter matches, as a record in the store that one server at a time
//! works off.
//!
//! ```text
//! POST /v1/runs ─► record in the store ─► worker of this server ─► step ─► save ─► step ─► … ─► ended
//!                        │                                            └─ another version: stopped or taken over
//!                        └─► not saved for TAKE_OVER_AFTER: the worker of another server goes on
//! ```
//!
//! A run goes through the matching tasks from the newest to the oldest, and its record holds how far it came. So
//! it looks at each task once. After a crash the next server repeats the last step: it then leaves out tasks that
//! died after the start of the run, so that no task is retried twice.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;
use windlass_core::{
    Error, RunRow, Timestamp,
    operators::{Pace, RUNS_KEPT, RUNS_MAX, StillRuns},
};

mod record;
mod step;
mod worker;

use self::record::Run;
use super::{Operations, Result, change::bulk, duration};
use crate::{
    access::Caller,
    api::{ErrorCode, ErrorDetail, RunPreview, RunRequest, RunSample, RunState, RunView, Runs},
};

/// How often a change of a record is tried while others change it too.
const SAVES_MAX: usize = 20;

/// Runs that were started here and that the worker of this process has not seen yet.
#[derive(Debug)]
pub(super) struct Inbox {
    /// A name of this process that no other one has.
    owner: String,
    rows: Mutex<Vec<RunRow>>,
    wake: Notify,
}

impl Default for Inbox {
    fn default() -> Self {
        // The hasher is seeded by the system, each one differently.
        let owner = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        Self { owner, rows: Mutex::default(), wake: Notify::default() }
    }
}

impl Inbox {
    fn add(&self, row: RunRow) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<RunRow> {
        std::mem::take(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Operations {
    /// How many tasks a run would change, and a few of them.
    pub async fn preview_run(&self, request: RunRequest) -> Result<RunPreview> {
        let states = checked(&request)?;
        let matched = self.matching(request.filter, &states, None).await?;
        let sample = matched.sample.into_iter().map(|task| RunSample {
            id: task.id,
            kind: task.lane.kind.clone(),
            queue: task.lane.queue.clone(),
            state: task.state,
        });
        Ok(RunPreview {
            matched: matched.ids.len() as u64,
            more: matched.more,
            sample: sample.collect(),
            dry_run: true,
        })
    }

    /// Starts a run. The worker of this process works it off; see [`Operations::work_runs`].
    pub async fn start_run(&self, caller: &Caller, request: RunRequest) -> Result<RunView> {
        let states = checked(&request)?;
        let matched = self.matching(request.filter.clone(), &states, None).await?;
        let count = (matched.ids.len() as u64, matched.more);
        let run = Run::new(request, caller.to_string(), self.runs.owner.clone(), count);
        let row = self.store.operators().start_run(&run.text()).await.map_err(|error| match error {
            Error::Conflict(message) => ErrorDetail::new(ErrorCode::Conflict, message)
                .hint("wait until one has ended, or stop one: `windlass runs ls`, `windlass runs stop N`"),
            error => error.into(),
        })?;
        let view = run.view(&row);
        self.runs.add(row);
        Ok(view)
    }

    /// The newest runs.
    pub async fn runs(&self) -> Result<Runs> {
        let rows = self.store.operators().runs(RUNS_KEPT + RUNS_MAX).await?;
        let view = |row: &RunRow| Run::read(row).map(|run| run.view(row));
        // A run that a newer program wrote may have a form that this one does not know.
        Ok(Runs { runs: rows.iter().filter_map(|row| view(row).ok()).collect() })
    }

    /// One run.
    pub async fn run(&self, id: u64) -> Result<RunView> {
        let (row, run) = self.find_run(id).await?;
        Ok(run.view(&row))
    }

    /// Stops a run: what it has not changed stays as it was.
    pub async fn stop_run(&self, caller: &Caller, id: u64) -> Result<RunView> {
        for _ in 0..SAVES_MAX {
            let (row, mut run) = self.find_run(id).await?;
            if !row.is_running {
                let message = format!("run {id} has ended: {}", run.state.as_str());
                return Err(ErrorDetail::new(ErrorCode::Conflict, message)
                    .hint(format!("`windlass runs show {id}` shows what it did")));
            }
            run.state = RunState::Stopped;
            run.stopped_by = Some(caller.to_string());
            let saved = self.store.operators().save_run(id, row.version, StillRuns::No, &run.text()).await?;
            if let Some(row) = saved {
                self.runs.wake.notify_one();
                return Ok(run.view(&row));
            }
        }
        Err(ErrorDetail::new(ErrorCode::Unavailable, format!("run {id} is changed all the time"))
            .hint("try again"))
    }

    async fn find_run(&self, id: u64) -> Result<(RunRow, Run)> {
        let row = self.store.operators().run(id).await?;
        let row = row.ok_or_else(|| {
            ErrorDetail::new(ErrorCode::NotFound, format!("run {id} not found"))
                .hint("`windlass runs ls` lists the runs")
        })?;
        let run = Run::read(&row)?;
        Ok((row, run))
    }
}

/// Checks a request; answers the states of the tasks that it is about, in the order in which the run takes them.
fn checked(request: &RunRequest) -> Result<Vec<windlass_core::State>> {
    let RunRequest { action, filter, over_ms, reason, .. } = request;
    duration("over_ms", over_ms.unwrap_or(0))?;
    bulk::states(*action, filter, reason.as_deref())
}

/// The pace that was asked for.
fn pace(run: &Run) -> Pace {
    Pace { changes: run.matched, over: std::time::Duration::from_millis(run.over_ms) }
}

/// Whether a task that ended then was as it is when the run was started.
fn is_of_before(ended_at: Option<Timestamp>, started_at: Timestamp) -> bool {
    ended_at.is_none_or(|at| at <= started_at)
}
