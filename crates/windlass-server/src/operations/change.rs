//! Cancel, retry and removal of one task; pause, resume and purge of a queue.

pub(super) mod bulk;

use std::time::Duration;

use windlass::inside;
use windlass_core::{
    Error, Name, State, TaskId, TaskRecord, repeat,
    store::{Redrive, only as only_one},
};

use super::{Operations, Result, duration, only};
use crate::api::{
    CancelRequest, ChangeResponse, ErrorCode, ErrorDetail, PurgeRequest, PurgeResponse, QueueChange,
    RetryRequest, TaskRemoved,
};

/// What a task's record says if the caller gave no reason.
pub(super) const CANCEL_REASON: &str = "cancelled by request";

/// What a task's record says if a purge cancelled it.
const PURGE_REASON: &str = "its queue was purged";

/// What the caller asks of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claims {
    /// Nothing is claimed from it.
    Pause,
    /// Its tasks are claimed again.
    Resume,
}

impl Operations {
    /// Ends a task that has not started, or asks a running one to end.
    pub async fn cancel(&self, id: TaskId, request: CancelRequest) -> Result<ChangeResponse> {
        let reason = self.reason(request.reason.as_deref());
        let changed = only(self.store.cancel(&[id], &reason).await?, &id)?;
        Ok(ChangeResponse { id, state: changed.result?, repeats: None })
    }

    /// Gives a dead task a fresh budget of attempts; repeats a done or cancelled task as a new task.
    pub async fn retry(&self, id: TaskId, request: RetryRequest) -> Result<ChangeResponse> {
        let delay = duration("delay_ms", request.delay_ms.unwrap_or(0))?;
        let changed = only(self.store.redrive(&[Redrive { id, delay }]).await?, &id)?;
        match changed.result {
            Ok(state) => Ok(ChangeResponse { id, state, repeats: None }),
            Err(error @ Error::Conflict(_)) => match self.store.task(id).await? {
                Some(task) if matches!(task.state, State::Done | State::Cancelled) => {
                    self.repeat(&task, delay).await
                }
                _ => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Repeats a done or cancelled task as a new task. Refuses a dead task and one that has not ended.
    pub(crate) async fn repeat_ended(&self, id: TaskId, delay: Duration) -> Result<ChangeResponse> {
        let task = self.record(id).await?;
        if task.state == State::Dead {
            return Err(ErrorDetail::new(ErrorCode::Conflict, format!("task {id} is dead"))
                .hint(format!("give it new attempts: `windlass tasks retry {id}`, or RetryTasks of gRPC")));
        }
        self.repeat(&task, delay).await
    }

    /// Adds a copy of a task. A task is repeated once: a second call adds nothing.
    async fn repeat(&self, task: &TaskRecord, delay: Duration) -> Result<ChangeResponse> {
        let copy = vec![repeat::copy(task, delay)?];
        let added = only_one(inside::enqueue(self.adds(), self.tracer.as_ref(), None, copy).await?)?;
        self.count(&[added]);
        if added.existing {
            let message = format!("task {} is already repeated by task {}", task.id, added.id);
            return Err(ErrorDetail::new(ErrorCode::Conflict, message)
                .hint(format!("retry that one: `windlass tasks retry {}`", added.id)));
        }
        let state = self.store.task(added.id).await?.map_or(State::Ready, |task| task.state);
        Ok(ChangeResponse { id: added.id, state, repeats: Some(task.id) })
    }

    /// Removes a dead task for good.
    pub async fn remove(&self, id: TaskId) -> Result<TaskRemoved> {
        only(self.store.remove(&[id]).await?, &id)?.result?;
        Ok(TaskRemoved { removed: id })
    }

    /// Cancels the waiting tasks of a queue and removes its dead ones. Running tasks continue.
    pub async fn purge(&self, queue: &str, request: PurgeRequest) -> Result<PurgeResponse> {
        let queue = Name::new("queue", queue)?;
        let known = self.store.lane_records().await?.iter().any(|lane| lane.queue == queue);
        if !known {
            return Err(ErrorDetail::new(ErrorCode::NotFound, format!("queue {queue} not found"))
                .hint("`windlass queues ls` lists the queues"));
        }
        let reason = request.reason.unwrap_or_else(|| PURGE_REASON.to_owned());
        let cancelled = self.cancel_waiting(&queue, reason, request.dry_run).await?;
        let removed = self.remove_dead_of(&queue, request.dry_run).await?;
        Ok(PurgeResponse { queue, cancelled, removed })
    }

    /// Stops claims from a queue. The queue need not have a task yet.
    pub async fn pause(&self, queue: &str) -> Result<QueueChange> {
        self.set_claims(queue, Claims::Pause).await
    }

    /// Lets a queue's tasks be claimed again.
    pub async fn resume(&self, queue: &str) -> Result<QueueChange> {
        self.set_claims(queue, Claims::Resume).await
    }

    async fn set_claims(&self, queue: &str, claims: Claims) -> Result<QueueChange> {
        let queue = Name::new("queue", queue)?;
        let paused = claims == Claims::Pause;
        let changed = self.store.set_queue_paused(&queue, paused).await?;
        Ok(QueueChange { queue, paused, changed })
    }

    /// The reason, cut to the length that the store accepts.
    pub(crate) fn reason(&self, given: Option<&str>) -> String {
        let text = given.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(CANCEL_REASON);
        self.store.rules().clip_error(text)
    }
}
