//! Figures for display: lanes, workers, the store itself.

use std::{path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, OptionalExtension};
use windlass_core::{
    Lane, Name, Result, Timestamp, WorkerCounts, WorkerId, WorkerRecord,
    store::{LaneRecord, READY_LANES_MAX, StoreInfo},
    usage::ReadyLines,
};

use crate::{
    connection::{
        disk,
        options::{Durability, Location, Options},
        reader::read_error,
        tx::{Step, Tx},
    },
    leases::hand_back::names_from_stored,
    memory::HistoryFigures,
    sql,
};

/// How long an ended registration is listed.
const ENDED_SHOWN: Duration = Duration::from_hours(24);
/// Most ended registrations that are listed.
const ENDED_MAX: i64 = 1_000;

/// The lanes that a worker with these kinds and queues (empty: all) would serve.
pub(crate) fn lanes(tx: &Tx<'_>, kinds: &[Name], queues: &[Name]) -> Vec<Arc<Lane>> {
    let entries = tx.memory.lanes_in_use().map(|entry| &entry.lane);
    entries
        .filter(|lane| kinds.contains(&lane.kind) && (queues.is_empty() || queues.contains(&lane.queue)))
        .cloned()
        .collect()
}

/// Every lane in use with its figures.
pub(crate) fn lane_records(tx: &Tx<'_>) -> Vec<LaneRecord> {
    let entries = tx.memory.lanes_in_use();
    entries
        .map(|entry| LaneRecord {
            queue: entry.lane.queue.clone(),
            kind: entry.lane.kind.clone(),
            paused: entry.paused,
            depth: entry.depth,
        })
        .collect()
}

/// The first task of each ready line.
pub(crate) fn ready_lines(tx: &mut Tx<'_>) -> Step<ReadyLines> {
    let busy = tx.memory.lanes().iter().filter(|entry| entry.depth.ready > entry.suspects);
    let lanes: Vec<Arc<Lane>> = busy.take(READY_LANES_MAX).map(|entry| entry.lane.clone()).collect();
    let mut ready = ReadyLines { last: tx.memory.ready_seq, heads: Vec::new() };
    for lane in lanes {
        let mut statement = tx.sql(sql::CLAIM_KEYS)?;
        let head = statement.query_row((lane.id.0, 1, 0), |row| row.get(1)).optional()?;
        ready.heads.extend(head.map(|place| (lane.id, lane.queue.clone(), place)));
    }
    Ok(ready)
}

/// Registrations that ended in the last day.
pub(crate) fn ended_workers(conn: &Connection, now: Timestamp) -> Result<Vec<WorkerRecord>> {
    let read = || -> rusqlite::Result<Vec<WorkerRecord>> {
        conn.prepare_cached(sql::ENDED_WORKERS)?
            .query_map((now.before(ENDED_SHOWN).as_ms(), ENDED_MAX), |row| {
                Ok(WorkerRecord {
                    id: WorkerId(row.get(0)?),
                    host: row.get(1)?,
                    pid: row.get(2)?,
                    version: row.get(3)?,
                    kinds: names_from_stored(row.get_ref(4)?.as_str()?),
                    queues: names_from_stored(row.get_ref(5)?.as_str()?),
                    slots: row.get(6)?,
                    in_flight: 0,
                    available: 0,
                    draining: false,
                    memory_usage: row.get(9)?,
                    factor: row.get(10)?,
                    reason: row.get(11)?,
                    counts: WorkerCounts::from_stored(row.get_ref(12)?.as_str()?),
                    live: false,
                    ended: true,
                    registered_at: Timestamp::from_ms(row.get(7)?),
                    renewed_at: Timestamp::from_ms(row.get(8)?),
                })
            })?
            .collect()
    };
    read().map_err(|error| read_error(&error))
}

/// Ended and live registrations together, newest first. One that has just ended may be in both lists.
pub(crate) fn with_live(ended: Vec<WorkerRecord>, live: Vec<WorkerRecord>) -> Vec<WorkerRecord> {
    let mut all = ended;
    for worker in live {
        if all.iter().all(|known| known.id != worker.id) {
            all.push(worker);
        }
    }
    all.sort_by_key(|worker| std::cmp::Reverse(worker.id));
    all
}

/// The state in which this process opened the store.
pub(crate) struct Origin {
    pub schema_version: u32,
    pub created: bool,
    pub recovered: u64,
}

/// What the store reports about itself.
pub(crate) fn info(
    location: &Location,
    options: &Options,
    history: HistoryFigures,
    origin: &Origin,
) -> StoreInfo {
    let size = |suffix: &str| -> u64 {
        let Some(path) = location.path() else { return 0 };
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(Path::new(&name)).map_or(0, |file| file.len())
    };
    let wal_bytes = size("-wal");
    let room = location.path().and_then(|path| disk::room(disk::folder(path)));
    StoreInfo {
        backend: if location.path().is_some() { "sqlite" } else { "memory" }.to_owned(),
        location: location.to_string(),
        engine_version: crate::sqlite_version().to_owned(),
        schema_version: origin.schema_version,
        bytes: size("") + wal_bytes,
        wal_bytes,
        free_disk_bytes: room.map_or(0, |room| room.free),
        history_rows: history.rows,
        history_bytes: history.bytes,
        durable: location.path().is_some() && options.durability == Durability::Full,
        created: origin.created,
        recovered: origin.recovered,
    }
}
