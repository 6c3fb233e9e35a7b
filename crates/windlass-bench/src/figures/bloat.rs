//! Minutes of full load on a PostgreSQL server with stock settings: dead rows, sizes, and whether the
//! last stretch is as fast as the first. Then the same while a session holds a snapshot, and after it
//! ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass::worker::{WorkerConfig, WorkerHandle};
use windlass_core::{NewTask, store::SharedStore};
use windlass_postgres::{Location, Options, PostgresStore, Schema};

use crate::{
    args::Common,
    rig::{HistoryArg, LOAD_BATCH, Noop, Rig, median, round, runtime, task},
};

/// Tasks that wait at any time.
const WAITING: usize = 100_000;
/// Calls that enqueue at once.
const PRODUCERS: usize = 4;
/// Seconds before measuring: a worker starts slowly.
const WARM_UP_S: u64 = 5;
/// The longest stretch that is compared, at the start and at the end.
const STRETCH_MAX_S: u64 = 60;
/// Seconds over which the speed after the snapshot is averaged.
const BACK_OVER_S: usize = 3;
const BACK_MAX_S: u64 = 60;
/// The share of its earlier speed at which a worker counts as recovered.
const BACK_SHARE: f64 = 0.9;

/// How long the parts are.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Plan {
    /// Seconds at full load.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Seconds for which a session then holds a snapshot; 0 for none.
    #[arg(long, default_value_t = 75)]
    held_seconds: u64,
    /// Leave dead rows to the server's autovacuum, as with `vacuum = "off"`.
    #[arg(long)]
    autovacuum_alone: bool,
}

/// The figures of one second.
#[derive(Debug, Clone, Copy)]
struct Second {
    settled: u64,
    took: f64,
    dead_rows: i64,
    table_bytes: i64,
    index_bytes: i64,
}

impl Second {
    fn rate(self) -> f64 {
        self.settled as f64 / self.took
    }
}

pub(super) fn run(common: &Common, plan: Plan) -> anyhow::Result<Value> {
    runtime()?.block_on(measure(common, plan))
}

async fn measure(common: &Common, plan: Plan) -> anyhow::Result<Value> {
    let rig = Rig::new(common, HistoryArg::Off).await?;
    let (server, schema) = rig.schema()?;
    rig.load("noop", "default", WAITING).await?;
    let options = Options {
        schema: Schema::new(schema).map_err(anyhow::Error::msg)?,
        history: windlass_postgres::History::Off,
        vacuum: !plan.autovacuum_alone,
        ..Options::default()
    };
    let store: SharedStore = PostgresStore::open(&Location::parse(&server.url)?, options).await?;
    let watch = Watch { client: server.connect().await?, schema: schema.to_owned() };
    let loaded = watch.look().await?;
    let running = rig.start_on(store.clone(), "noop", Arc::new(Noop), WorkerConfig::default())?;
    let load = Load::start(&store, &running.handle)?;
    let pace = Pace { watch, worker: running.handle.clone() };
    pace.seconds(WARM_UP_S).await?;
    let all = pace.seconds(plan.seconds.max(2)).await?;
    let stretch = (plan.seconds / 3).clamp(1, STRETCH_MAX_S) as usize;
    let (first, last) = (rate(all.get(..stretch)), rate(all.get(all.len().saturating_sub(stretch)..)));
    let cleaned = pace.watch.vacuums().await?;
    let waiting = rig.store.lane_records().await?.first().map_or(0, |lane| lane.depth.ready);
    // A separate connection: the holder's open transaction would freeze the figures that the watch reads.
    let holder = server.connect().await?;
    let held = match plan.held_seconds {
        0 => None,
        seconds => Some(hold(&pace, &holder, seconds, last).await?),
    };
    load.stop().await?;
    running.stop().await?;
    store.close().await?;
    let most = |figure: fn(&Second) -> i64| all.iter().map(figure).max().unwrap_or(0);
    Ok(json!({
        "store": common.place.name(),
        "seconds": plan.seconds,
        "vacuum": if plan.autovacuum_alone { "off" } else { "on" },
        "waiting": WAITING,
        "waiting_last": waiting,
        "vacuums": cleaned,
        "per_second_first": first.round(),
        "per_second_last": last.round(),
        "ratio": round(last / first, 3),
        "dead_rows_max": most(|second| second.dead_rows),
        "dead_rows_median": median(all.iter().map(|second| second.dead_rows as f64).collect()),
        "table_bytes_loaded": loaded.table_bytes,
        "table_bytes_max": most(|second| second.table_bytes),
        "table_growth": round(most(|second| second.table_bytes) as f64 / loaded.table_bytes.max(1) as f64, 2),
        "index_bytes_loaded": loaded.index_bytes,
        "index_bytes_max": most(|second| second.index_bytes),
        "held": held,
    }))
}

