//! Queues, workers, and what the process reports about itself.

use std::{cmp::Reverse, sync::atomic::Ordering};

use windlass_core::{Error, Timestamp, WorkerId, usage::PoolUsage};

use super::{Operations, Result, view};
use crate::api::{
    Audit, ConnectionsView, InfoView, KindView, Overview, QueueView, Queues, WorkerRequest, WorkerView,
    Workers,
};

pub(super) mod consumers;
mod why;

impl Operations {
    /// Every queue with its figures, by name.
    pub async fn queues(&self) -> Result<Queues> {
        let queues = windlass::client::Queues::new(self.store.clone()).list().await?;
        let kind = |(kind, depth)| KindView { kind, depth };
        let view = |queue: windlass::client::Queue| QueueView {
            queue: queue.name,
            paused: queue.paused,
            kinds: queue.kinds.into_iter().map(kind).collect(),
        };
        Ok(Queues { queues: queues.into_iter().map(view).collect() })
    }

    /// Every worker of the last day, the newest first.
    pub async fn workers(&self) -> Result<Workers> {
        let mut workers = self.store.workers().await?;
        workers.sort_by_key(|worker| Reverse(worker.id));
        let now = now();
        Ok(Workers { workers: workers.into_iter().map(|worker| view::worker(worker, now)).collect() })
    }

    /// Changes how many tasks a running worker may run at once. The worker receives the change with its next
    /// heartbeat.
    pub async fn set_worker(&self, worker: &str, request: WorkerRequest) -> Result<WorkerView> {
        let id: WorkerId = worker.parse()?;
        self.store.set_worker_slots(id, request.slots).await?;
        let workers = self.store.workers().await?;
        let found = workers.into_iter().find(|worker| worker.id == id);
        found
            .map(|worker| view::worker(worker, now()))
            .ok_or_else(|| Error::NotFound(format!("worker {id}")).into())
    }

    /// Checks every task for a broken promise. It reads everything: for operators, not for a monitor.
    pub async fn audit(&self) -> Result<Audit> {
        let findings = self.store.audit().await?;
        let audit = Audit { findings };
        self.watch.note_audit(&audit);
        Ok(audit)
    }

    /// Counts of this process since it started. Does not ask the store.
    pub fn overview(&self) -> Overview {
        Overview {
            pid: std::process::id(),
            enqueued: self.enqueued.load(Ordering::Relaxed),
            worker: (self.worker_status)(),
        }
    }

    /// What this process and its store report about themselves.
    pub async fn info(&self) -> Result<InfoView> {
        Ok(InfoView {
            version: self.version.to_string(),
            pid: std::process::id(),
            store: self.store.info().await?,
            connections: self.store.usage().pools.iter().map(connections).collect(),
            worker: (self.worker_status)(),
        })
    }
}

fn connections(pool: &PoolUsage) -> ConnectionsView {
    ConnectionsView {
        name: pool.name.to_owned(),
        size: pool.size,
        busy: pool.busy,
        uses: pool.uses,
        waited_ms: pool.waited.as_millis() as u64,
    }
}

/// The wall clock, only for people: how long ago something was.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
