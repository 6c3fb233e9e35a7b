//! Many worker processes on one PostgreSQL: their speed together, their shares, and their cost while
//! idle.

mod coordinators;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{latency, member::Member};
use crate::{
    args::Common,
    place::Server,
    rig::{HistoryArg, Rig, median, percentile, round, runtime, task},
};

/// How long an idle fleet is measured.
const IDLE: Duration = Duration::from_secs(20);
/// How long a fleet gets to become idle, and the server to write its statistics.
const CALM: Duration = Duration::from_secs(12);
/// Tasks that an idle fleet gets one by one.
const LONE_TASKS: usize = 50;
/// Pause between two of them.
const LONE_SPACING: Duration = Duration::from_millis(200);
/// Workers of an idle fleet.
const IDLE_WORKERS: usize = 8;

/// Throughput and shares for each number of workers, then many coordinators in one process.
pub(super) fn run(common: &Common, workers: &[usize], tasks: usize, slots: u32) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); workers.len()];
    for _ in 0..common.rounds.max(1) {
        for (place, n) in workers.iter().enumerate() {
            let round = runtime.block_on(drain(common, *n, tasks, slots))?;
            if let Some(rounds) = rounds.get_mut(place) {
                rounds.push(round);
            }
        }
    }
    let rows: Vec<Value> = workers
        .iter()
        .zip(&rounds)
        .map(|(n, rounds)| {
            let middle = |of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
            json!({
                "workers": n,
                "per_second": middle(|round| round.per_second).round(),
                "min_share": round(middle(|round| round.min_share), 3),
                "max_share": round(middle(|round| round.max_share), 3),
            })
        })
        .collect();
    Ok(Value::Array(rows))
}

/// Claim sizes and polls of the sweep.
const SWEEP_BATCHES: [u32; 4] = [10, 50, 200, 1_000];
const SWEEP_POLLS_MS: [u64; 3] = [50, 100, 1_000];
/// Workers of the sweep.
const SWEEP_WORKERS: usize = 3;
/// Tasks whose pickup is measured.
const SWEEP_PICKUPS: usize = 300;

/// The effect of the claim size and the poll interval, without LISTEN: throughput, shares, pickup.
pub(super) fn run_sweep(common: &Common, tasks: usize) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let mut rows = Vec::new();
    for batch in SWEEP_BATCHES {
        for poll_ms in SWEEP_POLLS_MS {
            rows.push(runtime.block_on(sweep(common, tasks, batch, poll_ms))?);
        }
    }
    Ok(Value::Array(rows))
}

async fn sweep(common: &Common, tasks: usize, batch: u32, poll_ms: u64) -> anyhow::Result<Value> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("noop", "default", tasks).await?;
    rig.store.enqueue(vec![latency::stamped()?]).await?;
    let (server, schema) = rig.schema()?;
    let (size, poll) = (batch.to_string(), poll_ms.to_string());
    let flags = ["--schema", schema, "--deaf", "--claim-batch", &size, "--poll-ms", &poll];
    let mut fleet = Vec::new();
    for _ in 0..SWEEP_WORKERS {
        fleet.push(Member::start(&server.url, &flags)?);
    }
    let start = Instant::now();
    for member in &mut fleet {
        member.say("GO")?;
    }
    let took = drained(server, schema, tasks as u64 + 1).await?.duration_since(start);
    let mut shares = Vec::new();
    for member in &mut fleet {
        let done =
            member.ask()?.get("settled").and_then(Value::as_f64).context("a member printed no figure")?;
        shares.push(done * SWEEP_WORKERS as f64 / tasks as f64);
    }
    shares.sort_by(f64::total_cmp);
    let number = SWEEP_PICKUPS.to_string();
    let mut trickle = Member::start(&server.url, &["--schema", schema, "--deaf", "--trickle", &number])?;
    trickle.say("GO")?;
    trickle.listen()?;
    drained(server, schema, (tasks + 1 + SWEEP_PICKUPS) as u64).await?;
    let mut pickups = Vec::new();
    for member in &mut fleet {
        let answer = member.ask()?;
        pickups.extend(
            answer
                .get("pickups_ms")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_f64),
        );
    }
    pickups.sort_by(f64::total_cmp);
    rig.store.close().await?;
    Ok(json!({
        "claim_batch": batch,
        "poll_ms": poll_ms,
        "per_second": (tasks as f64 / took.as_secs_f64()).round(),
        "min_share": round(shares.first().copied().unwrap_or(f64::NAN), 3),
        "max_share": round(shares.last().copied().unwrap_or(f64::NAN), 3),
        "pickup_p50_ms": round(percentile(&pickups, 0.5), 2),
        "pickup_p99_ms": round(percentile(&pickups, 0.99), 2),
    }))
}

/// Many coordinators in one process, compared with one.
pub(super) fn run_coordinators(common: &Common) -> anyhow::Result<Value> {
    runtime()?.block_on(coordinators::compare(common))
}

