//! Starts and stops everything that runs during the demo: the site, the store, the worker, and the feeder
//! of its jobs.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::task::JoinHandle;
use windlass::{
    Worker,
    handler::Registry,
    worker::{DrainReport, WorkerError, WorkerHandle},
};
use windlass_core::{Name, store::SharedStore};

use super::{
    figures::Plan,
    room::{self, Room},
    stock::{QUEUE, Stock},
    visits::Visits,
    witness::Witness,
};
use crate::{
    engine,
    session::Session,
    store::{self, Access},
};

/// The demo while it runs.
pub(super) struct Stage {
    pub(super) witness: Witness,
    pub(super) visits: Arc<Visits>,
    pub(super) handle: WorkerHandle,
    worker: JoinHandle<Result<DrainReport, WorkerError>>,
    feeder: JoinHandle<anyhow::Error>,
    stock: Arc<Stock>,
    store: SharedStore,
    /// Removed with the demo; `None` if the user named a file.
    room: Option<Room>,
}

impl Stage {
    /// Starts everything.
    pub(super) async fn start(session: &Session, store: Option<&str>, plan: Plan) -> anyhow::Result<Self> {
        let witness = Witness::start(plan.jobs)?;
        let (store, room) = open(session, store).await?;
        let stock = Arc::new(Stock::new(&witness.hosts, plan.concurrency)?);
        stock.set_limits(&store).await?;
        stock.fill(&store).await?;
        let visits = Arc::new(Visits::new(stock.clone())?);
        let mut registry = Registry::new();
        registry.insert(Name::new("kind", "http")?, visits.clone())?;
        let mut config = engine::worker_config(&session.settings)?;
        config.slots = plan.slots;
        config.queues = vec![Name::new("queue", QUEUE)?];
        let worker = Worker::new(store.clone(), registry, config)?;
        let handle = worker.handle();
        let worker = tokio::spawn(worker.run(std::future::pending::<()>()));
        let feeder = tokio::spawn(stock.clone().keep_filled(store.clone()));
        Ok(Self { witness, visits, handle, worker, feeder, stock, store, room })
    }

    /// Resolves when a part of the demo ended that should still run.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            ended = &mut self.worker => match ended {
                Ok(Ok(report)) => anyhow::anyhow!("the worker stopped by itself: {report}"),
                Ok(Err(error)) => error.into(),
                Err(error) => error.into(),
            },
            ended = &mut self.feeder => ended.unwrap_or_else(Into::into),
        }
    }

    /// Hands the running tasks back and removes everything that the demo made.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.feeder.abort();
        self.handle.drain();
        self.handle.hand_back_now();
        self.worker.await.context("the worker was lost")??;
        if self.room.is_none() {
            self.stock.remove(&self.store).await?;
        }
        self.store.close().await?;
        Ok(())
    }
}

/// A store of the demo's own, unless the user named a file. On a server that the user named it is a
/// schema of its own.
async fn open(session: &Session, named: Option<&str>) -> anyhow::Result<(SharedStore, Option<Room>)> {
    match named {
        Some(text)
            if !matches!(text, "sqlite" | "postgres" | "postgresql")
                && !windlass_postgres::is_postgres(text) =>
        {
            Ok((store::open(&session.settings, Access::Usual).await?.store, None))
        }
        own => {
            let (store, room) = room::open(own).await?;
            Ok((store, Some(room)))
        }
    }
}
