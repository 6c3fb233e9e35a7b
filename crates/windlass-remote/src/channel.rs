//! One HTTP/2 connection to one of several servers; when it breaks, the next call connects to the next server.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, header::AUTHORIZATION};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::runtime::Handle;
use tonic::{Status, body::Body};
use windlass_core::{Error, Result};
use windlass_proto::v1::{
    control_client::ControlClient, store_client::StoreClient, tasks_client::TasksClient,
    workers_client::WorkersClient,
};

use crate::{
    network::{Driver, Network},
    options::{Options, Server, Servers},
    tls::Tls,
};

/// How often a server is asked for a sign of life, and how long that may take: a server that went away without a word is
/// noticed before a lease ends.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_MAX: Duration = Duration::from_secs(2);
/// What a server may send ahead: on one stream, and on all of a connection.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Largest answer: a claim of as many of the largest payloads as there are slots.
const ANSWER_MAX_BYTES: usize = 1 << 30;
/// The message of a call that was never sent.
pub(crate) const NOT_SENT: &str = "the connection ended before the call was sent";

/// A connection as tonic wants it.
#[derive(Clone)]
pub(crate) struct Wire {
    number: usize,
    origin: http::Uri,
    authorization: Option<HeaderValue>,
    send: http2::SendRequest<Body>,
}

macro_rules! clients {
    ($($(#[$doc:meta])* $name:ident: $client:ident;)*) => {
        impl Wire {
            $(
                $(#[$doc])*
                pub(crate) fn $name(self) -> $client<Self> {
                    let origin = self.origin.clone();
                    $client::with_origin(self, origin)
                        .max_decoding_message_size(ANSWER_MAX_BYTES)
                        .max_encoding_message_size(ANSWER_MAX_BYTES)
                }
            )*
        }
    };
}

clients! {
    tasks: TasksClient;
    workers: WorkersClient;
    control: ControlClient;
    store: StoreClient;
}

impl tower_service::Service<http::Request<Body>> for Wire {
    type Response = http::Response<Incoming>;
    type Error = Status;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.send.poll_ready(cx).map_err(|_| Status::unavailable(NOT_SENT))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let sent = self.send.send_request(request);
        Box::pin(async move {
            sent.await.map_err(|error| {
                if error.is_canceled() {
                    Status::unavailable(NOT_SENT)
                } else {
                    Status::unknown(format!("the connection broke: {error}"))
                }
            })
        })
    }
}

/// The header that shows a token.
fn authorization(token: &str) -> Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| Error::invalid("the token has letters that no token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The connection that is in use, and how to get another.
pub(crate) struct Channel {
    driver: Driver,
    network: Network,
    /// There if a server asks for it.
    tls: Option<Tls>,
    authorization: Option<HeaderValue>,
    servers: Servers,
    connect_max: Duration,
    /// The server to try next.
    next: AtomicUsize,
    wires: AtomicUsize,
    current: Mutex<Option<Wire>>,
    /// Held by whoever connects, so that a broken connection is followed by one attempt and not by a hundred.
    connecting: tokio::sync::Mutex<()>,
}

impl Channel {
    pub(crate) fn new(name: &str, servers: &Servers, options: &Options) -> Result<Arc<Self>> {
        let network = options.network.clone();
        let driver = network
            .driver(name)
            .map_err(|error| Error::Unavailable(format!("no thread for connections: {error}")))?;
        let tls = servers.all().iter().any(|server| server.is_tls).then(|| Tls::new(options.ca.as_deref()));
        Ok(Arc::new(Self {
            driver,
            tls: tls.transpose()?,
            authorization: options.token.as_deref().map(authorization).transpose()?,
            next: AtomicUsize::new(network.first_turn()),
            network,
            servers: servers.clone(),
            connect_max: options.connect_max,
            wires: AtomicUsize::new(0),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }))
    }

    /// The runtime that moves its bytes.
    pub(crate) fn handle(&self) -> &Handle {
        &self.driver.handle
    }

    fn current(&self) -> Option<Wire> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|wire| !wire.send.is_closed())
    }

    /// A connection that was open a moment ago.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with what each server said.
    pub(crate) async fn wire(&self) -> Result<Wire> {
        if let Some(wire) = self.current() {
            return Ok(wire);
        }
        let _turn = self.connecting.lock().await;
        if let Some(wire) = self.current() {
            return Ok(wire);
        }
        let servers = self.servers.all();
        let mut failures = Vec::new();
        for _ in servers {
            let turn = self.next.load(Ordering::Relaxed) % servers.len().max(1);
            let Some(server) = servers.get(turn) else { break };
            match self.connect(server).await {
                Ok(wire) => {
                    *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire.clone());
                    return Ok(wire);
                }
                Err(error) => {
                    failures.push(format!("{}: {error}", server.origin()));
                    self.next.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Err(Error::Unavailable(format!("no server answers ({})", failures.join("; "))))
    }

    async fn connect(&self, server: &Server) -> std::io::Result<Wire> {
        let number = self.wires.fetch_add(1, Ordering::Relaxed);
        let origin = server.origin().parse().map_err(std::io::Error::other)?;
        let (name, port) = (server.name().to_owned(), server.port);
        let (handle, network) = (self.driver.handle.clone(), self.network.clone());
        let tls = self.tls.clone().filter(|_| server.is_tls);
        let authorization = self.authorization.clone();
        let connect = async move {
            let stream = network.connect(name.clone(), port).await?;
            let stream = match &tls {
                Some(tls) => tls.around(stream, &name).await?,
                None => stream,
            };
            let (send, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_MAX)
                .keep_alive_while_idle(true)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(std::io::Error::other)?;
            handle.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to a server ended");
                }
            });
            Ok(Wire { number, origin, authorization, send })
        };
        // On the driver's thread: the caller's runtime may have no I/O, as that of a heartbeat has none.
        let connected = self.driver.handle.spawn(connect);
        match tokio::time::timeout(self.connect_max, connected).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => Err(std::io::Error::other(error)),
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }

    /// Uses this connection no more; the next one goes to the next server.
    pub(crate) fn give_up(&self, wire: usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| current.number == wire) {
            *current = None;
            self.next.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Wire {
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}
