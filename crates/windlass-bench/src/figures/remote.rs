//! Benches over gRPC: a server on the bench's store, and a worker and a client that know only its
//! address.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};
use windlass::worker::WorkerConfig;
use windlass_core::store::SharedStore;
use windlass_remote::{Options, RemoteStore, Servers};
use windlass_server::{Operations, http};

use super::{
    drain,
    latency::{self, ReportStamped, stamped},
};
use crate::{
    args::Common,
    rig::{HistoryArg, Noop, Rig, median, round, runtime},
};

/// A server on a separate thread with its own runtime, as in a separate process.
pub(super) struct Server {
    port: u16,
    servers: Servers,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<anyhow::Result<()>>,
}

impl Server {
    pub(super) async fn start(store: SharedStore, options: http::Options) -> anyhow::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime()?.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let _ = tell.send(listener.local_addr()?);
                let stopped = async {
                    let _ = stopped.await;
                };
                http::serve(listener, Operations::new(store), options, stopped).await?;
                Ok(())
            })
        });
        let address = told.await?;
        Ok(Self { port: address.port(), servers: format!("http://{address}").parse()?, stop, thread })
    }

    /// Where it listens on loopback.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) async fn worker(&self) -> anyhow::Result<Arc<RemoteStore>> {
        Ok(RemoteStore::for_worker(&self.servers, Options::default()).await?)
    }

    async fn client(&self) -> anyhow::Result<Arc<RemoteStore>> {
        Ok(RemoteStore::connect(&self.servers, Options::default()).await?)
    }

    pub(super) async fn end(self) -> anyhow::Result<()> {
        drop(self.stop);
        let ended = tokio::task::spawn_blocking(move || self.thread.join()).await?;
        ended.map_err(|_| anyhow::anyhow!("the server's thread failed"))?
    }
}

/// No-op tasks over gRPC, compared in turns with the same store used directly.
pub(super) fn drain(common: &Common, tasks: usize, shape: drain::Shape) -> anyhow::Result<Value> {
    let runtime = runtime()?;
    let (mut remote, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..common.rounds.max(1) {
        remote.push(runtime.block_on(drain_once(common, tasks, shape))?);
        direct.push(runtime.block_on(drain::drain(common, tasks, shape, Arc::new(Noop)))?);
    }
    let (remote, direct) = (median(remote), median(direct));
    Ok(json!({
        "store": common.place.name(),
        "tasks": tasks,
        "per_second": remote.round(),
        "direct_per_second": direct.round(),
        "ratio": round(remote / direct, 3),
        "rounds": common.rounds,
    }))
}

async fn drain_once(common: &Common, tasks: usize, shape: drain::Shape) -> anyhow::Result<f64> {
    let rig = Rig::new(common, shape.history).await?;
    rig.load("noop", "default", tasks).await?;
    let server = Server::start(rig.store.clone(), http::Options::default()).await?;
    let store = server.worker().await?;
    let usual = WorkerConfig::default();
    let slots = shape.slots.unwrap_or(usual.slots);
    let config = WorkerConfig { slots, metrics: shape.metrics, ..usual };
    let running = rig.start_on(store, "noop", Arc::new(Noop), config)?;
    let took = running.settled(tasks).await;
    running.stop().await?;
    server.end().await?;
    rig.store.close().await?;
    Ok(tasks as f64 / took.as_secs_f64())
}

/// Time from a client's enqueue call to the start of a worker's handler, both over gRPC.
pub(super) fn latency(common: &Common, tasks: usize, spacing: Duration) -> anyhow::Result<Value> {
    latency::compared(common, tasks, spacing, async |common: &Common| {
        let rig = Rig::new(common, HistoryArg::Kept).await?;
        let server = Server::start(rig.store.clone(), http::Options::default()).await?;
        let (took, mut times) = tokio::sync::mpsc::unbounded_channel();
        let store = server.worker().await?;
        let running =
            rig.start_on(store, "report", Arc::new(ReportStamped { took }), WorkerConfig::default())?;
        let client: SharedStore = server.client().await?;
        // Call from a spawned task, as a service does.
        let all = tokio::spawn(async move {
            let mut all = Vec::with_capacity(tasks);
            for i in 0..tasks + latency::WARM_UP {
                tokio::time::sleep(spacing).await;
                client.enqueue(vec![stamped()?]).await?;
                let Some(took) = times.recv().await else { anyhow::bail!("the worker ended") };
                if i >= latency::WARM_UP {
                    all.push(took);
                }
            }
            Ok(all)
        })
        .await??;
        running.stop().await?;
        server.end().await?;
        rig.store.close().await?;
        Ok(all)
    })
}
