//! The HTTP/JSON API: the same operations for any HTTP client. gRPC is on the same port.
//!
//! ```text
//! listener ─► connections (limits, time-outs) ─► guard (Host, Origin) ─► access ─► routes ─► body
//! ─► operations
//! ```
//!
//! Everything that a client sends has a bound before it costs memory: connections, headers, bodies, batches,
//! nesting, long polls, and the time that each may take.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, SemaphorePermit, watch},
};
use windlass_core::store::Retention;

use crate::{
    access::{self as rights, Access},
    api::{ErrorCode, ErrorDetail, Tokens},
    dashboard::Recent,
    operations::{Operations, Vitals},
    public_url::PublicUrl,
};

mod access;
mod answer;
mod body;
mod connections;
mod face;
mod first_bytes;
mod guard;
mod heads;
mod openapi;
mod query;
mod routes;
mod stall;
mod tls;
mod watched;

pub use crate::grpc::Affinity;
pub(crate) use body::{PERMIT_BYTES, enqueue_max_bytes};
pub(crate) use face::Face;
pub(crate) use query::{ListQuery, NamesQuery, PageQuery, Param, WorkflowsQuery, query};
pub use tls::{Files as TlsFiles, Reloaded, Tls};

/// Which routes a server answers at one address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Routes {
    /// Everything: the API, and the pages of the dashboard.
    #[default]
    Whole,
    /// The API. The dashboard is off.
    WithoutPages,
    /// The API. The pages have an address of their own.
    PagesElsewhere,
    /// The pages, and the HTTP API that they call: no gRPC, no monitor's routes.
    Pages,
    /// Only the monitor's routes: `/metrics`, `/healthz`, `/readyz`.
    Monitor,
}

/// Bounds of a server. The defaults fit one machine's control plane.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which routes it answers.
    pub routes: Routes,
    /// Who may do what.
    pub access: rights::Options,
    /// TLS; without it, everyone on the network path can read the traffic.
    pub tls: Option<Arc<Tls>>,
    /// Names that this server accepts as Host, beside loopback names and its own address.
    pub allowed_hosts: Vec<String>,
    /// The address at which browsers reach this server, if it is another one than the address where it
    /// listens.
    pub public_url: Option<PublicUrl>,
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
    /// How long a client may read nothing of an answer.
    pub write_stall_max: Duration,
    /// How long running requests may take at shutdown.
    pub shutdown_max: Duration,
    /// Whether the next step of a workflow prefers the remote worker that ran the previous one.
    pub affinity: Affinity,
    /// How long ended tasks are kept, if a remote worker calls the duty that removes them.
    pub retention: Retention,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            routes: Routes::Whole,
            access: rights::Options::default(),
            tls: None,
            allowed_hosts: Vec::new(),
            public_url: None,
            connections_max: 1_000,
            long_polls_max: 900,
            bodies_max_bytes: 256 << 20,
            head_read_max: Duration::from_secs(30),
            body_read_max: Duration::from_secs(30),
            write_stall_max: Duration::from_secs(30),
            shutdown_max: Duration::from_secs(5),
            affinity: Affinity::On,
            retention: Retention::default(),
        }
    }
}

/// What every request can use.
pub(crate) struct Server {
    pub(crate) operations: Operations,
    /// Shared by all addresses of a process: a token that is revoked at one of them is refused at all.
    access: Arc<Access>,
    pub(crate) options: Options,
    /// How browsers see this server.
    pub(crate) face: Arc<Face>,
    /// A permit per long poll.
    polls: Arc<Semaphore>,
    /// A permit per export.
    exports: Arc<Semaphore>,
    /// A permit per KiB of body in memory.
    pub(crate) bodies: Arc<Semaphore>,
    /// Becomes true when the server stops.
    closing: watch::Receiver<bool>,
    /// What viewers of the dashboard have just seen.
    pub(crate) recent: Recent,
}

impl Server {
    fn new(
        operations: Operations,
        options: Options,
        listen: SocketAddr,
        closing: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            face: Face::new(listen, &options),
            polls: Arc::new(Semaphore::new(options.long_polls_max)),
            exports: Arc::new(Semaphore::new(routes::EXPORTS_MAX)),
            bodies: Arc::new(Semaphore::new(options.bodies_max_bytes.div_ceil(body::PERMIT_BYTES))),
            access: Arc::new(Access::new(Some(Arc::clone(operations.store())), options.access)),
            operations,
            options,
            closing,
            recent: Recent::default(),
        })
    }

    /// The same server at a second address: both count long polls, bodies and calls of a token together.
    fn at(&self, options: Options, listen: SocketAddr, closing: watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self {
            face: Face::new(listen, &options),
            polls: Arc::clone(&self.polls),
            exports: Arc::clone(&self.exports),
            bodies: Arc::clone(&self.bodies),
            access: Arc::clone(&self.access),
            operations: self.operations.clone(),
            options,
            closing,
            recent: Recent::default(),
        })
    }

    /// Every token, and when it was last used here.
    pub(crate) async fn tokens(&self) -> Result<Tokens, ErrorDetail> {
        let mut tokens = self.operations.tokens().await?;
        for token in &mut tokens.tokens {
            token.last_used_at = self.access.last_used(&token.id);
        }
        Ok(tokens)
    }

    /// Whether callers must say who they are.
    pub(crate) fn auth(&self) -> rights::Auth {
        self.options.access.auth
    }

    /// Whether calls may change anything.
    pub(crate) fn mode(&self) -> rights::Mode {
        self.options.access.mode
    }

    /// Whether the next step of a workflow prefers a worker.
    pub(crate) fn affinity(&self) -> Affinity {
        self.options.affinity
    }

    /// A place among the long polls, held until it is dropped.
    pub(crate) fn long_poll(&self) -> Result<SemaphorePermit<'_>, ErrorDetail> {
        self.polls.try_acquire().map_err(|_| {
            ErrorDetail::new(ErrorCode::Unavailable, "too many long polls at once")
                .hint("wait for several tasks in one call: POST /v1/tasks/wait")
        })
    }

    /// Resolves when the server stops.
    pub(crate) async fn closed(&self) {
        closed(&self.closing).await;
    }
}

