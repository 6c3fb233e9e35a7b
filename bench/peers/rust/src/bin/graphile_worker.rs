//! `graphile_worker` of crates.io.

use std::{sync::OnceLock, time::Duration};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker, WorkerContext,
    WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use windlass_bench_peers::{
    Failure, Fields, Plan, Tally, answer, end_with_the_driver, input_end, now_us, url,
};

const SCHEMA: &str = "graphile_worker";
/// Connections of a producer unless the settings say otherwise: the default of sqlx.
const POOL: u32 = 10;

static TALLY: OnceLock<Tally> = OnceLock::new();

/// The crate's options, under their own names; what is missing keeps its default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    concurrency: Option<usize>,
    max_pg_conn: Option<u32>,
    poll_interval_ms: Option<u64>,
    complete_job_batch_delay_ms: Option<u64>,
    local_queue_size: Option<usize>,
    local_queue_count: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Fields);

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        TALLY.get_or_init(Tally::default).started(self.0.t_us);
        Ok::<(), String>(())
    }
}

fn worker(settings: &Settings) -> Result<WorkerOptions, Failure> {
    let mut options = WorkerOptions::default()
        .database_url(&url()?)
        .schema(SCHEMA)
        .define_job::<Noop>()
        .listen_os_shutdown_signals(false);
    if let Some(concurrency) = settings.concurrency {
        options = options.concurrency(concurrency);
    }
    if let Some(connections) = settings.max_pg_conn {
        options = options.max_pg_conn(connections);
    }
    if let Some(ms) = settings.poll_interval_ms {
        options = options.poll_interval(Duration::from_millis(ms));
    }
    if let Some(ms) = settings.complete_job_batch_delay_ms {
        options = options.complete_job_batch_delay(Duration::from_millis(ms));
    }
    if let Some(size) = settings.local_queue_size {
        let count = settings.local_queue_count.unwrap_or(1);
        options = options.local_queue(LocalQueueConfig::default().with_size(size).with_queue_count(count));
    }
    Ok(options)
}

/// Runs the worker; one that ends before it is told to is a failed run.
async fn work(worker: Worker) {
    if let Err(error) = worker.run().await {
        eprintln!("error: the worker ended: {error:?}");
    }
    std::process::exit(1);
}

fn jobs(plan: &Plan<Settings>, range: std::ops::Range<u64>) -> Result<Vec<RawJobSpec>, Failure> {
    range
        .map(|i| {
            let payload = serde_json::to_value(plan.fields(i, 0))?;
            Ok(RawJobSpec { identifier: "noop".to_owned(), payload, spec: JobSpec::default() })
        })
        .collect()
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let plan = Plan::<Settings>::read()?;
    let tally = TALLY.get_or_init(Tally::default);
    let connections = plan.settings.max_pg_conn.unwrap_or(POOL);
    let pool = PgPoolOptions::new().max_connections(connections).connect(&url()?).await?;
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    let enqueue = move |fields: Fields| {
        let utils = utils.clone();
        async move {
            utils.add_job(Noop(fields), JobSpec::default()).await?;
            Ok::<(), Failure>(())
        }
    };
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    if plan.command == "listen" {
        let worker = worker(&plan.settings)?.init().await?;
        tokio::spawn(work(worker));
        plan.measure_latency(tally, input_end()).await;
        return Ok(());
    }
    end_with_the_driver();
    match plan.command.as_str() {
        "prepare" => {
            utils.migrate().await?;
            for range in plan.batches() {
                utils.add_raw_jobs(&jobs(&plan, range)?).await?;
            }
            answer(&serde_json::json!({ "tasks": plan.tasks }))
        }
        "drain" => {
            let worker = worker(&plan.settings)?.init().await?;
            let from_us = now_us();
            tokio::spawn(work(worker));
            plan.measure_drain(tally, &pool, from_us).await
        }
        "trickle" => plan.trickle(enqueue).await,
        "callers" => plan.measure_callers(enqueue).await,
        "bulk" => {
            let from_us = now_us();
            for range in plan.batches() {
                utils.add_raw_jobs(&jobs(&plan, range)?).await?;
            }
            let seconds = (now_us() - from_us) as f64 / 1e6;
            answer(&serde_json::json!({ "tasks": plan.tasks, "seconds": seconds }))
        }
        other => Err(format!("unknown command {other}").into()),
    }
}