#[derive(Debug, Clone)]
struct Round {
    per_second: f64,
    min_share: f64,
    max_share: f64,
}

async fn drain(common: &Common, workers: usize, tasks: usize, slots: u32) -> anyhow::Result<Round> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    rig.load("noop", "default", tasks).await?;
    let (server, schema) = rig.schema()?;
    let slots = slots.to_string();
    let mut fleet = Vec::new();
    for _ in 0..workers {
        fleet.push(Member::start(&server.url, &["--schema", schema, "--slots", &slots])?);
    }
    let start = Instant::now();
    for member in &mut fleet {
        member.say("GO")?;
    }
    let settled = drained(server, schema, tasks as u64).await?;
    let took = settled.duration_since(start);
    let mut shares = Vec::new();
    let mut sum = 0;
    for member in &mut fleet {
        let done =
            member.ask()?.get("settled").and_then(Value::as_u64).context("a member printed no figure")?;
        sum += done;
        shares.push(done as f64 * workers as f64 / tasks as f64);
    }
    anyhow::ensure!(sum == tasks as u64, "the fleet settled {sum} of {tasks} tasks");
    shares.sort_by(f64::total_cmp);
    Ok(Round {
        per_second: tasks as f64 / took.as_secs_f64(),
        min_share: shares.first().copied().unwrap_or(f64::NAN),
        max_share: shares.last().copied().unwrap_or(f64::NAN),
    })
}

/// Waits until no task is left, and checks the number of done tasks in the database.
async fn drained(server: &Server, schema: &str, tasks: u64) -> anyhow::Result<Instant> {
    let client = server.connect().await?;
    let left = client.prepare(&format!("SELECT EXISTS (SELECT 1 FROM {schema}.task)")).await?;
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if !client.query_one(&left, &[]).await?.get::<_, bool>(0) {
            break;
        }
    }
    let ended = Instant::now();
    let done: i64 = client.query_one(&format!("SELECT count(*) FROM {schema}.history"), &[]).await?.get(0);
    anyhow::ensure!(done as u64 == tasks, "the database has {done} done tasks, not {tasks}");
    Ok(ended)
}

/// The statements that an idle fleet sends, with and without LISTEN, and the cost of a single task.
pub(super) fn run_idle(common: &Common) -> anyhow::Result<Value> {
    runtime()?.block_on(async {
        let listening = idle(common, &[]).await?;
        let polling = idle(common, &["--deaf"]).await?;
        Ok(json!({
            "workers": IDLE_WORKERS,
            "statements_per_second": round(listening.statements, 2),
            "statements_per_second_polling": round(polling.statements, 2),
            "claims_per_task": round(listening.claims_per_task, 2),
        }))
    })
}

struct Idle {
    statements: f64,
    claims_per_task: f64,
}

async fn idle(common: &Common, flags: &[&str]) -> anyhow::Result<Idle> {
    let rig = Rig::new(common, HistoryArg::Kept).await?;
    // One task, so that the store has a lane to serve.
    rig.load("noop", "default", 1).await?;
    let (server, schema) = rig.schema()?;
    let mut fleet = Vec::new();
    for _ in 0..IDLE_WORKERS {
        let mut member = Member::start(&server.url, &[&["--schema", schema], flags].concat())?;
        member.say("GO")?;
        fleet.push(member);
    }
    tokio::time::sleep(CALM).await;
    let client = server.connect().await?;
    let before = commits(&client).await?;
    let start = Instant::now();
    tokio::time::sleep(IDLE).await;
    let statements = (commits(&client).await? - before) / start.elapsed().as_secs_f64() / IDLE_WORKERS as f64;

    let claims = |fleet: &mut Vec<Member>| -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for member in fleet {
            sum +=
                member.ask()?.get("claims").and_then(Value::as_f64).context("a member printed no figure")?;
        }
        Ok(sum)
    };
    // In the same time the poll also claims; subtract those claims from the cost of the tasks.
    let first = claims(&mut fleet)?;
    tokio::time::sleep(LONE_SPACING * LONE_TASKS as u32).await;
    let second = claims(&mut fleet)?;
    for _ in 0..LONE_TASKS {
        rig.store.enqueue(vec![task("noop", "default")?]).await?;
        tokio::time::sleep(LONE_SPACING).await;
    }
    let third = claims(&mut fleet)?;
    let claims_per_task = ((third - second) - (second - first)).max(0.0) / LONE_TASKS as f64;
    drop(fleet);
    rig.store.close().await?;
    Ok(Idle { statements, claims_per_task })
}

/// Transactions of this database so far, without those of this query.
async fn commits(client: &tokio_postgres::Client) -> anyhow::Result<f64> {
    let row = client
        .query_one(
            "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = current_database()",
            &[],
        )
        .await?;
    Ok(row.get(0))
}
