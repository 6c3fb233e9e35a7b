//! Waiting for tasks to end.

use std::{pin::Pin, sync::Arc, time::Duration};

use windlass_core::{TaskId, TaskRecord, store::SharedStore};

use super::{Operations, Result, list::missing};
use crate::api::{ErrorDetail, WAIT_IDS_MAX, WAIT_MAX_MS, WaitRequest, WaitResponse};

/// How long a wait lasts unless a time is given.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(30);

/// The tasks that have ended, or do not exist any more (`None`).
pub type Ended = windlass_core::Result<Vec<(TaskId, Option<TaskRecord>)>>;
/// A function that waits until the first of some tasks has ended.
pub(super) type Waits =
    Arc<dyn Fn(Vec<TaskId>, Duration) -> Pin<Box<dyn Future<Output = Ended> + Send>> + Send + Sync>;

/// Waits by asking the store itself.
pub(super) fn on_store(store: SharedStore) -> Waits {
    Arc::new(move |ids, wait| {
        let store = Arc::clone(&store);
        Box::pin(async move { store.ended(&ids, wait).await })
    })
}

impl Operations {
    /// The tasks that have ended, or do not exist any more (`None`); waits for the first.
    pub(crate) async fn ended(&self, ids: Vec<TaskId>, wait: Duration) -> Ended {
        (self.waits)(ids, wait).await
    }

    /// Waits for the first of several tasks to end and answers with all that have ended; with none if the
    /// time ran out first.
    pub async fn wait(&self, request: WaitRequest) -> Result<WaitResponse> {
        if request.ids.is_empty() || request.ids.len() > WAIT_IDS_MAX {
            let n = request.ids.len();
            return Err(ErrorDetail::invalid(format!(
                "ids has {n} entries; it must have 1 to {WAIT_IDS_MAX}"
            )));
        }
        let wait = match request.timeout_ms {
            None => WAIT_DEFAULT,
            Some(ms) if ms <= WAIT_MAX_MS => Duration::from_millis(ms),
            Some(ms) => {
                let message = format!("timeout_ms is {ms}; at most {WAIT_MAX_MS}");
                return Err(ErrorDetail::invalid(message).hint("wait again until it has ended"));
            }
        };
        let mut answer = WaitResponse::default();
        for (id, record) in (self.waits)(request.ids, wait).await? {
            match record {
                Some(record) => answer.ended.push(self.view(record)),
                None => answer.missing.push(id),
            }
        }
        Ok(answer)
    }

    /// Waits for one task, which must exist.
    pub async fn wait_for(&self, id: TaskId, timeout_ms: Option<u64>) -> Result<WaitResponse> {
        let answer = self.wait(WaitRequest { ids: vec![id], timeout_ms }).await?;
        if answer.missing.is_empty() { Ok(answer) } else { Err(missing(id)) }
    }
}
