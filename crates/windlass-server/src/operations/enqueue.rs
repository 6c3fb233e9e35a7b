//! Enqueue, and the warning that no live worker would run the task.

pub(super) mod new_task;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use windlass::inside;
use windlass_core::{Enqueued, Error, Name, NewTask, TraceContext, WorkerRecord, why::word};

use self::new_task::new_task;
use super::{Operations, Result};
use crate::{
    access::{Caller, may_have},
    api::{
        BatchRequest, BatchResponse, EnqueueRequest, EnqueueResponse, EnqueuedTask, ErrorCode, ErrorDetail,
    },
};

/// How long a list of live workers is used, so that many enqueues cause one query a second.
const LOOK_MAX_AGE: Duration = Duration::from_secs(1);

/// The live workers of the last query.
#[derive(Debug, Default)]
pub(super) struct LiveKinds {
    seen: Mutex<Option<(Instant, Arc<Vec<WorkerRecord>>)>>,
}

impl LiveKinds {
    fn fresh(&self) -> Option<Arc<Vec<WorkerRecord>>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().filter(|(at, _)| at.elapsed() < LOOK_MAX_AGE).map(|(_, workers)| Arc::clone(workers))
    }

    fn keep(&self, workers: &Arc<Vec<WorkerRecord>>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), Arc::clone(workers)));
    }
}

/// Why nothing was added: the server's own checks, or an error of the store, which carries more than a
/// sentence.
pub(crate) enum Refused {
    Checked(ErrorDetail),
    Store(Error),
}

impl Operations {
    /// Adds one task. Without a live worker that would run it, the call succeeds with a warning.
    pub async fn enqueue(&self, request: EnqueueRequest) -> Result<EnqueueResponse> {
        self.enqueue_in(&Caller::Anybody, None, request).await
    }

    /// The same for a caller whose token may be bound to queues or kinds, as part of the caller's trace.
    pub async fn enqueue_in(
        &self,
        caller: &Caller,
        trace: Option<TraceContext>,
        request: EnqueueRequest,
    ) -> Result<EnqueueResponse> {
        let task = self.checked(request)?;
        may_have(caller, &task.queue, &task.kind)?;
        let lanes = BTreeSet::from([(task.queue.clone(), task.kind.clone())]);
        let jobs = vec![task.job.clone()];
        let enqueued = inside::enqueue(self.adds(), self.tracer.as_ref(), trace, vec![task]).await?;
        self.count(&enqueued);
        let cancelled = cancelled_jobs(jobs, &enqueued);
        let enqueued = enqueued.first().ok_or_else(|| {
            ErrorDetail::new(ErrorCode::UnknownOutcome, "the store did not say which task it added")
        })?;
        Ok(EnqueueResponse {
            id: enqueued.id,
            existing: enqueued.existing,
            cancelled: enqueued.cancelled,
            warnings: self.warned(cancelled, lanes).await,
        })
    }

    /// Adds several tasks, all or none.
    pub async fn enqueue_batch(&self, request: BatchRequest) -> Result<BatchResponse> {
        self.enqueue_batch_in(&Caller::Anybody, None, request).await
    }

