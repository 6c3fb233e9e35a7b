//! Your own metrics and error reports: a layer around every run counts outcomes, times them, and reports
//! failures with the ids that find the task.
//!
//! `cargo run --example watched_worker`

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use windlass::{Client, Context, Layer, Next, Outcome, RetryPolicy, Task, Worker, testing};

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Resize {
    image: String,
}

async fn resize(Resize { image }: Resize, ctx: Context) -> Result<(), String> {
    match (image.as_str(), ctx.attempt()) {
        ("broken.png", _) => Err("not an image".to_owned()),
        ("flaky.png", 1) => Err("the disk was busy".to_owned()),
        _ => Ok(()),
    }
}

/// Stands in for your metrics and your error tracker.
#[derive(Default)]
pub struct Watch {
    /// How often each outcome occurred, and the total time.
    pub outcomes: Mutex<BTreeMap<&'static str, (u32, Duration)>>,
    /// The reports.
    pub reports: Mutex<Vec<String>>,
}

/// The layer is a type of its own here; a closure works too.
struct Watched(Arc<Watch>);

impl Layer for Watched {
    fn call(&self, ctx: Context, next: Next) -> windlass::handler::LayerFuture {
        let watch = self.0.clone();
        Box::pin(async move {
            let started = Instant::now();
            let outcome = next.run().await;
            watch.note(&ctx, &outcome, started.elapsed());
            outcome
        })
    }
}

impl Watch {
    fn note(&self, ctx: &Context, outcome: &Outcome, took: Duration) {
        let name = match outcome {
            Outcome::Done(_) => "done",
            Outcome::Retry { .. } | Outcome::Dead(_) => "failed",
            _ => "other",
        };
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, total) = outcomes.entry(name).or_default();
        *count += 1;
        *total += took;
        drop(outcomes);
        if let Outcome::Retry { error, .. } | Outcome::Dead(error) = outcome {
            let kind = &ctx.task().lane.kind;
            let report = format!("{kind} attempt {} of {}: {error}", ctx.attempt(), ctx.max_attempts());
            println!("reported: {report}");
            self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        }
    }
}

/// Runs three tasks with the layer.
pub async fn run() -> anyhow::Result<Arc<Watch>> {
    let store = testing::store().await?;
    let client = Client::new(store.clone());
    let soon =
        RetryPolicy { base: Duration::from_millis(1), max: Duration::from_millis(1), jitter_percent: 0 };
    let mut tasks = Vec::new();
    for image in ["fine.png", "flaky.png", "broken.png"] {
        tasks.push(client.enqueue(Resize { image: image.to_owned() }).max_attempts(2).retry(soon).await?);
    }
    let watch = Arc::new(Watch::default());
    let worker = Worker::builder(store).layer(Watched(watch.clone())).handle(resize).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    for task in tasks {
        client.wait(task.id, Duration::from_mins(1)).await?;
    }
    handle.drain();
    running.await??;
    Ok(watch)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let watch = run().await?;
    for (name, (count, took)) in &*watch.outcomes.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{name}: {count} in {took:?}");
    }
    Ok(())
}
