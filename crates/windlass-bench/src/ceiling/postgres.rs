//! The bare loops on PostgreSQL. They run the statements of `bench/ceiling/postgres/` on the store's own
//! tables, with one connection that claims and one that settles.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::mpsc;
use tokio_postgres::{Client, binary_copy::BinaryCopyInWriter, types::Type};

use super::SIZES;
use crate::{
    place::Server,
    rig::{HistoryArg, median},
};

const CLAIM: &str = include_str!("../../../../bench/ceiling/postgres/claim.sql");
const SETTLE_KEPT: &str = include_str!("../../../../bench/ceiling/postgres/settle_kept.sql");
const SETTLE_OFF: &str = include_str!("../../../../bench/ceiling/postgres/settle_off.sql");
const LOAD: &str = include_str!("../../../../bench/ceiling/postgres/load.sql");
const INSERT: &str = include_str!("../../../../bench/ceiling/postgres/insert.sql");
const COPY: &str = include_str!("../../../../bench/ceiling/postgres/copy.sql");

/// The first id of the bare loop: as large as a real id.
const FIRST_ID: i64 = 400_000_000_000_000_000;
/// Claimed tasks that may wait for the settling connection.
const BETWEEN: usize = 4_000;
/// The planner settings of the store's own connections.
const PLANNING: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
                        SET plan_cache_mode = force_generic_plan";

fn in_schema(text: &str, schema: &str) -> String {
    text.replace("windlass.", &format!("{schema}."))
}

fn payload() -> Vec<u8> {
    format!("\"{}\"", "x".repeat(118)).into_bytes()
}

async fn connect(server: &Server) -> anyhow::Result<Client> {
    let client = server.connect().await?;
    client.batch_execute(PLANNING).await?;
    Ok(client)
}

/// Claims and settles at the same time, for each claim size, on a freshly loaded table.
pub(super) async fn drain(
    server: &Arc<Server>,
    schema: &str,
    tasks: usize,
    history: HistoryArg,
) -> anyhow::Result<[f64; SIZES.len()]> {
    let mut rates = [0.0; SIZES.len()];
    for (rate, size) in rates.iter_mut().zip(SIZES).rev() {
        let client = server.connect().await?;
        client.batch_execute(&in_schema("TRUNCATE windlass.task, windlass.history", schema)).await?;
        client.execute(&in_schema(LOAD, schema), &[&(tasks as i64), &payload(), &FIRST_ID]).await?;
        let start = Instant::now();
        let done = drain_at(server, schema, size, history).await?;
        anyhow::ensure!(done == tasks as u64, "the bare loop settled {done} of {tasks} tasks");
        *rate = tasks as f64 / start.elapsed().as_secs_f64();
    }
    Ok(rates)
}

async fn drain_at(server: &Server, schema: &str, size: usize, history: HistoryArg) -> anyhow::Result<u64> {
    let (claimer, settler) = (connect(server).await?, connect(server).await?);
    let claim = claimer.prepare(&in_schema(CLAIM, schema)).await?;
    let text = if history == HistoryArg::Kept { SETTLE_KEPT } else { SETTLE_OFF };
    let settle = settler.prepare(&in_schema(text, schema)).await?;
    let (taken, mut claims) = mpsc::channel::<(i64, i32)>(BETWEEN);
    let claiming = tokio::spawn(async move {
        let (mut after, n) = (0_i64, size as i64);
        loop {
            let rows = claimer.query(&claim, &[&n, &after]).await?;
            if rows.is_empty() {
                return Ok::<(), anyhow::Error>(());
            }
            for row in &rows {
                after = after.max(row.get(2));
                taken.send((row.get(0), row.get(1))).await?;
            }
        }
    });
    let (mut done, mut batch) = (0, Vec::with_capacity(1_000));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis() as i64;
    while claims.recv_many(&mut batch, 1_000).await > 0 {
        let (ids, leases): (Vec<i64>, Vec<i32>) = batch.drain(..).unzip();
        done += settler.execute(&settle, &[&ids, &leases, &now]).await?;
    }
    claiming.await??;
    Ok(done)
}

pub(super) async fn one_row_inserts(server: &Server, schema: &str, rows: usize) -> anyhow::Result<f64> {
    let client = connect(server).await?;
    let insert = client.prepare(&in_schema(INSERT, schema)).await?;
    let (payload, start) = (payload(), Instant::now());
    for place in 0..rows as i64 {
        client.execute(&insert, &[&(FIRST_ID + place), &place, &payload]).await?;
    }
    Ok(rows as f64 / start.elapsed().as_secs_f64())
}

pub(super) async fn commit_ms(
    server: &Server,
    schema: &str,
    commits: usize,
    spacing: Duration,
) -> anyhow::Result<f64> {
    let client = connect(server).await?;
    let insert = client.prepare(&in_schema(INSERT, schema)).await?;
    let (payload, mut times) = (payload(), Vec::with_capacity(commits));
    for place in 0..commits as i64 {
        tokio::time::sleep(spacing).await;
        let start = Instant::now();
        client.execute(&insert, &[&(FIRST_ID + place), &place, &payload]).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    client.execute(&in_schema("DELETE FROM windlass.task", schema), &[]).await?;
    Ok(median(times))
}

/// Inserts rows by COPY, so many per call, each call a commit; the result is rows per second.
pub(crate) async fn copy(server: &Server, schema: &str, rows: usize, per_call: usize) -> anyhow::Result<f64> {
    let client = connect(server).await?;
    let (payload, text, start) = (payload(), in_schema(COPY, schema), Instant::now());
    let types = [
        Type::INT8,
        Type::INT8,
        Type::INT4,
        Type::INT4,
        Type::INT4,
        Type::INT4,
        Type::INT4,
        Type::INT4,
        Type::INT2,
        Type::INT2,
        Type::BYTEA,
    ];
    let mut place = 0_i64;
    while place < rows as i64 {
        let mut writer = std::pin::pin!(BinaryCopyInWriter::new(client.copy_in(&text).await?, &types));
        for _ in 0..per_call {
            place += 1;
            writer
                .as_mut()
                .write(&[
                    &(FIRST_ID + place),
                    &place,
                    &1_i32,
                    &0_i32,
                    &0_i32,
                    &0_i32,
                    &10_i32,
                    &0_i32,
                    &1_i16,
                    &0_i16,
                    &payload,
                ])
                .await?;
        }
        writer.as_mut().finish().await?;
    }
    Ok(place as f64 / start.elapsed().as_secs_f64())
}
