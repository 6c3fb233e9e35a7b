//! The time of a claim must not depend on the number of waiting tasks, nor on tasks that this worker may
//! not take.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};
use windlass_core::{
    Demand, JobChange, LaneId, Name, NewTask, NewWorker, SettleBatch, SettleItem, Settlement, WorkerId,
};

use crate::{
    args::Common,
    rig::{HistoryArg, LOAD_BATCH, Rig, percentile, round, runtime, task},
};

/// Tasks per claim.
const CLAIM: u32 = 50;
/// Ids of invented finished tasks: lower than any real id.
const FIRST_ID: i64 = 1_000_000_000;
const KIND: &str = "noop";
/// A kind for the tasks that their jobs hold back. It is separate so that another worker can hold the
/// running tasks of these jobs.
const HELD_KIND: &str = "held";
const TASKS_PER_JOB: usize = 100;

/// One store with its backlog, and the worker that claims from it.
struct Case {
    name: &'static str,
    waiting: usize,
    rig: Rig,
    worker: WorkerId,
    lanes: Arc<[LaneId]>,
    claim_no: u64,
    times: Vec<f64>,
    /// A connection that holds an old snapshot until it is dropped.
    held: Option<tokio_postgres::Client>,
}

/// A worker that stays registered for the whole bench.
fn worker(kind: &str) -> anyhow::Result<NewWorker> {
    Ok(NewWorker {
        host: "bench".into(),
        pid: std::process::id(),
        version: "bench".into(),
        kinds: vec![Name::new("kind", kind)?],
        queues: Vec::new(),
        slots: CLAIM,
        lease_ttl: std::time::Duration::from_hours(1),
    })
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

/// Tasks that are claimed and settled while an old snapshot is held, so that their index entries cannot
/// be removed.
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
        let mut jobs = Case::new(common, "jobs_at_their_limit", 1_000, &[]).await?;
        jobs.hold_by_jobs(waiting).await?;
        cases.push(jobs);
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
        // Interleave the cases, so that the machine's load affects all of them alike.
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
    /// `others` are tasks (kind, queue, number) that come first in the order; the queue "paused" is
    /// paused.
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
                rig.store.set_queue_paused(&Name::new("queue", queue)?, true).await?;
            }
        }
        rig.load(KIND, "default", ready).await?;
        let kind = Name::new("kind", KIND)?;
        let worker = rig.store.register(worker(KIND)?).await?;
        let lanes = rig.store.lanes(&[kind], &[]).await?.iter().map(|lane| lane.id).collect();
        Ok(Self { name, waiting, rig, worker, lanes, claim_no: 0, times: Vec::new(), held: None })
    }

    /// Fills many jobs up to their limits with attempts that another worker never ends. The rest of their
    /// tasks waits behind these.
    async fn hold_by_jobs(&mut self, tasks: usize) -> anyhow::Result<()> {
        let store = &self.rig.store;
        let jobs = (tasks / TASKS_PER_JOB).max(1);
        let names: Vec<Name> =
            (0..jobs).map(|number| Name::new("job", format!("job-{number:05}"))).collect::<Result<_, _>>()?;
        let change = JobChange { concurrency: Some(Some(1)), ..JobChange::default() };
        for name in &names {
            store.gates().set_job(name, &change).await?;
        }
        let template = task(HELD_KIND, "default")?;
        let of = |place: usize| NewTask { job: names.get(place % jobs).cloned(), ..template.clone() };
        let holder = store.register(worker(HELD_KIND)?).await?;
        for from in (0..tasks).step_by(LOAD_BATCH) {
            store.enqueue((from..tasks.min(from + LOAD_BATCH)).map(of).collect()).await?;
        }
        let kind = [Name::new("kind", HELD_KIND)?];
        let lanes: Arc<[LaneId]> = store.lanes(&kind, &[]).await?.iter().map(|lane| lane.id).collect();
        let (mut claim_no, mut taken) = (0, 0);
        while taken < jobs {
            claim_no += 1;
            let demand = Demand::new(holder, claim_no, lanes.clone(), LOAD_BATCH as u32);
            let found = store.claim(&[demand]).await?.tasks.len();
            anyhow::ensure!(found > 0, "{taken} of {jobs} jobs have a task that runs");
            taken += found;
        }
        self.waiting += tasks;
        Ok(())
    }

    /// Opens a transaction whose snapshot stays, then claims and settles many tasks.
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

    /// Keeps many finished tasks, without a vacuum.
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

    /// One timed claim. Its tasks end and as many new ones come, so the backlog stays the same.
    async fn claim(&mut self) -> anyhow::Result<()> {
        self.claim_no += 1;
        let demand = [Demand::new(self.worker, self.claim_no, self.lanes.clone(), CLAIM)];
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
