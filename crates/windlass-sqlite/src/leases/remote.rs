//! Remote workers across a restart of the store's process. Each has one lease time from the start to renew,
//! and keeps its tasks until then.

use std::time::Duration;

use rusqlite::Connection;
use windlass_core::{LeaseRef, NewWorker, Timestamp, WorkerId};

use crate::{gates::admit, leases::hand_back::names_from_stored, memory::Memory, shared::Shared, sql};

/// A worker that may come back.
pub(crate) struct Away {
    pub id: WorkerId,
    worker: NewWorker,
    min_claim_no: u64,
    registered_at: Timestamp,
    renewed_at: Timestamp,
}

/// Reads the remote workers whose registrations had not ended.
pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Vec<Away>> {
    let mut statement = conn.prepare(sql::LOAD_WORKERS)?;
    let mut rows = statement.query([])?;
    let mut away = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get::<_, bool>(1)? {
            continue;
        }
        let names = |text: String| names_from_stored(&text);
        let worker = NewWorker {
            host: row.get(2)?,
            pid: row.get(3)?,
            version: row.get(4)?,
            kinds: names(row.get(5)?),
            queues: names(row.get(6)?),
            slots: row.get(7)?,
            lease_ttl: Duration::from_millis(row.get::<_, i64>(8)?.unsigned_abs()),
        };
        away.push(Away {
            id: WorkerId(row.get(0)?),
            worker,
            min_claim_no: row.get::<_, i64>(9)?.unsigned_abs(),
            registered_at: Timestamp::from_ms(row.get(10)?),
            renewed_at: Timestamp::from_ms(row.get(11)?),
        });
    }
    Ok(away)
}

impl Away {
    /// Adds it to the registered workers again.
    pub(crate) fn enter(&self, memory: &mut Memory) {
        memory.add_worker(self.id, admit::service(&self.worker));
        if let Some(entry) = memory.worker_mut(self.id) {
            entry.min_claim_no = self.min_claim_no;
        }
    }
}

/// Starts their leases anew, and repeats the cancellations that were requested of them.
pub(crate) fn go_on(away: &[Away], memory: &Memory, shared: &Shared) {
    for Away { id, worker, registered_at, renewed_at, .. } in away {
        let clock = shared.options.clock.as_ref();
        shared.leases.go_on(*id, worker.clone(), (*registered_at, *renewed_at), clock);
        for (task, held) in memory.worker(*id).into_iter().flat_map(|worker| &worker.held) {
            if let Some(reason) = &held.cancel {
                shared.leases.ask_cancel(*id, LeaseRef { id: *task, lease: held.lease }, reason);
            }
        }
    }
}
