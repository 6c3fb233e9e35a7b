//! A server, a network and a task for the tests.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use windlass::{
    Context, Name, Outcome, Payload, TaskId,
    handler::RawHandler,
    task::{Claimed, Lane, LaneId, WorkerId},
    time::Timestamp,
};
use windlass_kinds::{Connector, Http, HttpOptions, Resolver, Stream};

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An HTTP server on loopback that answers every request with the same function. Ends with the test.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub async fn start(
        answer: impl Fn(&Seen) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        tokio::spawn({
            let (seen, connections) = (Arc::clone(&seen), Arc::clone(&connections));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    connections.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(stream, Arc::clone(&seen), answer.clone()));
                }
            }
        });
        Self { address, connections, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Serves HTTP on one connection.
pub async fn serve(
    stream: impl Stream,
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: impl Fn(&Seen) -> Response<Full<Bytes>> + Clone,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (seen, answer) = (Arc::clone(&seen), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let request =
                Seen { method: head.method, path: head.uri.to_string(), headers: head.headers, body };
            let response = answer(&request);
            seen.lock().unwrap().push(request);
            Ok::<_, Infallible>(response)
        }
    });
    // In some tests the client disconnects in the middle.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(body.into())).unwrap()
}

/// A claimed task of kind `http` in a job and a workflow.
pub fn task(payload: Payload) -> Claimed {
    Claimed {
        id: TaskId::from_raw(123_456_789_012),
        lease: 4,
        attempt: 3,
        max_attempts: 10,
        crashes: 0,
        worker: WorkerId(1),
        claim_no: 1,
        lane: Arc::new(Lane {
            id: LaneId(1),
            queue: Name::new("queue", "default").unwrap(),
            kind: Name::new("kind", "http").unwrap(),
        }),
        priority: 0,
        payload,
        job: Some(Name::new("job", "täglich/example.com").unwrap()),
        workflow: Some(Name::new("workflow", "order-42").unwrap()),
        timeout: None,
        retry: None,
        trace: None,
        claimed_at: Timestamp::from_ms(1000),
    }
}

/// Runs one attempt.
pub async fn call(handler: &impl RawHandler, payload: &Value) -> Outcome {
    handler.call(Context::detached(task(Payload::json(payload).unwrap()))).await
}

/// Options that let tests reach their own servers.
pub fn loopback() -> HttpOptions {
    HttpOptions { allow_targets: vec!["127.0.0.0/8".parse().unwrap()], ..HttpOptions::default() }
}

pub fn http() -> Http {
    Http::new(loopback()).unwrap()
}

/// The output of a success.
pub fn output(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(Some(output)) => output.decode().unwrap(),
        other => panic!("not done with an output: {other:?}"),
    }
}

/// The reason of a dead task.
pub fn dead(outcome: Outcome) -> String {
    match outcome {
        Outcome::Dead(reason) => reason,
        other => panic!("not dead: {other:?}"),
    }
}

/// The error of a retry.
pub fn retried(outcome: Outcome) -> String {
    match outcome {
        Outcome::Retry { error, .. } => error,
        other => panic!("not a retry: {other:?}"),
    }
}

/// A resolver that gives its answers in order, then repeats the last one, for any name.
pub struct Script {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub names: Mutex<Vec<String>>,
}

impl Script {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers =
            answers.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect();
        Arc::new(Self { answers: Mutex::new(answers), names: Mutex::default() })
    }
}

#[async_trait]
impl Resolver for Script {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.names.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            return Ok(answers.pop_front().unwrap());
        }
        answers.front().cloned().ok_or_else(|| io::Error::other("no such name"))
    }
}

/// A connector that records the addresses and connects to one real server instead, if there is one.
pub struct Recorder {
    server: Option<SocketAddr>,
    pub went_to: Mutex<Vec<SocketAddr>>,
}

impl Recorder {
    pub fn new(server: Option<SocketAddr>) -> Arc<Self> {
        Arc::new(Self { server, went_to: Mutex::default() })
    }

    pub fn went_to(&self) -> Vec<String> {
        self.went_to.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

#[async_trait]
impl Connector for Recorder {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.went_to.lock().unwrap().push(address);
        match self.server {
            Some(server) => Ok(Box::new(TcpStream::connect(server).await?)),
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
