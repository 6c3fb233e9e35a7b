//! The HTTP/JSON API: the same operations for anybody who can speak HTTP.
//!
//! ```text
//! listener ─► connections (limits, time-outs) ─► guard (Host, Origin) ─► routes ─► body ─► operations
//! ```
//!
//! Everything that comes from outside has a bound before it costs memory: connections, headers, bodies,
//! batches, nesting, long polls, and the time that each may take.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use crate::operations::{Operations, Vitals};

mod answer;
mod body;
mod connections;
mod guard;
mod page;
mod query;
mod routes;
mod schedules;
mod stall;

use self::guard::Hosts;

/// What a server answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Routes {
    /// Everything.
    #[default]
    Whole,
    /// Only what a monitor asks for: `/metrics`, `/healthz`, `/readyz`.
    Monitor,
}

/// Bounds of a server. The defaults fit one machine's control plane.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it answers.
    pub routes: Routes,
    /// Names that this server answers to beside loopback names and its own address.
    pub allowed_hosts: Vec<String>,
    /// Connections open at once; a further one is answered with 503 and closed.
    pub connections_max: usize,
    /// Long polls open at once; fewer than connections, so that waiting never shuts out work.
    pub long_polls_max: usize,
    /// Bytes of bodies in memory at once, over all connections.
    pub bodies_max_bytes: usize,
    /// How long a client may take to send a request's head, and stay idle between two requests.
    pub head_read_max: Duration,
    /// How long a client may take to send a body.
    pub body_read_max: Duration,
    /// How long a client may take none of an answer.
    pub write_stall_max: Duration,
    /// How long requests that are under way at shutdown may take.
    pub shutdown_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            routes: Routes::Whole,
            allowed_hosts: Vec::new(),
            connections_max: 1_000,
            long_polls_max: 900,
            bodies_max_bytes: 256 << 20,
            head_read_max: Duration::from_secs(30),
            body_read_max: Duration::from_secs(30),
            write_stall_max: Duration::from_secs(30),
            shutdown_max: Duration::from_secs(5),
        }
    }
}

/// What every request can reach.
struct Server {
    operations: Operations,
    options: Options,
    /// A permit per long poll.
    polls: Semaphore,
    /// A permit per KiB of body in memory.
    bodies: Arc<Semaphore>,
    /// Turns true when the server stops.
    closing: watch::Receiver<bool>,
}

impl Server {
    fn new(operations: Operations, options: Options, closing: watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self {
            polls: Semaphore::new(options.long_polls_max),
            bodies: Arc::new(Semaphore::new(options.bodies_max_bytes.div_ceil(body::PERMIT_BYTES))),
            operations,
            options,
            closing,
        })
    }

    /// Resolves when the server stops.
    async fn closed(&self) {
        closed(&self.closing).await;
    }
}

async fn closed(closing: &watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = closing.clone().wait_for(|closing| *closing).await;
}

/// Serves the API until `shutdown` resolves; then accepts nothing more, ends long polls at once and lets
/// other requests finish within `shutdown_max`.
///
/// # Errors
/// If the listener has no address.
pub async fn serve(
    listener: TcpListener,
    operations: Operations,
    options: Options,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    if options.routes == Routes::Monitor {
        return serve_monitor(listener, operations.vitals(), options, shutdown).await;
    }
    let (close, closing) = watch::channel(false);
    let hosts = Arc::new(Hosts::new(listener.local_addr()?, &options.allowed_hosts));
    let router = routes::router(Server::new(operations, options.clone(), closing), hosts);
    connections::serve(listener, Arc::new(options), router, close, shutdown).await;
    Ok(())
}

/// Serves only what a monitor asks for, `/metrics`, `/healthz` and `/readyz`, under the same bounds.
///
/// # Errors
/// If the listener has no address.
pub async fn serve_monitor(
    listener: TcpListener,
    vitals: Vitals,
    options: Options,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (close, _) = watch::channel(false);
    let hosts = Arc::new(Hosts::new(listener.local_addr()?, &options.allowed_hosts));
    let router = routes::monitor_router(vitals, hosts);
    connections::serve(listener, Arc::new(options), router, close, shutdown).await;
    Ok(())
}
