//! The bare loops on SQLite: the statements of `bench/ceiling/sqlite/` on the store's own table.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior, params, params_from_iter, types::Value};

use super::SIZES;
use crate::rig::{HistoryArg, median};

const PRAGMAS: &str = include_str!("../../../../bench/ceiling/sqlite/pragmas.sql");
const INSERT: &str = include_str!("../../../../bench/ceiling/sqlite/insert.sql");
const CLAIM_READ: &str = include_str!("../../../../bench/ceiling/sqlite/claim_read.sql");
const CLAIM_TAKE: &str = include_str!("../../../../bench/ceiling/sqlite/claim_take.sql");
const KEEP_DONE: &str = include_str!("../../../../bench/ceiling/sqlite/keep_done.sql");
const DELETE_DONE: &str = include_str!("../../../../bench/ceiling/sqlite/delete_done.sql");

/// Ids in one settling statement.
const IDS: usize = 64;
/// The time that the bare loop writes into rows.
const NOW_MS: i64 = 1_800_000_000_000;
/// Rows per transaction when the loop loads its own tasks.
const LOAD: usize = 1_000;

/// Opens a file that the store has made, with the pragmas of its writer.
fn open(path: &Path) -> anyhow::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(PRAGMAS)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute("INSERT OR IGNORE INTO lane (id, queue, kind) VALUES (1, 'default', 'noop')", [])?;
    Ok(connection)
}

/// A payload of the usual size, as JSON text.
fn payload() -> Vec<u8> {
    format!("\"{}\"", "x".repeat(118)).into_bytes()
}

/// Claims and settles in one loop, for each claim size, on a freshly loaded table.
pub(super) fn drain(path: &Path, tasks: usize, history: HistoryArg) -> anyhow::Result<[f64; SIZES.len()]> {
    let mut connection = open(path)?;
    let mut rates = [0.0; SIZES.len()];
    let mut first = 0;
    for (rate, size) in rates.iter_mut().zip(SIZES).rev() {
        load(&mut connection, first, tasks)?;
        first += tasks;
        let start = Instant::now();
        let done = drain_at(&mut connection, size, history)?;
        anyhow::ensure!(done == tasks, "the bare loop settled {done} of {tasks} tasks");
        *rate = tasks as f64 / start.elapsed().as_secs_f64();
        connection.execute("DELETE FROM history", [])?;
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(rates)
}

fn load(connection: &mut Connection, first: usize, tasks: usize) -> anyhow::Result<()> {
    let (payload, base) = (payload(), base_id());
    let places: Vec<i64> = (first..first + tasks).map(|place| place as i64 + 1).collect();
    for places in places.chunks(LOAD) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for place in places {
                insert.execute(params![base + place, place, payload])?;
            }
        }
        transaction.commit()?;
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// Ids and times must be as large as real ones: small numbers take less space, and less time.
fn base_id() -> i64 {
    windlass_core::TaskId::first_at(windlass_core::Timestamp::from_ms(NOW_MS)).raw()
}

fn drain_at(connection: &mut Connection, size: usize, history: HistoryArg) -> anyhow::Result<usize> {
    let (mut held, mut done, mut claim_no) = (Vec::<i64>::new(), 0, 0_i64);
    loop {
        claim_no += 1;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        done += settle(&transaction, &held, history)?;
        held = claim(&transaction, size, claim_no)?;
        transaction.commit()?;
        if held.is_empty() {
            return Ok(done);
        }
    }
}

fn settle(connection: &Connection, held: &[i64], history: HistoryArg) -> anyhow::Result<usize> {
    let mut done = 0;
    for ids in held.chunks(IDS) {
        let ids = || (0..IDS).map(|i| ids.get(i).map_or(Value::Null, |id| Value::Integer(*id)));
        if history == HistoryArg::Kept {
            let mut keep = connection.prepare_cached(KEEP_DONE)?;
            keep.execute(params_from_iter(std::iter::once(Value::Integer(NOW_MS)).chain(ids())))?;
        }
        done += connection.prepare_cached(DELETE_DONE)?.execute(params_from_iter(ids()))?;
    }
    Ok(done)
}

fn claim(connection: &Connection, size: usize, claim_no: i64) -> anyhow::Result<Vec<i64>> {
    let (mut ids, mut seqs) = (Vec::with_capacity(size), Vec::with_capacity(size));
    {
        let mut read = connection.prepare_cached(CLAIM_READ)?;
        let mut rows = read.query(params![size as i64])?;
        while let Some(row) = rows.next()? {
            ids.push(row.get::<_, i64>(0)?);
            seqs.push(row.get::<_, i64>(2)?);
            // A worker needs the payload, so the bare loop fetches it too.
            std::hint::black_box(row.get::<_, Vec<u8>>(12)?);
        }
    }
    if let (Some(first), Some(last)) = (seqs.first(), seqs.last()) {
        connection.prepare_cached(CLAIM_TAKE)?.execute(params![claim_no, NOW_MS, first, last])?;
    }
    Ok(ids)
}

/// One-row commits per second, one after another.
pub(super) fn one_row_inserts(path: &Path, commits: usize) -> anyhow::Result<f64> {
    let connection = open(path)?;
    let payload = payload();
    let start = Instant::now();
    for place in 1..=commits as i64 {
        connection.prepare_cached(INSERT)?.execute(params![base_id() + place, place, payload])?;
    }
    Ok(commits as f64 / start.elapsed().as_secs_f64())
}

/// The median time of a one-row commit, in milliseconds, with a pause before each.
pub(super) fn commit_ms(path: &Path, commits: usize, spacing: Duration) -> anyhow::Result<f64> {
    let connection = open(path)?;
    let payload = payload();
    let mut times = Vec::with_capacity(commits);
    for place in 1..=commits as i64 {
        std::thread::sleep(spacing);
        let start = Instant::now();
        connection.prepare_cached(INSERT)?.execute(params![base_id() + place, place, payload])?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(times))
}
