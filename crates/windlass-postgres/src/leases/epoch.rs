//! The epoch of leases (see [`windlass_core::epoch`]). An unlogged table holds the epoch in force, and a
//! crash of the server empties that table. The same crash can forget claims, since they do not wait for the
//! disk.

use std::sync::atomic::{AtomicU32, Ordering};

use windlass_core::{
    ClaimAnswer, Result,
    epoch::{EPOCH_STEP, Epoch},
};

use crate::{connection::values::Cells, shared::Shared, sql};

/// The epoch that the server told this process last.
#[derive(Debug, Default)]
pub(crate) struct LastEpoch(AtomicU32);

impl LastEpoch {
    pub(crate) fn set(&self, epoch: u32) {
        self.0.store(epoch, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Epoch {
        Epoch(self.0.load(Ordering::Relaxed))
    }
}

/// Begins an epoch if the server has forgotten which one is in force; answers the one that is in force then.
pub(crate) async fn begin_if_forgotten(shared: &Shared) -> Result<u32> {
    let (epoch, is_new) = begin(shared, None).await?;
    if is_new {
        tracing::warn!(
            first_lease = epoch,
            "the server was down in a crash and may have forgotten claims; workers compare their leases"
        );
    }
    Ok(epoch)
}

/// Begins an epoch if a claim has used up the one in force. If that fails, the next claim of such a task
/// tries again.
pub(crate) async fn begin_if_used_up(shared: &Shared, answer: &ClaimAnswer) {
    let epoch = shared.epoch.get();
    if answer.tasks.iter().all(|task| !epoch.is_used_up_by(task.lease)) {
        return;
    }
    if let Err(error) = begin(shared, Some(epoch)).await {
        tracing::debug!(%error, "the next epoch of leases could not be begun");
    }
}

/// On the connection of renewals: its commits wait for the disk, unlike those of claims.
async fn begin(shared: &Shared, used_up: Option<Epoch>) -> Result<(u32, bool)> {
    let used_up = used_up.map(|epoch| i64::from(epoch.0));
    let row = shared.renewals.row(&sql::BEGIN_EPOCH, &[&used_up, &i64::from(EPOCH_STEP)]).await?;
    let (epoch, is_new) = row.map_or((0, false), |row| (row.small(0), row.get(1)));
    shared.epoch.set(epoch);
    Ok((epoch, is_new))
}
