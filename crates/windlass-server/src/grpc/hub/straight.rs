//! The short way of a new task, if a worker already waits for it: one commit adds the task and leases it, and
//! the server sends it down that worker's stream without a claim.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OwnedMutexGuard;
use windlass::inside::Adds;
use windlass_core::{Demand, Enqueued, Error, NewTask, Result};

use super::Hub;

/// Adds the tasks that are enqueued through this server.
pub(in crate::grpc) struct Straight(pub(in crate::grpc) Arc<Hub>);

#[async_trait]
impl Adds for Straight {
    async fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        let hub = &self.0;
        let way = match tasks.as_slice() {
            [task] if task.is_plain() => Way::open(hub, task),
            _ => None,
        };
        let Some(way) = way else { return hub.store.enqueue(tasks).await };
        let Some(task) = tasks.into_iter().next() else { return Ok(Vec::new()) };
        // In a task of its own: if the caller goes away, the leased task must still be sent.
        let added = tokio::spawn(way.go(task)).await;
        Ok(vec![added.map_err(|error| Error::Unknown(error.to_string()))??])
    }
}

/// The way of one task to a waiting worker. Only one at a time, and never beside a claim: many enqueues at
/// once share a commit, which is faster for all of them, and a worker's claims must arrive in order.
struct Way {
    hub: Arc<Hub>,
    stream: u64,
    demand: Demand,
    _claiming: OwnedMutexGuard<()>,
}

impl Way {
    /// Reserves a place with the worker that has the most free slots for such a task; `None` if no worker
    /// waits or a claim is running.
    fn open(hub: &Arc<Hub>, task: &NewTask) -> Option<Self> {
        let claiming = Arc::clone(&hub.claiming).try_lock_owned().ok()?;
        let (stream, lanes) = {
            let members = hub.members();
            let waiting = members.iter().filter(|(_, member)| member.takes(task));
            let (stream, member) = waiting.max_by_key(|(stream, member)| member.want(**stream, 0).demand)?;
            (*stream, Arc::clone(&member.lanes))
        };
        let (stream, demand) = hub.reserve(&lanes, &[(stream, 1)]).pop()?;
        Some(Self { hub: Arc::clone(hub), stream, demand, _claiming: claiming })
    }

    async fn go(self, task: NewTask) -> Result<Enqueued> {
        let added = self.hub.store.enqueue_for(task, &self.demand).await;
        match added {
            Ok((enqueued, claimed, safe)) => {
                if !self.hub.send(self.stream, &self.demand, claimed.into_iter().collect()) {
                    self.hub.undo(&self.demand).await;
                }
                // Send the task to its worker before the caller is answered, and while the commit goes to
                // disk.
                tokio::task::yield_now().await;
                safe.wait().await?;
                Ok(enqueued)
            }
            Err(error) => {
                self.hub.give_back(self.stream, &self.demand);
                if matches!(error, Error::Unknown(_)) {
                    self.hub.undo(&self.demand).await;
                }
                Err(error)
            }
        }
    }
}
