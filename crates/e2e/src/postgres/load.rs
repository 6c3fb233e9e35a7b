//! A client that enqueues all the time and records every acknowledgement, and a watcher that records done
//! tasks.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};
use windlass_core::{Error, NewTask, Payload, State, Store, store::Filter, task::Key};
use windlass_postgres::{Location, Options, PostgresStore, Schema};

use super::{Place, until};
use crate::target::Target;

/// Tasks of one call.
const BATCH: usize = 6;
/// Pause between two calls: the load must be constant, not a flood.
const PAUSE: Duration = Duration::from_millis(25);
/// With more tasks that have not reached the target the client waits.
const BACKLOG_MAX: usize = 400;
/// Pause between two polls of the watcher.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many of the newest done tasks one poll reads: more than end between two polls.
const LOOK_MAX: u32 = 500;

/// Tasks that reach a target. Every third only sleeps for a moment and leaves no output, because another
/// statement settles such tasks.
///
/// # Errors
/// No address of a target can cause one.
pub fn tasks(target: &Target, n: usize) -> Result<Vec<NewTask>> {
    let http = Payload::json(&json!({"url": target.url(), "timeout_ms": 600_000}))?;
    let nap = Payload::json(&json!({"ms": 1}))?;
    let task = |place: usize| match place % 3 {
        2 => NewTask::new("sleep", nap.clone()),
        _ => NewTask::new("http", http.clone()),
    };
    Ok((0..n).map(task).collect::<windlass_core::Result<Vec<_>>>()?)
}

/// The client's records.
#[derive(Debug, Default)]
struct Ledger {
    acknowledged: BTreeSet<String>,
    /// Calls with an unknown outcome.
    unknown: u64,
    /// Calls that certainly had no effect.
    refused: u64,
}

/// A client and a watcher, running until stopped.
pub struct Load {
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
    client: JoinHandle<Result<()>>,
    watcher: JoinHandle<Result<()>>,
}

/// What the client does after a call with an unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// It gives up: no task was acknowledged.
    Left,
    /// Every task has a key, so it repeats the call until it is acknowledged.
    Repeated,
}

impl Load {
    /// Starts a client of the store; tasks have no keys.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub async fn start(place: &Place, target: &Arc<Target>) -> Result<Self> {
        Self::new(place, client(place, place.url()).await?, target, Doubt::Left).await
    }

    /// Starts a client at an address of the store whose tasks have keys: each call is repeated until it is
    /// acknowledged.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub async fn keyed(place: &Place, url: &str, target: &Arc<Target>) -> Result<Self> {
        Self::new(place, client(place, url).await?, target, Doubt::Repeated).await
    }

    /// The same through another interface of the store, such as its servers.
    ///
    /// # Errors
    /// If the store itself cannot be opened.
    pub async fn through(place: &Place, way: Arc<dyn Store>, target: &Arc<Target>) -> Result<Self> {
        Self::new(place, way, target, Doubt::Repeated).await
    }

    async fn new(place: &Place, store: Arc<dyn Store>, target: &Arc<Target>, doubt: Doubt) -> Result<Self> {
        let (ledger, stop) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let watched = client(place, place.url()).await?;
        Ok(Self {
            client: tokio::spawn(enqueue_until(
                Arc::clone(&stop),
                store,
                Arc::clone(target),
                Arc::clone(&ledger),
                doubt,
            )),
            watcher: tokio::spawn(watch_until(Arc::clone(&stop), watched, Arc::clone(target))),
            ledger,
            stop,
        })
    }

    /// How many tasks were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        lock(&self.ledger).acknowledged.len()
    }

    /// Waits until `n` more tasks were acknowledged.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn more(&self, n: usize) -> Result<()> {
        let wanted = self.acknowledged() + n;
        until("the client goes on", || Ok(self.acknowledged() >= wanted)).await
    }

    /// How many calls had an unknown outcome, and how many were refused.
    pub fn failures(&self) -> (u64, u64) {
        let ledger = lock(&self.ledger);
        (ledger.unknown, ledger.refused)
    }

    /// Ends it and returns the acknowledged tasks.
    ///
    /// # Errors
    /// If the client or the watcher failed.
    pub async fn stop(self) -> Result<BTreeSet<String>> {
        self.stop.store(true, Ordering::Relaxed);
        self.client.await??;
        self.watcher.await??;
        Ok(std::mem::take(&mut lock(&self.ledger).acknowledged))
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of a store at one of its addresses.
///
/// # Errors
/// If the store cannot be opened.
pub async fn client(place: &Place, url: &str) -> Result<Arc<PostgresStore>> {
    let schema = Schema::new(place.schema()).map_err(anyhow::Error::msg)?;
    let options = Options { schema, ..Options::default() };
    Ok(PostgresStore::open(&Location::parse(url)?, options).await?)
}

async fn enqueue_until(
    stop: Arc<AtomicBool>,
    store: Arc<dyn Store>,
    target: Arc<Target>,
    ledger: Arc<Mutex<Ledger>>,
    doubt: Doubt,
) -> Result<()> {
    let mut batch: Vec<NewTask> = Vec::new();
    let mut calls = 0_u64;
    while !stop.load(Ordering::Relaxed) || !batch.is_empty() {
        sleep(PAUSE).await;
        let arrived = target.book().arrivals.len();
        if batch.is_empty() {
            if lock(&ledger).acknowledged.len() > arrived * 3 / 2 + BACKLOG_MAX {
                continue;
            }
            calls += 1;
            batch = tasks(&target, BATCH)?;
            for (place, task) in batch.iter_mut().enumerate().filter(|_| doubt == Doubt::Repeated) {
                task.key = Some(Key { text: format!("{calls}-{place}"), ignore_conflict: false });
            }
        }
        match store.enqueue(batch.clone()).await {
            Ok(answers) => {
                lock(&ledger).acknowledged.extend(answers.iter().map(|answer| answer.id.to_string()));
                batch.clear();
            }
            Err(Error::Unknown(_)) => lock(&ledger).unknown += 1,
            Err(Error::Unavailable(_)) => lock(&ledger).refused += 1,
            Err(error) => return Err(error.into()),
        }
        if doubt == Doubt::Left {
            batch.clear();
        }
    }
    Ok(())
}

/// Records tasks that the store reports as done: none of them may reach the target again.
async fn watch_until(stop: Arc<AtomicBool>, store: Arc<PostgresStore>, target: Arc<Target>) -> Result<()> {
    let done = Filter { state: Some(State::Done), ..Filter::default() };
    while !stop.load(Ordering::Relaxed) {
        // While the server is away there is no page.
        if let Ok(page) = store.tasks(&done, None, LOOK_MAX).await {
            target.note_done(page.tasks.iter().map(|task| task.id.to_string()));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}
