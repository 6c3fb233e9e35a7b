//! What benches share: a store of their own, a worker on it, medians.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use windlass::{
    Context, Outcome, Payload,
    handler::{RawHandler, Registry},
    worker::{Metrics, Worker, WorkerConfig, WorkerHandle},
};
use windlass_core::{Name, NewTask, store::SharedStore};

use crate::{
    args::{AdmissionArg, Common},
    place::{Room, Server},
};

/// Bytes in the payload of a bench's task.
const PAYLOAD_BYTES: usize = 120;
/// Tasks in one call when a backlog is loaded.
pub(super) const LOAD_BATCH: usize = 1_000;

/// Whether ended tasks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HistoryArg {
    Kept,
    Off,
}

/// Whether metrics are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MetricsArg {
    On,
    Off,
}

impl From<MetricsArg> for Metrics {
    fn from(arg: MetricsArg) -> Self {
        match arg {
            MetricsArg::On => Self::On,
            MetricsArg::Off => Self::Off,
        }
    }
}

/// A store of the bench's own; it is removed at the end.
pub(super) struct Rig {
    pub(super) store: SharedStore,
    room: Room,
    admission: AdmissionArg,
}

impl Rig {
    pub(super) async fn new(common: &Common, history: HistoryArg) -> anyhow::Result<Self> {
        let room = Room::new(&common.place, common.dir.as_ref())?;
        let store = room.open(history).await?;
        Ok(Self { store, room, admission: common.admission })
    }

    /// The store's file.
    pub(super) fn path(&self) -> anyhow::Result<PathBuf> {
        match &self.room {
            Room::Folder(folder) => Ok(folder.path().join("bench.db")),
            Room::Schema { .. } => anyhow::bail!("this bench is for the embedded store"),
        }
    }

    /// The schema of the store, and its server.
    pub(super) fn schema(&self) -> anyhow::Result<(&Arc<Server>, &str)> {
        match &self.room {
            Room::Schema { server, name } => Ok((server, name)),
            Room::Folder(_) => anyhow::bail!("this bench is for PostgreSQL: add --store postgres"),
        }
    }

    /// Closes the store and returns its place, so that a bare loop can use it.
    pub(super) async fn into_room(self) -> anyhow::Result<Room> {
        self.store.close().await?;
        drop(self.store);
        Ok(self.room)
    }

    /// Loads ready tasks of a kind.
    pub(super) async fn load(&self, kind: &str, queue: &str, tasks: usize) -> anyhow::Result<()> {
        let template = task(kind, queue)?;
        let mut left = tasks;
        while left > 0 {
            let n = left.min(LOAD_BATCH);
            self.store.enqueue(vec![template.clone(); n]).await?;
            left -= n;
        }
        Ok(())
    }

    /// Starts a worker with one handler for one kind.
    pub(super) fn start(
        &self,
        kind: &str,
        handler: Arc<dyn RawHandler>,
        config: WorkerConfig,
    ) -> anyhow::Result<Running> {
        self.start_on(self.store.clone(), kind, handler, config)
    }

    /// The same with another connection to the store.
    pub(super) fn start_on(
        &self,
        store: SharedStore,
        kind: &str,
        handler: Arc<dyn RawHandler>,
        mut config: WorkerConfig,
    ) -> anyhow::Result<Running> {
        config.admission.is_on &= self.admission == AdmissionArg::On;
        let mut registry = Registry::new();
        registry.insert(Name::new("kind", kind)?, handler)?;
        let worker = Worker::new(store, registry, config)?;
        let handle = worker.handle();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let started = Instant::now();
        let task = tokio::spawn(async move {
            worker
                .run(async move {
                    let _ = stopped.await;
                })
                .await
        });
        Ok(Running { handle, stop: Some(stop), task, started })
    }
}

/// A running worker.
pub(super) struct Running {
    pub(super) handle: WorkerHandle,
    pub(super) started: Instant,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<windlass::worker::DrainReport, windlass::worker::WorkerError>>,
}

impl Running {
    /// Waits until so many settlements were acknowledged; returns the time since the worker was started.
    pub(super) async fn settled(&self, tasks: usize) -> Duration {
        while self.handle.status().settled < tasks as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.started.elapsed()
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.stop.take());
        self.task.await??;
        Ok(())
    }
}

/// A task of the usual size.
pub(super) fn task(kind: &str, queue: &str) -> anyhow::Result<NewTask> {
    let filler = "x".repeat(PAYLOAD_BYTES - 2);
    let mut task = NewTask::new(kind, Payload::json(&filler)?)?;
    task.queue = Name::new("queue", queue)?;
    Ok(task)
}

/// Does nothing, successfully.
pub(super) struct Noop;

#[async_trait::async_trait]
impl RawHandler for Noop {
    async fn call(&self, _context: Context) -> Outcome {
        Outcome::Done(None)
    }
}

/// The runtime that the program itself uses.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    percentile(&figures, 0.5)
}

/// The value that this share of the sorted figures does not exceed.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Rounds to a readable number of digits.
pub(crate) fn round(figure: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (figure * factor).round() / factor
}

/// Bytes of a store's file and log.
pub(super) fn file_bytes(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    size(path) + size(&path.with_extension("db-wal"))
}