    /// The same for a caller whose token may be bound to queues or kinds, as part of the caller's trace.
    pub async fn enqueue_batch_in(
        &self,
        caller: &Caller,
        trace: Option<TraceContext>,
        request: BatchRequest,
    ) -> Result<BatchResponse> {
        self.check_batch_len(request.tasks.len())?;
        let tasks = request
            .tasks
            .into_iter()
            .enumerate()
            .map(|(index, task)| {
                let task = self.checked(task);
                let allowed = task.and_then(|task| may_have(caller, &task.queue, &task.kind).map(|()| task));
                allowed.map_err(|mut error| {
                    error.message = format!("tasks[{index}]: {}", error.message);
                    error
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if request.dry_run {
            return Ok(BatchResponse { tasks: Vec::new(), warnings: Vec::new() });
        }
        Ok(self.add(trace, tasks).await?)
    }

    /// Adds tasks that are already built, all or none. Each is checked like a task that came as JSON.
    pub(crate) async fn enqueue_tasks(
        &self,
        caller: &Caller,
        tasks: Vec<NewTask>,
    ) -> Result<BatchResponse, Refused> {
        for (index, task) in tasks.iter().enumerate() {
            let allowed = self.check_task(task).and_then(|()| may_have(caller, &task.queue, &task.kind));
            allowed.map_err(|mut error| {
                if tasks.len() > 1 {
                    error.message = format!("tasks[{index}]: {}", error.message);
                }
                Refused::Checked(error)
            })?;
        }
        self.add(None, tasks).await.map_err(Refused::Store)
    }

    async fn add(
        &self,
        trace: Option<TraceContext>,
        tasks: Vec<NewTask>,
    ) -> windlass_core::Result<BatchResponse> {
        let lanes = tasks.iter().map(|task| (task.queue.clone(), task.kind.clone())).collect();
        let jobs = tasks.iter().map(|task| task.job.clone()).collect();
        let enqueued = inside::enqueue(self.adds(), self.tracer.as_ref(), trace, tasks).await?;
        self.count(&enqueued);
        let warnings = self.warned(cancelled_jobs(jobs, &enqueued), lanes).await;
        let answer = |task: Enqueued| {
            let Enqueued { id, existing, cancelled } = task;
            EnqueuedTask { id, existing, cancelled }
        };
        Ok(BatchResponse { tasks: enqueued.into_iter().map(answer).collect(), warnings })
    }

    /// One warning per cancelled job, then one per lane that no worker serves.
    pub(super) async fn warned(
        &self,
        cancelled: BTreeSet<Name>,
        lanes: BTreeSet<(Name, Name)>,
    ) -> Vec<String> {
        let mut warnings: Vec<String> = cancelled.iter().map(cancelled_with).collect();
        warnings.extend(self.warnings(lanes).await);
        warnings
    }

    pub(super) fn count(&self, enqueued: &[Enqueued]) {
        let new = enqueued.iter().filter(|task| !task.existing).count() as u64;
        self.enqueued.fetch_add(new, Ordering::Relaxed);
    }

    /// Refuses an empty batch and one over the limit, before its tasks are checked.
    pub(crate) fn check_batch_len(&self, len: usize) -> Result<()> {
        let max = self.store.rules().batch_max;
        match len {
            0 => Err(ErrorDetail::invalid("tasks must not be empty")),
            len if len > max => Err(ErrorDetail::new(
                ErrorCode::TooLarge,
                format!("tasks has {len} entries; at most {max} in one batch"),
            )
            .hint("send several batches")),
            _ => Ok(()),
        }
    }

    pub(super) fn checked(&self, request: EnqueueRequest) -> Result<NewTask> {
        let task = new_task(request, self.store.rules())?;
        self.check_task(&task)?;
        Ok(task)
    }

    fn check_task(&self, task: &NewTask) -> Result<()> {
        task.check(self.store.rules())?;
        (self.check)(&task.kind, &task.payload).map_err(|wrong| {
            ErrorDetail::invalid(format!("payload of kind {:?}: {wrong}", task.kind.as_str()))
        })
    }

    /// One warning per lane that no live worker serves. The tasks are already in the store: if the list of
    /// workers cannot be read, only the warnings are missing.
    pub(super) async fn warnings(&self, lanes: BTreeSet<(Name, Name)>) -> Vec<String> {
        let served = |workers: &[WorkerRecord], (queue, kind): &(Name, Name)| {
            workers.iter().any(|worker| worker.serves(queue, kind))
        };
        let mut workers = self.live_kinds.fresh();
        // Query again before a warning: a worker may have registered since the cached list.
        if !workers.as_ref().is_some_and(|workers| lanes.iter().all(|lane| served(workers, lane))) {
            workers = self.store.workers().await.ok().map(Arc::new);
        }
        let Some(workers) = workers else { return Vec::new() };
        self.live_kinds.keep(&workers);
        lanes
            .iter()
            .filter(|lane| !served(&workers, lane))
            .map(|(queue, kind)| {
                let kind = kind.as_str();
                let other_queue = workers
                    .iter()
                    .any(|worker| worker.live && worker.kinds.iter().any(|k| k.as_str() == kind));
                let place =
                    if other_queue { format!(" on queue {:?}", queue.as_str()) } else { String::new() };
                format!("no live worker handles kind {kind:?}{place}; the task waits until one does")
            })
            .collect()
    }
}

/// The jobs that cancelled what was added to them.
fn cancelled_jobs(jobs: Vec<Option<Name>>, enqueued: &[Enqueued]) -> BTreeSet<Name> {
    let cancelled = jobs.into_iter().zip(enqueued).filter(|(_, task)| task.cancelled);
    cancelled.filter_map(|(job, _)| job).collect()
}

/// The warning to a caller who adds a task to a cancelled job: the task will not run.
fn cancelled_with(job: &Name) -> String {
    let (shown, typed) = (job.as_str(), word(job));
    format!(
        "job {shown:?} is cancelled, and the task with it; `windlass jobs resume {typed}` lets tasks in again"
    )
}
