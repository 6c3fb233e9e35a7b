//! Cancel and retry of one task; pause and resume of a queue.

use windlass_core::{Name, TaskId, store::Redrive};

use super::{Operations, Result, duration, only};
use crate::api::{CancelRequest, ChangeResponse, QueueChange, RetryRequest};

/// What a task's record says if the caller gave no reason.
pub(super) const CANCEL_REASON: &str = "cancelled by request";

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
        Ok(ChangeResponse { id, state: changed.result? })
    }

    /// Grants a dead task a fresh budget of attempts.
    pub async fn retry(&self, id: TaskId, request: RetryRequest) -> Result<ChangeResponse> {
        let delay = duration("delay_ms", request.delay_ms.unwrap_or(0))?;
        let changed = only(self.store.redrive(&[Redrive { id, delay }]).await?, &id)?;
        Ok(ChangeResponse { id, state: changed.result? })
    }

    /// Stops claims from a queue, also of one that has no task yet.
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

    /// The reason as it may be kept.
    pub(crate) fn reason(&self, given: Option<&str>) -> String {
        let text = given.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(CANCEL_REASON);
        self.store.rules().clip_error(text)
    }
}
