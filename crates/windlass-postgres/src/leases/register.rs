//! Registration: a worker's row, and the connections that it needs.

use std::sync::Arc;

use windlass_core::{Error, Name, NewWorker, Result, WorkerId, worker::Registration};

use crate::{
    connection::values::{column, ms},
    gates::admit,
    operate::record::names,
    shared::Shared,
    sql,
};

/// Stores a worker. The connections are made first, before the lease begins to run: the worker claims and
/// settles right after.
pub(crate) async fn register(
    shared: &Arc<Shared>,
    worker: &NewWorker,
    owner: Option<&str>,
) -> Result<WorkerId> {
    shared.serve_lease(worker.lease_ttl);
    tokio::join!(shared.renewals.warm(), shared.claims.warm(), shared.settles.warm());
    let id = enter(shared, worker, owner).await?;
    admit::worker_registered(shared).await;
    Ok(id)
}

async fn enter(shared: &Shared, worker: &NewWorker, owner: Option<&str>) -> Result<WorkerId> {
    let (kinds, queues) = (column(&worker.kinds, Name::as_str), column(&worker.queues, Name::as_str));
    let ttl = ms(worker.lease_ttl);
    let (pid, slots) = (worker.pid as i32, worker.slots as i32);
    let row = shared
        .renewals
        .row(&sql::REGISTER, &[&worker.host, &pid, &worker.version, &kinds, &queues, &slots, &ttl, &owner])
        .await?;
    row.map(|row| WorkerId(row.get(0)))
        .ok_or_else(|| Error::Unavailable("the server registered no worker".to_owned()))
}

/// What a worker registered with.
pub(crate) async fn registration(shared: &Shared, worker: WorkerId) -> Result<Option<Registration>> {
    let row = shared.pool.row(&sql::REGISTRATION, &[&worker.0]).await?;
    Ok(row.map(|row| Registration { owner: row.get(0), kinds: names(&row, 1), queues: names(&row, 2) }))
}
