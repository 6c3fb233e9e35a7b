//! The time of a claim must not depend on how much waits, nor on what this worker may not take.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};
use windlass_core::{Demand, LaneId, NewWorker, SettleBatch, SettleItem, Settlement, WorkerId};

use super::{
    Common,
    rig::{HistoryArg, Rig, percentile, round, runtime, task},
};

/// Tasks per claim.
const CLAIM: u32 = 50;
/// Ids of finished tasks that never were: lower than any real one.
const FIRST_ID: i64 = 1_000_000_000;
const KIND: &str = "noop";

/// One store with its backlog, and the worker that claims from it.
struct Case {
    name: &'static str,
    waiting: usize,
    rig: Rig,
    worker: WorkerId,
    lanes: Arc<[LaneId]>,
    claim_no: u64,
    times: Vec<f64>,
    /// Somebody who holds an old snapshot for as long as this lives.
    held: Option<tokio_postgres::Client>,
}

/// How large the cases are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The large backlog.
    pub(super) waiting: usize,
    /// Claims per case.
    pub(super) claims: usize,
    /// Finished tasks that are kept; PostgreSQL only.
    pub(super) finished: usize,
}

/// Tasks that were claimed and settled while an old snapshot is held: their index entries cannot be cleaned up.
const DEAD_TUPLES: usize = 100_000;

pub(super) fn run(common: &Common, sizes: Sizes) -> anyhow::Result<Value> {
    let Sizes { waiting, claims, finished } = sizes;
    runtime()?.block_on(async {
        let mut cases = vec![
            Case::new(common, "ready", 1_000, &[]).await?,
            Case::new(common, "ready", waiting / 10, &[]).await?,
            Case::new(common, "ready", waiting, &[]).await?,
            Case::new(common, "foreign_kind_in_front", 1_000, &[("foreign", "default", waiting)]).await?,
            Case::new(common, "paused_queue", 1_000, &[(KIND, "paused", waiting)]).await?,
        ];
        if common.place.server().is_some() {
            let mut horizon = Case::new(common, "held_horizon", 1_000, &[]).await?;
            horizon.hold_horizon().await?;
            let mut history = Case::new(common, "finished_rows", 1_000, &[]).await?;
            history.fill_history(finished).await?;
            cases.extend([horizon, history]);
        }
        for case in &mut cases {
            for _ in 0..20 {
                case.claim().await?;
            }
            case.times.clear();
        }
        // Interleaved, so that the machine's mood is the same for all.
        for _ in 0..claims {
            for case in &mut cases {
                case.claim().await?;
            }
        }
        let mut figures = Vec::new();
        for mut case in cases {
            case.times.sort_by(f64::total_cmp);
            figures.push(json!({
                "case": case.name,
                "waiting": case.waiting,
                "claims": case.times.len(),
                "p50_ms": round(percentile(&case.times, 0.5), 4),
                "p99_ms": round(percentile(&case.times, 0.99), 4),
            }));
            case.rig.store.close().await?;
        }
        Ok(Value::Array(figures))
    })
}

impl Case {
    /// `others` are (kind, queue, tasks) that stand in front; the queue "paused" is paused.
    async fn new(
        common: &Common,
        name: &'static str,
        ready: usize,
        others: &[(&str, &str, usize)],
    ) -> anyhow::Result<Self> {
        let rig = Rig::new(common, HistoryArg::Kept).await?;
        let mut waiting = ready;
        for (kind, queue, tasks) in others {
            rig.load(kind, queue, *tasks).await?;
            waiting += tasks;
            if *queue == "paused" {
                rig.store.set_queue_paused(&windlass_core::Name::new("queue", queue)?, true).await?;
            }
        }
        rig.load(KIND, "default", ready).await?;
        let kind = windlass_core::Name::new("kind", KIND)?;
        let worker = rig
            .store
            .register(NewWorker {
                host: "bench".into(),
                pid: std::process::id(),
                version: "bench".into(),
                kinds: vec![kind.clone()],
                queues: Vec::new(),
                slots: CLAIM,
                lease_ttl: std::time::Duration::from_hours(1),
            })
            .await?;
        let lanes = rig.store.lanes(&[kind], &[]).await?.iter().map(|lane| lane.id).collect();
        Ok(Self { name, waiting, rig, worker, lanes, claim_no: 0, times: Vec::new(), held: None })
    }

    /// Opens a transaction with a snapshot that stays, then lets many tasks come and go.
    async fn hold_horizon(&mut self) -> anyhow::Result<()> {
        let (server, schema) = self.rig.schema()?;
        let client = server.connect().await?;
        client
            .batch_execute(&format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM {schema}.task LIMIT 1"
            ))
            .await?;
        self.held = Some(client);
        while (self.claim_no as usize) < DEAD_TUPLES / CLAIM as usize {
            self.claim().await?;
        }
        Ok(())
    }

    /// Keeps many finished tasks, and nobody cleans up.
    async fn fill_history(&mut self, rows: usize) -> anyhow::Result<()> {
        let (server, schema) = self.rig.schema()?;
        let client = server.connect().await?;
        client
            .batch_execute(&format!(
                "ALTER TABLE {schema}.task SET (autovacuum_enabled = off);
                 INSERT INTO {schema}.history (id, started_at, ended_at, worker, lane, priority, lease, attempt, max_attempts,
                   state, encoding, ran, payload)
                 SELECT {FIRST_ID} + n, {schema}.now_ms(), {schema}.now_ms(), 1, 1, 0, 1, 1, 10, 5, 0, true,
                   convert_to(repeat('x', 120), 'UTF8')
                 FROM generate_series(1, {rows}) AS n"
            ))
            .await?;
        self.waiting += rows;
        Ok(())
    }

    /// One timed claim; its tasks end and as many new ones come, so that the backlog stays as it is.
    async fn claim(&mut self) -> anyhow::Result<()> {
        self.claim_no += 1;
        let demand =
            [Demand { worker: self.worker, claim_no: self.claim_no, lanes: self.lanes.clone(), n: CLAIM }];
        let start = Instant::now();
        let answer = self.rig.store.claim(&demand).await?;
        self.times.push(start.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(answer.tasks.len() == CLAIM as usize, "a claim brought {} tasks", answer.tasks.len());
        let items = answer
            .tasks
            .iter()
            .map(|task| SettleItem::new(task, Settlement::Done { output: None, note: None }))
            .collect();
        let batch = SettleBatch { worker: self.worker, settler_no: 0, batch_no: self.claim_no, items };
        self.rig.store.settle(Arc::new(batch)).await?;
        self.rig.store.enqueue(vec![task(KIND, "default")?; CLAIM as usize]).await?;
        Ok(())
    }
}
