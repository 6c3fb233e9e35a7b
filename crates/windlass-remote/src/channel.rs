//! One HTTP/2 connection to one of several servers; if it breaks, the next call connects to the next server.
//!
//! A new connection is used only after the server has answered a first request on it. A server that stops
//! before that answer has read no call; one that stops later finishes the calls that it has read. So the
//! restart of a server leaves no call in doubt: a call that was not sent goes to the next server.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri, header::AUTHORIZATION};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{runtime::Handle, sync::Notify};
use tonic::{Status, body::Body};
use windlass_core::{Error, Result};
use windlass_proto::v1::{
    control_client::ControlClient, store_client::StoreClient, tasks_client::TasksClient,
    workers_client::WorkersClient,
};

use crate::{
    cork::Cork,
    network::{Driver, Network},
    options::{Options, Server, Servers},
    tls::{self, Tls},
};

/// How often a server is pinged, and how long its answer may take: a server that disappears silently must be
/// noticed before a lease ends.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_MAX: Duration = Duration::from_secs(2);
/// How many bytes a server may send ahead: per stream, and per connection.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Largest answer: a claim of the largest payloads for all slots.
const ANSWER_MAX_BYTES: usize = 1 << 30;
/// Most connections on which a call is tried that could not be sent.
const SEND_TRIES: usize = 3;
/// The first request on a new connection; any answer is fine.
const FIRST_PATH: &str = "/healthz";
/// The message of a call that was never sent.
pub(crate) const NOT_SENT: &str = "the connection ended before the call was sent";

/// The type of connection that tonic needs.
#[derive(Clone)]
pub(crate) struct Wire {
    line: Line,
    authorization: Option<HeaderValue>,
    /// The line on which a call was finally sent.
    used: Arc<AtomicUsize>,
    channel: Weak<Channel>,
}

/// A connection.
#[derive(Clone)]
struct Line {
    number: usize,
    origin: Uri,
    send: http2::SendRequest<Body>,
}

