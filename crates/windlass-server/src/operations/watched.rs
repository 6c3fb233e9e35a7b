//! What everyone who watches the store sees. Any number of callers cost the store as much as one.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use windlass::telemetry::Exposition;
use windlass_core::{Name, Timestamp};

use super::{Operations, Result};
use crate::{
    api::{Audit, LastAudit, Series, Snapshot},
    watch::{self, Backlogs},
};

impl Operations {
    /// The store at this moment, not older than the interval between two snapshots.
    pub async fn snapshot(&self) -> Snapshot {
        self.watch.shot(&self.store, self.last_audit()).await.snapshot.clone()
    }

    /// The history of a queue, or of all queues together, from a time on.
    pub async fn series(&self, queue: Option<Name>, from: Option<Timestamp>) -> Series {
        self.watch.series(queue, from).await
    }

    /// The backlog of each queue over a time until now, in at most about so many points.
    pub(crate) async fn backlogs(&self, over: Duration, most: u32) -> Backlogs {
        self.watch.backlogs(over, most).await
    }

    /// Keeps the history complete while no caller looks. Ends only by being dropped.
    pub async fn keep_history(&self) -> Infallible {
        self.watch.record(&self.store).await
    }

    /// A place for a stream of snapshots.
    pub(crate) fn viewer(&self) -> Result<OwnedSemaphorePermit> {
        self.watch.viewer()
    }

    /// The first snapshot after the one with this number, as an event with its number. Waits until it is time.
    pub(crate) async fn event_after(&self, number: u64) -> (u64, Bytes) {
        let shot = self.watch.after(number, &self.store, || self.last_audit()).await;
        (shot.number, shot.event())
    }

    /// What this process knows of audits without a further one: the last of all, and what the last one found that
    /// a caller asked for.
    pub(crate) fn known_audits(&self) -> (Option<LastAudit>, Option<(Arc<Audit>, Timestamp)>) {
        (self.watch.audited(self.last_audit()), self.watch.asked_audit())
    }

    /// The last audit of the worker in this process.
    fn last_audit(&self) -> Option<LastAudit> {
        let (findings, at) = self.exposition.as_ref().and_then(Exposition::last_audit)?;
        Some(LastAudit { findings: findings as u64, at: watch::at(at) })
    }
}