/// The mean speed over a stretch.
fn rate(stretch: Option<&[Second]>) -> f64 {
    let stretch = stretch.unwrap_or_default();
    let settled: u64 = stretch.iter().map(|second| second.settled).sum();
    settled as f64 / stretch.iter().map(|second| second.took).sum::<f64>()
}

/// The speed while a session holds a snapshot, and how soon it recovers after the session ends.
async fn hold(
    pace: &Pace,
    holder: &tokio_postgres::Client,
    seconds: u64,
    before: f64,
) -> anyhow::Result<Value> {
    let schema = &pace.watch.schema;
    let take = format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM {schema}.task LIMIT 1");
    holder.batch_execute(&take).await?;
    let held = pace.seconds(seconds).await?;
    holder.batch_execute("COMMIT").await?;
    let (mut back_s, mut lately) = (f64::NAN, Vec::new());
    for second in 1..=BACK_MAX_S {
        lately.extend(pace.seconds(1).await?.iter().map(|second| second.rate()));
        let last = lately.get(lately.len().saturating_sub(BACK_OVER_S)..).unwrap_or_default();
        if last.len() == BACK_OVER_S && median(last.to_vec()) >= before * BACK_SHARE {
            back_s = second as f64;
            break;
        }
    }
    let per_second = rate(Some(&held));
    Ok(json!({
        "seconds": seconds,
        "per_second": per_second.round(),
        "ratio": round(per_second / before, 3),
        "dead_rows_max": held.iter().map(|second| second.dead_rows).max(),
        "table_bytes_max": held.iter().map(|second| second.table_bytes).max(),
        "back_s": if back_s.is_finite() { json!(back_s) } else { json!(BACK_MAX_S + 1) },
    }))
}

/// Reads the server's figures once a second.
struct Watch {
    client: tokio_postgres::Client,
    schema: String,
}

impl Watch {
    async fn look(&self) -> anyhow::Result<Second> {
        let table = format!("'{}.task'::regclass", self.schema);
        let text = format!(
            "SELECT pg_stat_get_dead_tuples({table}), pg_relation_size({table}), pg_indexes_size({table})"
        );
        let row = self.client.query_one(&text, &[]).await?;
        let (dead_rows, table_bytes, index_bytes) = (row.get(0), row.get(1), row.get(2));
        Ok(Second { settled: 0, took: 0.0, dead_rows, table_bytes, index_bytes })
    }

    /// How often the table of tasks was vacuumed, by the leader and by the server itself.
    async fn vacuums(&self) -> anyhow::Result<i64> {
        let table = format!("'{}.task'::regclass", self.schema);
        let text =
            format!("SELECT pg_stat_get_vacuum_count({table}) + pg_stat_get_autovacuum_count({table})");
        Ok(self.client.query_one(&text, &[]).await?.get(0))
    }
}

/// The figures, second by second.
struct Pace {
    watch: Watch,
    worker: WorkerHandle,
}

impl Pace {
    async fn seconds(&self, n: u64) -> anyhow::Result<Vec<Second>> {
        let mut seconds = Vec::new();
        for _ in 0..n {
            let (began, before) = (Instant::now(), self.worker.status().settled);
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (settled, took) = (self.worker.status().settled - before, began.elapsed().as_secs_f64());
            seconds.push(Second { settled, took, ..self.watch.look().await? });
        }
        Ok(seconds)
    }
}

/// The calls that keep the backlog constant.
struct Load {
    is_over: Arc<AtomicBool>,
    callers: Vec<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Load {
    fn start(store: &SharedStore, worker: &WorkerHandle) -> anyhow::Result<Self> {
        let (is_over, enqueued) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let template = task("noop", "default")?;
        let call = |_| {
            let (store, worker, template) = (store.clone(), worker.clone(), template.clone());
            tokio::spawn(add(store, worker, template, is_over.clone(), enqueued.clone()))
        };
        Ok(Self { callers: (0..PRODUCERS).map(call).collect(), is_over })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.await??;
        }
        Ok(())
    }
}

/// Enqueues as many tasks as have ended.
async fn add(
    store: SharedStore,
    worker: WorkerHandle,
    template: NewTask,
    is_over: Arc<AtomicBool>,
    enqueued: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        if enqueued.load(Ordering::Relaxed) < worker.status().settled {
            enqueued.fetch_add(LOAD_BATCH as u64, Ordering::Relaxed);
            store.enqueue(vec![template.clone(); LOAD_BATCH]).await?;
        } else {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(())
}