async fn closed(closing: &watch::Receiver<bool>) {
    // An error means that the sender is gone: the server stops then too.
    let _ = closing.clone().wait_for(|closing| *closing).await;
}

/// Serves the API until `shutdown` resolves. Then it accepts no new connection, ends long polls at once, and
/// lets other requests finish within `shutdown_max`.
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
    let listen = listener.local_addr()?;
    let server = Server::new(operations, options.clone(), listen, closing);
    let router = routes::router(&server);
    let serving = connections::serve(listener, Arc::new(options), router, close, shutdown);
    Box::pin(work_beside(&server, serving)).await;
    Ok(())
}

/// Works off bulk runs and writes the activity while connections are served.
async fn work_beside(server: &Server, serving: impl Future<Output = ()> + Send) {
    let runs = async {
        // Nothing is changed through a server that is read-only.
        if server.mode() == rights::Mode::Whole {
            server.operations.work_runs(server.closed()).await;
        }
    };
    // A step that takes longer is given up: another server repeats it.
    let too_late = async {
        server.closed().await;
        tokio::time::sleep(server.options.shutdown_max).await;
    };
    let runs = async {
        tokio::select! {
            () = runs => {}
            () = too_late => {}
        }
    };
    tokio::select! {
        never = server.access.keep_activity() => match never {},
        _ = async { tokio::join!(serving, runs) } => {}
    }
    // The last calls were answered just now.
    server.access.write_activity().await;
}

/// A listener, and the options of the server behind it.
#[derive(Debug)]
pub struct Place {
    /// Where connections come from.
    pub listener: TcpListener,
    /// What they find.
    pub options: Options,
}

/// Serves the API at one address and the pages at another, until `shutdown` resolves.
///
/// # Errors
/// If a listener has no address.
pub async fn serve_apart(
    api: Place,
    pages: Place,
    operations: Operations,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (close_api, api_closing) = watch::channel(false);
    let (close_pages, pages_closing) = watch::channel(false);
    let (stop, stopped) = watch::channel(false);
    let api_at = api.listener.local_addr()?;
    let api_server = Server::new(operations, api.options.clone(), api_at, api_closing);
    let pages_at = pages.listener.local_addr()?;
    let pages_server = api_server.at(pages.options.clone(), pages_at, pages_closing);
    let (api_router, pages_router) = (routes::router(&api_server), routes::router(&pages_server));
    let serve = |place: Place, router, close| {
        connections::serve(place.listener, Arc::new(place.options), router, close, closed(&stopped))
    };
    let served = async {
        tokio::join!(
            async {
                shutdown.await;
                stop.send_replace(true);
            },
            serve(api, api_router, close_api),
            serve(pages, pages_router, close_pages),
        );
    };
    Box::pin(work_beside(&api_server, served)).await;
    Ok(())
}

/// Serves only the monitor's routes, `/metrics`, `/healthz` and `/readyz`, under the same bounds.
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
    let face = Face::new(listener.local_addr()?, &options);
    let access = Arc::new(Access::new(vitals.store().cloned(), options.access));
    let router = routes::monitor_router(vitals, access, options.access.auth, &face);
    connections::serve(listener, Arc::new(options), router, close, shutdown).await;
    Ok(())
}

/// A server without a listener: the caller passes connections to it. For simulations with their own network.
#[doc(hidden)]
pub struct Door {
    options: Arc<Options>,
    router: axum::Router,
    close: watch::Sender<bool>,
}

impl Door {
    /// A server with the Host rules of a server that listens at this address.
    #[must_use]
    pub fn new(operations: Operations, options: Options, listen: SocketAddr) -> Self {
        let (close, closing) = watch::channel(false);
        let router = routes::router(&Server::new(operations, options.clone(), listen, closing));
        Self { options: Arc::new(options), router, close }
    }

    /// Serves one connection until its end.
    pub fn serve<S>(&self, stream: S) -> impl Future<Output = ()> + Send + 'static
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let (options, router) = (Arc::clone(&self.options), self.router.clone());
        let closing = self.close.subscribe();
        async move { connections::speak(stream, &options, &closing, router).await }
    }
}
