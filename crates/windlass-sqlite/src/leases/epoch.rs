//! The epoch of leases (see [`windlass_core::epoch`]). Claims are not synced to the disk, so a power cut can forget some while
//! workers of other processes live on. A restored copy lacks all later leases.

use rusqlite::{Connection, OptionalExtension};
use windlass_core::epoch::Epoch;

use crate::{
    connection::tx::{Step, Tx},
    sql,
};

/// Steps at an opening: one may itself have been forgotten, together with the claims that used up the one before. Not more, since
/// nothing but a synced commit ends a lease.
const STEPS_AT_OPEN: u32 = 2;
/// Steps at a restore: for all openings and busy tasks since the copy was made.
const STEPS_AT_RESTORE: u32 = 2_000;
/// Ids of workers that are left out at a restore, for those that registered since the copy was made.
const WORKERS_AT_RESTORE: i64 = 1_000_000;

/// Reads the epoch.
pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Epoch> {
    let first = conn.query_row(sql::LOAD_EPOCH, [], |row| row.get(0)).optional()?;
    Ok(Epoch(first.unwrap_or(0)))
}

/// Begins an epoch after the one that is in force.
pub(crate) fn begin(tx: &mut Tx<'_>, steps: u32) -> Step<()> {
    // Not taken back by a rollback: a gap does no harm.
    tx.memory.epoch = tx.memory.epoch.after(steps);
    tx.sql(sql::BEGIN_EPOCH)?.execute([tx.memory.epoch.0])?;
    tx.leases.set_epoch(tx.memory.epoch);
    Ok(())
}

/// Begins an epoch at the opening of a store in which workers were registered when it was last closed. Those that left had all their
/// claims on disk by then; so a process that only enqueues uses up no numbers.
pub(crate) fn begin_at_open(tx: &mut Tx<'_>, workers: usize) -> Step<()> {
    if workers == 0 {
        tx.leases.set_epoch(tx.memory.epoch);
        return Ok(());
    }
    begin(tx, STEPS_AT_OPEN)
}

/// Begins an epoch in a copy that will become the store.
pub(crate) fn begin_at_restore(conn: &Connection) -> rusqlite::Result<()> {
    let epoch = load(conn)?.after(STEPS_AT_RESTORE);
    conn.execute(sql::BEGIN_EPOCH, [epoch.0])?;
    conn.execute(sql::RESTORE_WORKER_IDS, [WORKERS_AT_RESTORE])?;
    Ok(())
}
