//! apalis with apalis-postgres.

use std::{sync::OnceLock, time::Duration};

use apalis::prelude::*;
use apalis_postgres::{Config, PgTask, PostgresStorage, queries::push_tasks};
use serde::Deserialize;
use sqlx::{PgPool, postgres::PgPoolOptions};
use windlass_bench_peers::{
    Failure, Fields, Plan, Tally, answer, end_with_the_driver, input_end, now_us, url,
};

const QUEUE: &str = "noop";
/// Connections unless the settings say otherwise: the default of sqlx.
const POOL: u32 = 10;

static TALLY: OnceLock<Tally> = OnceLock::new();

/// The options that matter here; without `batch_size` the queue's own defaults hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    concurrency: Option<usize>,
    max_connections: Option<u32>,
    batch_size: Option<usize>,
    poll_interval_ms: u64,
    pubsub: bool,
}

async fn noop(fields: Fields) -> Result<(), BoxDynError> {
    TALLY.get_or_init(Tally::default).started(fields.t_us);
    Ok(())
}

async fn work(settings: Settings, pool: PgPool) -> Result<(), Failure> {
    let concurrency = settings.concurrency.unwrap_or(1);
    let config = Config::default().queue(QUEUE);
    let Some(batch_size) = settings.batch_size else {
        let backend = PostgresStorage::<Fields>::new(&pool).with_config(config);
        return Ok(WorkerBuilder::new("worker")
            .backend(backend)
            .concurrency(concurrency)
            .build(noop)
            .run()
            .await?);
    };
    let storage =
        PostgresStorage::<Fields>::new(&pool).with_config(config.batch_size(batch_size).lock_tasks(false));
    if settings.pubsub {
        let worker = WorkerBuilder::new("worker").backend(storage.with_pubsub()).concurrency(concurrency);
        return Ok(worker.parallelize(tokio::spawn).build(noop).run().await?);
    }
    let backend = storage.poll_with_interval(Duration::from_millis(settings.poll_interval_ms));
    let worker = WorkerBuilder::new("worker").backend(backend).concurrency(concurrency);
    Ok(worker.parallelize(tokio::spawn).build(noop).run().await?)
}

async fn push_all(plan: &Plan<Settings>, pool: &PgPool) -> Result<(), Failure> {
    for range in plan.batches() {
        let tasks: Result<Vec<PgTask>, Failure> =
            range.map(|i| Ok(TaskBuilder::new(serde_json::to_vec(&plan.fields(i, 0))?).build())).collect();
        push_tasks(&mut *pool.acquire().await?, QUEUE, tasks?).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let plan = Plan::<Settings>::read()?;
    let tally = TALLY.get_or_init(Tally::default);
    let connections = plan.settings.max_connections.unwrap_or(POOL);
    let pool = PgPoolOptions::new().max_connections(connections).connect(&url()?).await?;
    let storage = PostgresStorage::<Fields>::new(&pool).with_config(Config::default().queue(QUEUE));
    let enqueue = move |fields: Fields| {
        let mut storage = storage.clone();
        async move {
            storage.push(fields).await.map_err(|error| Failure::from(error.to_string()))?;
            Ok::<(), Failure>(())
        }
    };
    let (settings, worker_pool) = (plan.settings.clone(), pool.clone());
    if plan.command == "listen" {
        let measure = async {
            // Nothing tells when the worker is ready; the driver's warm-up tasks cover the rest.
            tokio::time::sleep(Duration::from_millis(500)).await;
            plan.measure_latency(tally, input_end()).await;
        };
        // The worker's future is not `Send` in every setting, so it is polled here and not spawned.
        return tokio::select! { ended = work(settings, worker_pool) => ended, () = measure => Ok(()) };
    }
    end_with_the_driver();
    match plan.command.as_str() {
        "prepare" => {
            PostgresStorage::setup(&pool).await?;
            push_all(&plan, &pool).await?;
            answer(&serde_json::json!({ "tasks": plan.tasks }))
        }
        "drain" => {
            let from_us = now_us();
            let measure = plan.measure_drain(tally, &pool, from_us);
            tokio::select! { ended = work(settings, worker_pool) => ended, ended = measure => ended }
        }
        "trickle" => plan.trickle(enqueue).await,
        "callers" => plan.measure_callers(enqueue).await,
        "bulk" => {
            let from_us = now_us();
            push_all(&plan, &pool).await?;
            let seconds = (now_us() - from_us) as f64 / 1e6;
            answer(&serde_json::json!({ "tasks": plan.tasks, "seconds": seconds }))
        }
        other => Err(format!("unknown command {other}").into()),
    }
}
