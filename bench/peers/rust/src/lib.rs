//! What the peers in Rust share: the plan they are given, the clock, the drain's stopwatch, the answer.

use std::{
    io::Read as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sqlx::PgPool;

/// Everything is fatal here: the driver reports the text as the reason of a failed run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Pause between two questions to the database.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// One run, as the driver describes it.
#[derive(Debug, Clone, Deserialize)]
pub struct Plan<S> {
    pub command: String,
    pub settings: S,
    #[serde(default)]
    pub tasks: u64,
    #[serde(default)]
    pub batch: u64,
    #[serde(default)]
    pub callers: u64,
    #[serde(default)]
    pub warm_up: u64,
    #[serde(default)]
    pub spacing_ms: u64,
    #[serde(default)]
    pub budget_s: f64,
    #[serde(default)]
    pub remaining: String,
    pub payload_bytes: usize,
}

/// The payload of every task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fields {
    pub i: u64,
    /// When the enqueue was called; 0 in a warm-up and in a drain.
    pub t_us: u64,
    pub pad: String,
}

/// What the handlers report to.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    handled: Arc<AtomicU64>,
    latencies_ms: Arc<Mutex<Vec<f64>>>,
}

impl Tally {
    /// Called first thing by every handler.
    pub fn started(&self, t_us: u64) {
        if t_us > 0 {
            let latency_ms = (now_us() - t_us) as f64 / 1e3;
            self.latencies_ms.lock().expect("no handler panics").push(latency_ms);
        }
        self.handled.fetch_add(1, Relaxed);
    }
}

/// The machine's clock, the same for every process.
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros() as u64
}

fn seconds_since(from_us: u64) -> f64 {
    (now_us() - from_us) as f64 / 1e6
}

/// Address of the run's own database.
pub fn url() -> Result<String, Failure> {
    Ok(std::env::var("DATABASE_URL")?)
}

/// Prints the figures and ends the process: no shutdown of the peer is measured.
pub fn answer(figures: &serde_json::Value) -> ! {
    println!("{figures}");
    std::process::exit(0)
}

impl<S: for<'a> Deserialize<'a>> Plan<S> {
    /// The plan on the command line.
    pub fn read() -> Result<Self, Failure> {
        let text = std::env::args().nth(1).ok_or("the plan is missing")?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl<S> Plan<S> {
    /// A payload of the same length as the other peers'.
    pub fn fields(&self, i: u64, t_us: u64) -> Fields {
        let bare = serde_json::json!({ "i": i, "t_us": t_us, "pad": "" }).to_string().len();
        Fields { i, t_us, pad: "x".repeat(self.payload_bytes.saturating_sub(bare)) }
    }

    /// The backlog as ranges of one batch each.
    pub fn batches(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let (tasks, batch) = (self.tasks, self.batch.max(1));
        (0..tasks).step_by(batch as usize).map(move |from| from..tasks.min(from + batch))
    }

    /// Until the database says that nothing remains, or the budget is used up.
    pub async fn measure_drain(&self, tally: &Tally, pool: &PgPool, from_us: u64) -> Result<(), Failure> {
        let is_over = || seconds_since(from_us) >= self.budget_s;
        while tally.handled.load(Relaxed) < self.tasks && !is_over() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        loop {
            let asked = seconds_since(from_us);
            let left: i64 =
                sqlx::query_scalar(sqlx::AssertSqlSafe(self.remaining.clone())).fetch_one(pool).await?;
            if left == 0 || asked >= self.budget_s {
                answer(&serde_json::json!({ "done": self.tasks - left as u64, "seconds": asked }));
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Until all tasks were started or standard input ends.
    pub async fn measure_latency(&self, tally: &Tally, input_ended: tokio::sync::oneshot::Receiver<()>) {
        println!("READY");
        let all_started = async {
            while (tally.latencies_ms.lock().expect("no handler panics").len() as u64) < self.tasks {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! { () = all_started => {}, _ = input_ended => {} }
        answer(&serde_json::json!({ "latencies_ms": *tally.latencies_ms.lock().expect("no handler panics") }))
    }

    /// One enqueue at a time, with a pause before each.
    pub async fn trickle<F: Future<Output = Result<(), Failure>>>(
        &self,
        mut enqueue: impl FnMut(Fields) -> F,
    ) -> Result<(), Failure> {
        for i in 0..self.warm_up + self.tasks {
            tokio::time::sleep(Duration::from_millis(self.spacing_ms)).await;
            let t_us = if i < self.warm_up { 0 } else { now_us() };
            enqueue(self.fields(i, t_us)).await?;
        }
        answer(&serde_json::json!({ "tasks": self.tasks }))
    }

    /// Concurrent single enqueues for a fixed time, after a few that open the connections.
    pub async fn measure_callers<F>(
        &self,
        enqueue: impl Fn(Fields) -> F + Clone + Send + 'static,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<(), Failure>> + Send,
    {
        let warm_up = self.warm_up;
        self.call_all(enqueue.clone(), move |done| done < warm_up).await?;
        let (from_us, budget_s) = (now_us(), self.budget_s);
        let tasks = self.call_all(enqueue, move |_| seconds_since(from_us) < budget_s).await?;
        answer(&serde_json::json!({
            "tasks": tasks, "warm_up": warm_up * self.callers, "seconds": seconds_since(from_us),
        }))
    }

    async fn call_all<F>(
        &self,
        enqueue: impl Fn(Fields) -> F + Clone + Send + 'static,
        goes_on: impl Fn(u64) -> bool + Copy + Send + 'static,
    ) -> Result<u64, Failure>
    where
        F: Future<Output = Result<(), Failure>> + Send,
    {
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..self.callers {
            let (enqueue, fields) = (enqueue.clone(), self.fields(0, 0));
            callers.spawn(async move {
                let mut done = 0;
                while goes_on(done) {
                    enqueue(fields.clone()).await?;
                    done += 1;
                }
                Ok::<u64, Failure>(done)
            });
        }
        let mut tasks = 0;
        while let Some(ended) = callers.join_next().await {
            tasks += ended??;
        }
        Ok(tasks)
    }
}

/// Fires when standard input ends: the driver is gone, or wants the answer now.
pub fn input_end() -> tokio::sync::oneshot::Receiver<()> {
    let (ended, input_ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    input_ended
}

/// Ends the process when the driver is gone.
pub fn end_with_the_driver() {
    let input_ended = input_end();
    tokio::spawn(async move {
        let _ = input_ended.await;
        std::process::exit(3);
    });
}
