//! `kill -9` of a real server under load, many times, observed from outside.
//!
//! The observer enqueues http tasks, runs their target, and polls their states. It checks two promises: a
//! task whose id it received reaches done (ENQ-DURABLE), and a task that it saw done never reaches the target
//! again (DONE-DURABLE).

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{http::Api, rng::Rng, target::Target, up::Up};

/// Callers that enqueue at the same time.
const CALLERS: usize = 4;
/// Tasks per enqueue call.
const BATCH: usize = 10;
/// With more unfinished tasks the callers wait: the load must be constant, not a flood.
const BACKLOG_MAX: usize = 1_500;
/// How long the target takes per request: long enough that all slots have an open request at a kill.
const TARGET_LATENCY: Duration = Duration::from_millis(15);
/// Slots of the server.
const SLOTS: &str = "64";
/// A kill comes so many milliseconds after the server's first answer.
const KILL_AFTER_MS: (u64, u64) = (150, 1_500);
/// Pause between two polls of the observer.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the last tasks may take to end after the last kill: generous, it only bounds a failure.
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

/// The result of all rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The seed of the random times.
    pub seed: u64,
    /// How often the server was killed.
    pub kills: u32,
    /// Tasks whose id an enqueue call returned.
    pub acknowledged: usize,
    /// Of those, how many reached done.
    pub done: usize,
    /// Tasks that were seen done before some kill.
    pub done_before_a_kill: usize,
    /// Tasks that reached the target after the observer had seen them done.
    pub ran_after_done: Vec<String>,
    /// Tasks that reached the target more than once: allowed, and a sign that kills hit running work.
    pub ran_twice: usize,
    /// Tasks that ended without success, with their state and error.
    pub ended_badly: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} kills; {} tasks acknowledged, {} reached done, {} ran after they were seen done \
             ({} had been seen done before a kill, {} ran more than once)",
            self.seed,
            self.kills,
            self.acknowledged,
            self.done,
            self.ran_after_done.len(),
            self.done_before_a_kill,
            self.ran_twice
        )
    }
}

impl Report {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.acknowledged > 0 && self.acknowledged == self.done && self.ran_after_done.is_empty()
    }
}

/// The tasks of the observer: id → whether it was seen done.
type Ledger = Arc<Mutex<BTreeMap<String, bool>>>;

fn unfinished(ledger: &Ledger) -> Vec<String> {
    let tasks = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    tasks.iter().filter(|(_, done)| !**done).map(|(id, _)| id.clone()).collect()
}

/// Kills a server on a store in `folder` `kills` times, lets the last one finish, and reports.
///
/// # Errors
/// If a server does not start, or tasks do not end in time.
pub async fn kill_rounds(folder: &Path, kills: u32, seed: u64) -> Result<Report> {
    let target = Arc::new(Target::start(TARGET_LATENCY).await?);
    let ledger = Ledger::default();
    let mut rng = Rng::new(seed);
    let mut report = Report { seed, kills, ..Report::default() };
    let store = folder.join("windlass.db");
    let start = || Up::on(&store, ["--slots", SLOTS, "--allow-target", "127.0.0.0/8"]);

    let mut seen_before_a_kill = HashSet::new();
    for _ in 0..kills {
        let mut up = start()?;
        let load = Load::start(&up.api(), &target, &ledger);
        sleep(Duration::from_millis(rng.between(KILL_AFTER_MS.0, KILL_AFTER_MS.1))).await;
        seen_before_a_kill.extend(target.book().seen_done.iter().cloned());
        up.process.kill()?;
        load.stop().await;
    }
    report.done_before_a_kill = seen_before_a_kill.len();

    let up = start()?;
    report.ended_badly = wait_until_ended(&up.api(), &target, &ledger).await?;
    report.acknowledged = ledger.lock().unwrap_or_else(PoisonError::into_inner).len();
    report.done = report.acknowledged - unfinished(&ledger).len();
    let book = target.book();
    report.ran_after_done.clone_from(&book.came_after_done);
    report.ran_twice = book.arrivals.values().filter(|times| **times > 1).count();
    drop(book);
    Ok(report)
}

/// Callers and a watcher, running until stopped.
struct Load {
    stop: Arc<AtomicBool>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(api: &Api, target: &Arc<Target>, ledger: &Ledger) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = Vec::new();
        for _ in 0..CALLERS {
            workers.push(tokio::spawn(enqueue_until(
                stop.clone(),
                api.clone(),
                target.url(),
                ledger.clone(),
            )));
        }
        workers.push(tokio::spawn(watch_until(stop.clone(), api.clone(), target.clone(), ledger.clone())));
        Self { stop, workers }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            // A panic there would show as a missing task.
            let _ = worker.await;
        }
    }
}

async fn enqueue_until(stop: Arc<AtomicBool>, api: Api, url: String, ledger: Ledger) {
    let task = json!({"kind": "http", "payload": {"url": url}});
    let batch = json!({"tasks": vec![task; BATCH]});
    while !stop.load(Ordering::Relaxed) {
        if unfinished(&ledger).len() > BACKLOG_MAX {
            sleep(LOOK_EVERY).await;
            continue;
        }
        match api.post("/v1/tasks", &batch).await {
            Ok(answer) if answer.status < 300 => {
                let mut tasks = ledger.lock().unwrap_or_else(PoisonError::into_inner);
                tasks.extend(answer.ids().into_iter().map(|id| (id, false)));
            }
            // Refused or cut off: no id, no promise.
            Ok(_) | Err(_) => sleep(LOOK_EVERY).await,
        }
    }
}

/// Records tasks that the server reports as done. A recorded task must never reach the target again.
async fn watch_until(stop: Arc<AtomicBool>, api: Api, target: Arc<Target>, ledger: Ledger) {
    while !stop.load(Ordering::Relaxed) {
        if let Ok(answer) = api.get("/v1/tasks?state=done&limit=500").await
            && answer.status == 200
        {
            note_done(&target, &ledger, answer.ids());
        }
        sleep(LOOK_EVERY).await;
    }
}

fn note_done(target: &Target, ledger: &Ledger, ids: Vec<String>) {
    let mut tasks = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    for id in &ids {
        // A task whose enqueue answer was lost is not in the ledger, and stays out of it.
        if let Some(done) = tasks.get_mut(id) {
            *done = true;
        }
    }
    drop(tasks);
    target.note_done(ids);
}

/// Polls every unfinished task until each has ended; returns those that did not succeed.
async fn wait_until_ended(api: &Api, target: &Target, ledger: &Ledger) -> Result<Vec<String>> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    let mut ended_badly = Vec::new();
    loop {
        let mut open: Vec<String> = unfinished(ledger);
        open.retain(|id| !ended_badly.iter().any(|line: &String| line.starts_with(id.as_str())));
        if open.is_empty() {
            return Ok(ended_badly);
        }
        if Instant::now() > deadline {
            bail!(
                "{} tasks have not ended, the first is {}",
                open.len(),
                open.first().map_or("", String::as_str)
            );
        }
        for id in open {
            let answer = api.get(&format!("/v1/tasks/{id}")).await?;
            match answer.body.get("state").and_then(|state| state.as_str()) {
                Some("done") => note_done(target, ledger, vec![id]),
                Some("dead" | "cancelled") => ended_badly.push(format!("{id}: {}", answer.body)),
                None => ended_badly.push(format!("{id}: status {}, {}", answer.status, answer.body)),
                Some(_) => {}
            }
        }
        sleep(LOOK_EVERY).await;
    }
}
