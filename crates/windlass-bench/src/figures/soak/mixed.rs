//! A mixed load for minutes or hours while a worker is killed every minute. No figure may grow, and no
//! task may be left.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    api::Client,
    flaky,
    fleet::Fleet,
    load,
    series::{Sample, slopes},
};
use crate::{args::Common, rig::runtime};

/// How often a batch is enqueued.
const BEAT: Duration = Duration::from_millis(100);
/// How often a worker is killed.
const KILL_EVERY: Duration = Duration::from_mins(1);
/// Fewest measurements of a run, however short it is.
const LOOKS_MIN: u32 = 12;
/// How long the rest may take after the last enqueue: scheduled tasks, retries, and the tasks of a killed
/// worker.
const REST_MAX: Duration = Duration::from_mins(3);

/// How long the run takes, and its rate.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Plan {
    pub(in super::super) minutes: f64,
    pub(in super::super) per_second: usize,
}

pub(in super::super) fn run(common: &Common, plan: Plan) -> anyhow::Result<Value> {
    anyhow::ensure!(
        plan.minutes > 0.0 && plan.per_second >= 10,
        "--minutes must be above 0, --rate at least 10"
    );
    runtime()?.block_on(async {
        let site = flaky::start().await?;
        let mut fleet = Fleet::start(common).await?;
        limit_jobs(&fleet.client()?).await?;
        let mut soak = Soak { site, number: 0, enqueued: 0, unknown: 0, cancelled: 0, plan };
        let samples = soak.go(&mut fleet).await?;
        let client = fleet.client()?;
        let unfinished = rest(&client).await?;
        let audit: Value = client.get("/v1/audit").await?;
        let findings = audit.get("findings").and_then(Value::as_array).map_or(0, Vec::len);
        Ok(json!({
            "store": common.place.name(),
            "minutes": plan.minutes,
            "per_second": plan.per_second,
            "enqueued": soak.enqueued,
            "unknown": soak.unknown,
            "cancelled": soak.cancelled,
            "kills": fleet.kills,
            "samples": samples.iter().map(|sample| sample.to_json()).collect::<Vec<_>>(),
            "slopes": slopes(&samples),
            "unfinished": unfinished,
            "audit": findings,
        }))
    })
}

/// A long run in progress.
struct Soak {
    site: String,
    number: usize,
    enqueued: usize,
    /// Tasks of calls whose answer was lost when the process was killed.
    unknown: usize,
    cancelled: usize,
    plan: Plan,
}

impl Soak {
    async fn go(&mut self, fleet: &mut Fleet) -> anyhow::Result<Vec<Sample>> {
        let (start, whole) = (Instant::now(), Duration::from_secs_f64(self.plan.minutes * 60.0));
        let look_every = KILL_EVERY.min(whole / LOOKS_MIN);
        let (mut looks, mut samples, mut kills) = (1_u32, Vec::new(), 1_u32);
        while start.elapsed() < whole {
            tokio::time::sleep(BEAT).await;
            let wanted = (start.elapsed().as_secs_f64() * self.plan.per_second as f64) as usize;
            self.enqueue(&fleet.client()?, wanted.saturating_sub(self.number)).await;
            fleet.glance();
            if start.elapsed() >= look_every * looks {
                looks += 1;
                let sample = fleet.look(start.elapsed().as_secs_f64() / 60.0).await?;
                samples.push(sample);
            }
            if start.elapsed() >= KILL_EVERY * kills {
                kills += 1;
                fleet.kill_one().await?;
            }
        }
        Ok(samples)
    }

    async fn enqueue(&mut self, client: &Client, n: usize) {
        let numbers: Vec<usize> = (self.number..self.number + n).collect();
        self.number += n;
        for chunk in numbers.chunks(1_000) {
            let tasks: Vec<Value> = chunk.iter().map(|number| load::task(*number, &self.site)).collect();
            match client.post("/v1/tasks", &json!({"tasks": tasks})).await {
                Ok(answer) => {
                    self.enqueued += chunk.len();
                    self.cancel(client, chunk, &answer).await;
                }
                Err(_) => self.unknown += chunk.len(),
            }
        }
    }

    /// Cancels some of the scheduled tasks.
    async fn cancel(&mut self, client: &Client, numbers: &[usize], answer: &Value) {
        let tasks = answer.get("tasks").and_then(Value::as_array).into_iter().flatten();
        let ids = numbers
            .iter()
            .zip(tasks)
            .filter(|(number, _)| load::is_cancelled(**number))
            .filter_map(|(_, task)| task.get("id").and_then(Value::as_str));
        for id in ids {
            let cancelled = client.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).await;
            self.cancelled += usize::from(cancelled.is_ok());
        }
    }
}

async fn limit_jobs(client: &Client) -> anyhow::Result<()> {
    for number in 0..load::JOBS {
        let change = json!({"concurrency": load::JOB_CONCURRENCY});
        client.put(&format!("/v1/jobs/job-{number}"), &change).await?;
    }
    Ok(())
}

/// Waits until no work is left; returns the number of unfinished tasks, dead ones not counted.
async fn rest(client: &Client) -> anyhow::Result<u64> {
    let start = Instant::now();
    loop {
        let queues: Value = client.get("/v1/queues").await?;
        let left = unfinished(&queues).context("no depth in the answer of /v1/queues")?;
        if left == 0 || start.elapsed() > REST_MAX {
            return Ok(left);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn unfinished(queues: &Value) -> Option<u64> {
    let states = ["scheduled", "waiting", "held", "ready", "running"];
    let kinds = queues.get("queues")?.as_array()?.iter().filter_map(|queue| queue.get("kinds")?.as_array());
    let depths = kinds.flatten().map(|kind| kind.get("depth"));
    depths.map(|depth| states.iter().map(|state| depth?.get(*state)?.as_u64()).sum::<Option<u64>>()).sum()
}