macro_rules! clients {
    ($($(#[$doc:meta])* $name:ident: $client:ident;)*) => {
        impl Wire {
            $(
                $(#[$doc])*
                pub(crate) fn $name(self) -> $client<Self> {
                    let origin = self.line.origin.clone();
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

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        // The call notices a line that has ended meanwhile.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let wire = self.clone();
        Box::pin(async move { wire.send(request).await })
    }
}

impl Wire {
    /// Sends a request; if it could not be sent, it goes to another line.
    async fn send(self, mut request: http::Request<Body>) -> Result<http::Response<Incoming>, Status> {
        let mut line = self.line;
        for _ in 0..SEND_TRIES {
            self.used.store(line.number, Ordering::Relaxed);
            let mut error = match line.send.try_send_request(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(unsent) = error.take_message() else {
                let error = error.into_error();
                return Err(if error.is_canceled() {
                    Status::unavailable(NOT_SENT)
                } else {
                    Status::unknown(format!("the connection broke: {error}"))
                });
            };
            request = unsent;
            let Some(channel) = self.channel.upgrade() else { break };
            channel.give_up(line.number);
            line = channel.line().await.map_err(|_| Status::unavailable(NOT_SENT))?;
            *request.uri_mut() = moved(request.uri(), &line.origin);
        }
        Err(Status::unavailable(NOT_SENT))
    }
}

/// The same path at another server.
fn moved(uri: &Uri, origin: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    let there = origin.clone().into_parts();
    (parts.scheme, parts.authority) = (there.scheme, there.authority);
    // Both halves were valid parts of addresses before.
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// The header with the token.
fn authorization(token: &str) -> Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| Error::invalid("the token has characters that are not allowed"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The current connection, and what is needed for another one.
pub(crate) struct Channel {
    driver: Driver,
    network: Network,
    /// Present if a server needs it.
    tls: Option<Tls>,
    authorization: Option<HeaderValue>,
    servers: Servers,
    connect_max: Duration,
    /// The server to try next.
    next: AtomicUsize,
    lines: AtomicUsize,
    current: Mutex<Option<Line>>,
    /// Whether at the last attempt to connect no server's certificate was trusted.
    unbelieved: AtomicBool,
    /// Held while connecting, so that after a broken connection one call reconnects and not a hundred.
    connecting: tokio::sync::Mutex<()>,
    /// Notified of every new connection.
    connected: Notify,
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
            lines: AtomicUsize::new(0),
            current: Mutex::default(),
            unbelieved: AtomicBool::new(false),
            connecting: tokio::sync::Mutex::default(),
            connected: Notify::new(),
        }))
    }

    /// The runtime that does the I/O.
    pub(crate) fn handle(&self) -> &Handle {
        &self.driver.handle
    }

    fn current(&self) -> Option<Line> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|line| !line.send.is_closed())
    }

    /// Whether at the last attempt every server was reachable and none had a trusted certificate. Waiting
    /// does not help against that.
    pub(crate) fn is_unbelieved(&self) -> bool {
        self.unbelieved.load(Ordering::Relaxed)
    }

    /// Waits until another call has connected, for at most `limit`.
    pub(crate) async fn connected_within(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.connected.notified()).await;
    }

    /// A connection that was open a moment ago, for one call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the failure of each server.
    pub(crate) async fn wire(self: &Arc<Self>) -> Result<Wire> {
        let line = self.line().await?;
        Ok(Wire {
            used: Arc::new(AtomicUsize::new(line.number)),
            line,
            authorization: self.authorization.clone(),
            channel: Arc::downgrade(self),
        })
    }

    async fn line(&self) -> Result<Line> {
        if let Some(line) = self.current() {
            return Ok(line);
        }
        let _turn = self.connecting.lock().await;
        if let Some(line) = self.current() {
            return Ok(line);
        }
        let servers = self.servers.all();
        let (mut failures, mut unbelieved) = (Vec::new(), 0);
        for _ in servers {
            let turn = self.next.load(Ordering::Relaxed) % servers.len().max(1);
            let Some(server) = servers.get(turn) else { break };
            match self.connect(server).await {
                Ok(line) => {
                    *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
                    self.connected.notify_waiters();
                    return Ok(line);
                }
                Err(error) => {
                    unbelieved += usize::from(tls::is_unbelieved(&error));
                    failures.push(format!("{}: {error}", server.origin()));
                    self.next.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.unbelieved.store(unbelieved == servers.len(), Ordering::Relaxed);
        Err(Error::Unavailable(format!("no server answers ({})", failures.join("; "))))
    }

    async fn connect(&self, server: &Server) -> std::io::Result<Line> {
        let number = self.lines.fetch_add(1, Ordering::Relaxed);
        let origin: Uri = server.origin().parse().map_err(std::io::Error::other)?;
        let (name, port) = (server.name().to_owned(), server.port);
        let (handle, network) = (self.driver.handle.clone(), self.network.clone());
        let tls = self.tls.clone().filter(|_| server.is_tls);
        let connect = async move {
            let stream = network.connect(name.clone(), port).await?;
            let stream = match &tls {
                Some(tls) => tls.around(stream, &name).await?,
                None => stream,
            };
            let (mut send, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_MAX)
                .keep_alive_while_idle(true)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .handshake(TokioIo::new(Cork::new(stream)))
                .await
                .map_err(std::io::Error::other)?;
            handle.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to a server ended");
                }
            });
            let mut first = http::Request::new(Body::empty());
            *first.uri_mut() = moved(&Uri::from_static(FIRST_PATH), &origin);
            send.send_request(first).await.map_err(std::io::Error::other)?;
            Ok(Line { number, origin, send })
        };
        // On the driver's thread: the caller's runtime may have no I/O, like that of a heartbeat.
        let connected = self.driver.handle.spawn(connect);
        match tokio::time::timeout(self.connect_max, connected).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => Err(std::io::Error::other(error)),
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }

    /// Stops using this connection; the next one goes to the next server.
    pub(crate) fn give_up(&self, line: usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| current.number == line) {
            *current = None;
            self.next.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Wire {
    /// The number of the line in use, also after a change of the line.
    pub(crate) fn used(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.used)
    }
}
