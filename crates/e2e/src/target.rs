//! An HTTP server that stands for the outside world: it records requests, and answers them.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::visits::{Visit, Visits};

/// The headers that name the task, its job and its workflow.
const TASK_HEADER: &str = "windlass-task";
const JOB_HEADER: &str = "windlass-job";
const WORKFLOW_HEADER: &str = "windlass-workflow";

/// The server. Ends when it goes out of scope.
pub struct Target {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
    /// Whether requests are answered.
    gate: watch::Sender<bool>,
    /// The status of every answer, if the path does not say it.
    status: watch::Sender<u16>,
    server: JoinHandle<()>,
}

/// The records of the target.
#[derive(Debug, Default)]
pub struct Book {
    /// How often a request of each task came.
    pub arrivals: HashMap<String, u32>,
    /// When the first request of each task came.
    pub first_came: HashMap<String, Instant>,
    /// Tasks that an observer saw done.
    pub seen_done: HashSet<String>,
    /// Tasks whose request came after an observer had seen them done: each one breaks DONE-DURABLE.
    pub came_after_done: Vec<String>,
    /// The trace of the last request of each task.
    pub traces: HashMap<String, String>,
    /// Requests that are open now.
    pub open: u32,
    /// Requests of tasks with a job or a workflow.
    pub visits: Visits,
    /// Requests without a task header.
    pub strangers: u32,
    /// `traceparent` and `tracestate` of those that had them.
    pub stranger_traces: Vec<(String, Option<String>)>,
    /// Their idempotency keys, in the order in which they came.
    pub stranger_keys: Vec<String>,
}

impl Target {
    /// Listens on a free port of loopback; every answer takes `latency`.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn start(latency: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let book = Arc::new(Mutex::new(Book::default()));
        let gate = watch::Sender::new(true);
        let status = watch::Sender::new(200);
        let manners = Manners { latency, gate: gate.subscribe(), status: status.subscribe() };
        let server = tokio::spawn(serve(listener, book.clone(), manners));
        Ok(Self { address, book, gate, status, server })
    }

    /// Answers no request until [`Target::release`].
    pub fn hold(&self) {
        self.gate.send_replace(false);
    }

    /// Answers the waiting and all later requests.
    pub fn release(&self) {
        self.gate.send_replace(true);
    }

    /// Answers with this status from now on.
    pub fn answer_with(&self, status: u16) {
        self.status.send_replace(status);
    }

    /// Its address, for a payload.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Its records. Do not hold this across an await.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Records that these tasks were seen done: from now on no request of them may come.
    pub fn note_done(&self, ids: impl IntoIterator<Item = String>) {
        self.book().seen_done.extend(ids);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// How a request is answered.
#[derive(Clone)]
struct Manners {
    latency: Duration,
    gate: watch::Receiver<bool>,
    status: watch::Receiver<u16>,
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, book: Arc<Mutex<Book>>, manners: Manners) {
    // The connections end with this future: dropping the set aborts them.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (book, manners) = (book.clone(), manners.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, book.clone(), manners.clone()));
            // A killed client breaks its connections; that is what the tests do.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Keeps the count of open requests right even if the client disconnects.
struct Open {
    book: Arc<Mutex<Book>>,
    visit: Option<usize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut book = lock(&self.book);
        book.open -= 1;
        if let Some(number) = self.visit {
            book.visits.go(number);
        }
    }
}

fn header(request: &Request<Incoming>, name: &str) -> Option<String> {
    Some(request.headers().get(name)?.to_str().ok()?.to_owned())
}

/// The visit of a task with a job or a workflow.
fn visit(request: &Request<Incoming>) -> Option<Visit> {
    let header = |name| header(request, name);
    let (job, workflow) = (header(JOB_HEADER), header(WORKFLOW_HEADER));
    let is_gated = job.is_some() || workflow.is_some();
    is_gated.then_some(Visit { task: header(TASK_HEADER)?, job, workflow, came: Instant::now() })
}

/// `/status/503` is answered with that status, any other path with `usual`.
fn wanted_status(path: &str, usual: u16) -> StatusCode {
    let code = path.strip_prefix("/status/").and_then(|code| code.parse().ok()).unwrap_or(usual);
    StatusCode::from_u16(code).unwrap_or(StatusCode::OK)
}

async fn answer(
    request: Request<Incoming>,
    book: Arc<Mutex<Book>>,
    mut manners: Manners,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let status = wanted_status(request.uri().path(), *manners.status.borrow());
    let open = {
        let mut seen = lock(&book);
        seen.open += 1;
        if let Some(id) = header(&request, TASK_HEADER) {
            if seen.seen_done.contains(&id) {
                seen.came_after_done.push(id.clone());
            }
            *seen.arrivals.entry(id.clone()).or_default() += 1;
            seen.first_came.entry(id.clone()).or_insert_with(Instant::now);
            if let Some(trace) = header(&request, "traceparent") {
                seen.traces.insert(id, trace);
            }
        } else {
            seen.strangers += 1;
            seen.stranger_keys.extend(header(&request, "idempotency-key"));
            let trace = header(&request, "traceparent").map(|trace| (trace, header(&request, "tracestate")));
            seen.stranger_traces.extend(trace);
        }
        // Under the lock, so that the order of the records is that of the clock.
        let visit = visit(&request).map(|visit| seen.visits.come(visit));
        drop(seen);
        Open { book: book.clone(), visit }
    };
    // The sender exists as long as the server.
    let _ = manners.gate.wait_for(|is_open| *is_open).await;
    tokio::time::sleep(manners.latency).await;
    drop(open);
    let mut response = Response::new(Full::new(Bytes::from_static(b"ok")));
    *response.status_mut() = status;
    Ok(response)
}
