//! How fast the store is alone, beside a bare loop over the same statements and the same schema.
//!
//! `cargo run --release -p windlass-sqlite --example raw_speed [ROUNDS]` prints tasks per second, bare loop
//! and store alternating. Two claims or settlements are under way at a time, as with a worker.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior, params, types::Null};
use windlass_core::{
    Demand, LaneId, Name, NewTask, NewWorker, Payload, Rules, SettleBatch, SettleItem, Settlement, Source,
    Store, WorkerId,
};
use windlass_sqlite::{Location, Options, SqliteStore};

const TASKS: usize = 200_000;
const BATCH: usize = 1_000;
const CLAIM: usize = 500;

#[tokio::main]
async fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    for _ in 0..rounds {
        bare_loop()?;
        store(Jobs::None).await?;
        store(Jobs::Thousand).await?;
        one_row_commits()?;
        single_callers().await?;
    }
    Ok(())
}

fn report(name: &str, enqueued: f64, drained: f64) {
    let rate = |seconds: f64| TASKS as f64 / seconds;
    println!("{name:10} enqueue {:>7.0}/s   claim and settle {:>7.0}/s", rate(enqueued), rate(drained));
}

/// The rate of one-row commits on an open connection.
fn one_row_commits() -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let conn = bare_connection(&folder.path().join("bare.db"))?;
    let payload = vec![b'x'; 120];
    let started = Instant::now();
    for n in 0..1_000 {
        let mut insert = conn.prepare_cached(include_str!("../sql/enqueue/insert_plain_task.sql"))?;
        insert.execute(params![n, 1, 0, n, 10, 1, payload])?;
    }
    println!("bare loop  one-row commits {:>7.0}/s", 1_000.0 / started.elapsed().as_secs_f64());
    Ok(())
}

