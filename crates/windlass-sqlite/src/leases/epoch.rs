//! The epoch of leases (see [`windlass_core::epoch`]). Claims are not synced to the disk. A power cut can
//! therefore undo claims of remote workers that live on, and a restored copy lacks all later leases.

use rusqlite::{Connection, OptionalExtension};
use windlass_core::epoch::Epoch;

use crate::{
    connection::tx::{Step, Tx},
    sql,
};

/// Epochs skipped when a store is opened. The last opening may itself have been lost, together with the
/// claims that used up the epoch before it. Two are enough: only a synced commit ends a lease.
const STEPS_AT_OPEN: u32 = 2;
/// Epochs skipped at a restore: more than the openings and busy tasks since the copy was made.
const STEPS_AT_RESTORE: u32 = 2_000;
/// Worker ids skipped at a restore: more than the registrations since the copy was made.
const WORKERS_AT_RESTORE: i64 = 1_000_000;

/// Reads the epoch.
pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Epoch> {
    let first = conn.query_row(sql::LOAD_EPOCH, [], |row| row.get(0)).optional()?;
    Ok(Epoch(first.unwrap_or(0)))
}

/// Starts a new epoch, `steps` after the current one.
pub(crate) fn begin(tx: &mut Tx<'_>, steps: u32) -> Step<()> {
    // A rollback does not undo this: a gap does no harm.
    tx.memory.epoch = tx.memory.epoch.after(steps);
    tx.sql(sql::BEGIN_EPOCH)?.execute([tx.memory.epoch.0])?;
    tx.leases.set_epoch(tx.memory.epoch);
    Ok(())
}

/// Starts an epoch when a store is opened in which workers were registered at the last close. Workers that
/// left had all their claims on disk by then, so a process that only enqueues uses up no epochs.
pub(crate) fn begin_at_open(tx: &mut Tx<'_>, workers: usize) -> Step<()> {
    if workers == 0 {
        tx.leases.set_epoch(tx.memory.epoch);
        return Ok(());
    }
    begin(tx, STEPS_AT_OPEN)
}

/// Starts an epoch in a copy that will become the store.
pub(crate) fn begin_at_restore(conn: &Connection) -> rusqlite::Result<()> {
    let epoch = load(conn)?.after(STEPS_AT_RESTORE);
    conn.execute(sql::BEGIN_EPOCH, [epoch.0])?;
    conn.execute(sql::RESTORE_WORKER_IDS, [WORKERS_AT_RESTORE])?;
    Ok(())
}
