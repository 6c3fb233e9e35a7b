//! What the store tells of itself and of its workers.

use windlass_core::{Error, Result, WorkerCounts, WorkerId, WorkerRecord, store::StoreInfo};

use crate::{connection::values::Cells, operate::record::names, shared::Shared, sql};

/// Workers in one list.
const WORKERS_MAX: i64 = 10_000;
/// The most kept tasks that are counted; above that the server's own estimate is told.
const HISTORY_LOOK: i64 = 10_000;

/// The address and schema of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub schema_version: u32,
    pub created: bool,
}

pub(crate) async fn info(shared: &Shared, origin: Origin) -> Result<StoreInfo> {
    let mut session = shared.pool.session().await?;
    let row = session
        .row(&sql::INFO, &[&shared.options.schema.as_str()])
        .await?
        .ok_or_else(|| Error::Unavailable("the server did not describe itself".to_owned()))?;
    let seen: i64 = session.row(&sql::HISTORY_SIZE, &[&HISTORY_LOOK]).await?.map_or(0, |row| row.get(0));
    let reckoned: i64 = row.get(3);
    let version: &str = row.get(0);
    Ok(StoreInfo {
        backend: "postgresql".to_owned(),
        location: shared.location(),
        engine_version: version.split(' ').next().unwrap_or(version).to_owned(),
        schema_version: origin.schema_version,
        bytes: row.number(2),
        wal_bytes: 0,
        free_disk_bytes: 0,
        history_rows: if seen < HISTORY_LOOK { seen as u64 } else { reckoned.max(seen) as u64 },
        history_bytes: row.number(4),
        durable: row.get(1),
        created: origin.created,
        recovered: 0,
    })
}

/// Every worker, also those that left or died in the last day.
pub(crate) async fn workers(shared: &Shared) -> Result<Vec<WorkerRecord>> {
    let rows = shared.pool.query(&sql::WORKERS, &[&WORKERS_MAX]).await?;
    let worker = |row: &tokio_postgres::Row| WorkerRecord {
        id: WorkerId(row.get(0)),
        host: row.get(1),
        pid: row.small(2),
        version: row.get(3),
        kinds: names(row, 4),
        queues: names(row, 5),
        slots: row.small(6),
        in_flight: row.small(7),
        available: row.small(8),
        draining: row.get(9),
        live: row.get(10),
        registered_at: row.time(11),
        renewed_at: row.time(12),
        memory_usage: row.get(13),
        factor: row.get(14),
        reason: row.get(15),
        ended: row.get(16),
        counts: WorkerCounts::from_stored(row.get(17)),
    };
    Ok(rows.iter().map(worker).collect())
}