/// The rate of 64 callers that each enqueue one task at a time.
async fn single_callers() -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let options = Options::default().min_free(0, 0);
    let store = SqliteStore::open(&Location::File(folder.path().join("speed.db")), options).await?;
    let task = NewTask::new("noop", Payload::bytes(vec![b'x'; 120]))?;
    let started = Instant::now();
    let callers = (0..64).map(|_| {
        let (store, task) = (Arc::clone(&store), task.clone());
        tokio::spawn(async move {
            for _ in 0..1_000 {
                store.enqueue(vec![task.clone()]).await?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    println!("store      64 single callers {:>7.0}/s", 64_000.0 / started.elapsed().as_secs_f64());
    store.close().await?;
    Ok(())
}

/// Whether the tasks have jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Jobs {
    None,
    /// A thousand, each with a limit of three.
    Thousand,
}

async fn store(jobs: Jobs) -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let rules = Rules { job_default_concurrency: Some(3), ..Rules::default() };
    let options = Options::default().rules(rules).min_free(0, 0);
    let store = SqliteStore::open(&Location::File(folder.path().join("speed.db")), options).await?;
    let started = Instant::now();
    let task = NewTask::new("noop", Payload::bytes(vec![b'x'; 120]))?;
    for _ in 0..TASKS / BATCH {
        let mut tasks = vec![task.clone(); BATCH];
        if jobs == Jobs::Thousand {
            for (number, task) in tasks.iter_mut().enumerate() {
                task.job = Some(Name::new("job", format!("job-{}", number % 1_000))?);
            }
        }
        store.enqueue(tasks).await?;
    }
    let enqueued = started.elapsed().as_secs_f64();
    let worker = store
        .register(NewWorker {
            host: "here".into(),
            pid: 1,
            version: "1".into(),
            kinds: vec![task.kind.clone()],
            queues: Vec::new(),
            slots: 1000,
            lease_ttl: std::time::Duration::from_mins(1),
        })
        .await?;
    let lanes: Arc<[LaneId]> = store.lanes(&[task.kind], &[]).await?.iter().map(|lane| lane.id).collect();
    let started = Instant::now();
    let (a, b) = tokio::try_join!(work(&store, worker, &lanes, 1), work(&store, worker, &lanes, 2))?;
    assert_eq!(a + b, TASKS);
    let name = if jobs == Jobs::None { "store" } else { "with jobs" };
    report(name, enqueued, started.elapsed().as_secs_f64());
    store.close().await?;
    Ok(())
}

/// Claims and settles until nothing is left.
async fn work(
    store: &SqliteStore,
    worker: WorkerId,
    lanes: &Arc<[LaneId]>,
    settler_no: u32,
) -> Result<usize> {
    let mut settled = 0;
    let mut batches = 0;
    for claim_no in 1.. {
        let demand = Demand::new(worker, claim_no, Arc::clone(lanes), CLAIM as u32);
        let claimed = store.claim(&[demand]).await?.tasks;
        if claimed.is_empty() {
            if store.admit(CLAIM as u32).await?.moved == 0 {
                break;
            }
            continue;
        }
        settled += claimed.len();
        let items = claimed
            .iter()
            .map(|task| SettleItem::new(task, Settlement::Done { output: None, note: None }))
            .collect();
        batches += 1;
        let batch = SettleBatch { worker, settler_no, batch_no: batches, items };
        let answer = store.settle(Arc::new(batch)).await?;
        assert!(answer.fenced.is_empty());
    }
    Ok(settled)
}

fn bare_loop() -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let mut conn = bare_connection(&folder.path().join("bare.db"))?;
    let payload = vec![b'x'; 120];
    let started = Instant::now();
    for batch in 0..TASKS / BATCH {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut insert = tx.prepare_cached(include_str!("../sql/enqueue/insert_plain_task.sql"))?;
        for n in 0..BATCH {
            let seq = (batch * BATCH + n) as i64;
            insert.execute(params![(60_000_000_000_i64 << 22) + seq, 1, 0, seq, 10, 1, payload])?;
        }
        drop(insert);
        tx.commit()?;
    }
    let enqueued = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let mut held: Vec<i64> = Vec::new();
    loop {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        settle(&tx, &held)?;
        held = claim(&tx)?;
        tx.commit()?;
        if held.is_empty() {
            break;
        }
    }
    let kept: i64 = conn.query_row("SELECT count(*) FROM history", [], |row| row.get(0))?;
    assert_eq!(kept, TASKS as i64);
    report("bare loop", enqueued, started.elapsed().as_secs_f64());
    Ok(())
}

fn bare_connection(path: &std::path::Path) -> Result<Connection> {
    let conn = Connection::open(path)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.execute_batch(
        "PRAGMA auto_vacuum = incremental; PRAGMA journal_mode = wal; PRAGMA synchronous = full;
         PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 4000; PRAGMA temp_store = memory;",
    )?;
    conn.execute_batch(include_str!("../sql/migrations/0001_first.sql"))?;
    Ok(conn)
}

fn settle(conn: &Connection, held: &[i64]) -> Result<()> {
    let mut keep = conn.prepare_cached(include_str!("../sql/settle/keep_done.sql"))?;
    let mut delete = conn.prepare_cached(include_str!("../sql/settle/delete_done.sql"))?;
    for chunk in held.chunks(64) {
        keep.raw_bind_parameter(1, 1_763_000_000_000_i64)?;
        keep.raw_bind_parameter(2, 7)?;
        delete.raw_bind_parameter(1, 7)?;
        for place in 0..64 {
            if let Some(id) = chunk.get(place) {
                keep.raw_bind_parameter(place + 3, id)?;
                delete.raw_bind_parameter(place + 2, id)?;
            } else {
                keep.raw_bind_parameter(place + 3, Null)?;
                delete.raw_bind_parameter(place + 2, Null)?;
            }
        }
        assert_eq!(keep.raw_execute()?, chunk.len());
        assert_eq!(delete.raw_execute()?, chunk.len());
    }
    Ok(())
}

fn claim(conn: &Connection) -> Result<Vec<i64>> {
    let mut read = conn.prepare_cached(include_str!("../sql/claim/claim_read.sql"))?;
    let mut rows = read.query((1, CLAIM as i64))?;
    let (mut ids, mut seqs, mut payloads) = (Vec::new(), Vec::new(), Vec::<Vec<u8>>::new());
    while let Some(row) = rows.next()? {
        ids.push(row.get(0)?);
        seqs.push(row.get::<_, i64>(2)?);
        payloads.push(row.get(13)?);
    }
    if let (Some(first), Some(last)) = (seqs.first(), seqs.last()) {
        conn.prepare_cached(include_str!("../sql/claim/claim_take.sql"))?.execute(params![
            7,
            1,
            1_763_000_000_000_i64,
            1,
            0,
            first,
            last
        ])?;
    }
    Ok(ids)
}
