//! A server on port 0, a client that sends exact bytes, and a worker that the test drives.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use windlass_conformance::MemoryStore;
use windlass_core::{
    Claimed, Demand, Name, NewWorker, Outcome, Rules, SettleBatch, SettleItem, Source, Timestamp, WorkerId,
    WorkerReport, settle, time::ManualClock,
};
use windlass_server::{
    Operations,
    http::{Options, Place, serve, serve_apart},
};

/// A running server.
pub struct Api {
    pub address: SocketAddr,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<ManualClock>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

/// The settings that a test changes.
pub struct Setup {
    pub rules: Rules,
    pub options: Options,
    pub operations: fn(Operations) -> Operations,
}

impl Default for Setup {
    fn default() -> Self {
        Self { rules: Rules::default(), options: Options::default(), operations: |operations| operations }
    }
}

impl Api {
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), setup.rules));
        let operations = (setup.operations)(Operations::new(store.clone()));
        Self::around(store, clock, operations, setup.options).await
    }

    pub async fn around(
        store: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
        operations: Operations,
        options: Options,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, operations, options, async {
            let _ = stopped.await;
        }));
        Self { address, store, clock, stop: Some(stop), served }
    }

    /// The API at one address, and its pages at another.
    pub async fn apart(api: Options, pages: Options) -> (Self, Self) {
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        let operations = Operations::new(store.clone());
        let listener = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (api, pages) = (
            Place { listener: listener().await, options: api },
            Place { listener: listener().await, options: pages },
        );
        let addresses = [&api, &pages].map(|place| place.listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve_apart(api, pages, operations, async {
            let _ = stopped.await;
        }));
        let whole = Self { address: addresses[0], store, clock, stop: Some(stop), served };
        let pages = Self {
            address: addresses[1],
            store: whole.store.clone(),
            clock: whole.clock.clone(),
            stop: None,
            served: tokio::spawn(async { Ok(()) }),
        };
        (whole, pages)
    }

    /// Asks the server to stop.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits until the server has stopped.
    pub async fn ended(self) {
        self.served.await.unwrap().unwrap();
    }

    pub async fn connect(&self) -> Connection {
        Connection(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends a head (without the closing empty line) and a body unchanged.
    pub async fn raw(&self, head: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect().await;
        connection.send(format!("{head}\r\n\r\n").as_bytes()).await;
        connection.send(body).await;
        connection.answer().await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.raw(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close", self.address), b"").await
    }

    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}",
            self.address,
            body.len()
        );
        self.raw(&head, body).await
    }

    pub async fn put(&self, path: &str, body: impl ToString) -> Answer {
        let body = body.to_string();
        let head = format!(
            "PUT {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}",
            self.address,
            body.len()
        );
        self.raw(&head, body.as_bytes()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.raw(&format!("DELETE {path} HTTP/1.1\r\nhost: {}\r\nconnection: close", self.address), b"").await
    }

    pub async fn post_nothing(&self, path: &str) -> Answer {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: 0",
            self.address
        );
        self.raw(&head, b"").await
    }

    /// Enqueues a task and returns its id.
    pub async fn enqueue(&self, task: Value) -> String {
        let answer = self.post("/v1/tasks", task.to_string()).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Enqueues a task that then dies of an error.
    pub async fn dead(&self, worker: &Hand, kind: &str, error: &str) -> String {
        let id = self.enqueue(json!({"kind": kind})).await;
        worker.end(Outcome::dead(error)).await;
        id
    }

    /// A live worker; the test ends its tasks.
    pub async fn worker(&self, kinds: &[&str]) -> Hand {
        Hand::register(&self.store, kinds).await
    }
}

/// A worker without a runtime.
pub struct Hand {
    store: Arc<MemoryStore>,
    pub id: WorkerId,
    kinds: Vec<Name>,
    number: AtomicU64,
}

impl Hand {
    /// A live worker on a store; the test ends its tasks.
    pub async fn register(store: &Arc<MemoryStore>, kinds: &[&str]) -> Self {
        let kinds: Vec<_> = kinds.iter().map(|kind| Name::new("kind", kind).unwrap()).collect();
        let new = NewWorker {
            host: "here".into(),
            pid: 7,
            version: "0".into(),
            kinds: kinds.clone(),
            queues: Vec::new(),
            slots: 10,
            lease_ttl: Duration::from_secs(10),
        };
        let id = store.register(new).await.unwrap();
        let report = WorkerReport { available: 10, ..WorkerReport::default() };
        store.renew(id, report).await.unwrap();
        Self { store: store.clone(), id, kinds, number: AtomicU64::new(1) }
    }

    pub async fn claim(&self) -> Claimed {
        let lanes = self.store.lanes(&self.kinds, &[]).await.unwrap();
        let claim_no = self.number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let lanes = lanes.iter().map(|lane| lane.id).collect();
        let demand = Demand::new(self.id, claim_no, lanes, 1);
        self.store.claim(&[demand]).await.unwrap().tasks.pop().expect("something is ready")
    }

    pub async fn settle(&self, task: &Claimed, outcome: Outcome) {
        let now: Timestamp = task.claimed_at;
        let settlement = settle(task, outcome, now, &Rules::default());
        let batch_no = self.number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let items = vec![SettleItem::new(task, settlement)];
        let batch = SettleBatch { worker: self.id, settler_no: batch_no as u32, batch_no, items };
        let settled = self.store.settle(Arc::new(batch)).await.unwrap();
        assert!(settled.fenced.is_empty());
    }

    /// Claims the next task and ends it.
    pub async fn end(&self, outcome: Outcome) {
        let task = self.claim().await;
        self.settle(&task, outcome).await;
    }
}

/// One TCP connection.
pub struct Connection(pub TcpStream);

impl Connection {
    /// Sends bytes. The server may have closed the connection already; the answer shows that.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Reads up to and including an empty line.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    /// Reads one whole answer.
    pub async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = vec![0; length];
        self.0.read_exact(&mut answer.body).await.unwrap();
        answer
    }

    /// Reads until the server closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        rest
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The error's code and message, after a check of the status.
    pub fn error(&self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body: windlass_server::api::ErrorBody = serde_json::from_slice(&self.body).unwrap();
        let code = serde_json::to_value(body.error.code).unwrap();
        (code.as_str().unwrap().to_owned(), body.error.message)
    }

    pub fn hint(&self) -> String {
        self.json()["error"]["hint"].as_str().unwrap_or_default().to_owned()
    }
}
