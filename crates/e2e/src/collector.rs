//! A small OTLP receiver: takes spans over HTTP with JSON bodies and keeps them.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

use crate::postgres::LIMIT;

/// The receiver. Ends when it goes out of scope.
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    server: JoinHandle<()>,
}

/// A received span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: String,
    /// Its own number.
    pub id: String,
    /// The span that it is a child of.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// The whole span.
    pub whole: Value,
}

impl Collector {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let spans = Arc::new(Mutex::new(Vec::new()));
        let server = tokio::spawn(serve(listener, spans.clone()));
        Ok(Self { address, spans, server })
    }

    /// Its address, for the setting.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans received so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `n` spans have arrived.
    ///
    /// # Errors
    /// If they do not arrive in time.
    pub async fn wait_for(&self, n: usize) -> Result<Vec<Span>> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let spans = self.spans();
            if spans.len() >= n {
                return Ok(spans);
            }
            if Instant::now() > deadline {
                bail!("{n} spans did not come in time: {spans:?}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, spans: Arc<Mutex<Vec<Span>>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let spans = spans.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| take(request, spans.clone()));
            // A client that ends breaks its connections.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn take(
    request: Request<Incoming>,
    spans: Arc<Mutex<Vec<Span>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_right = request.uri().path() == "/v1/traces"
        && request.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
    match serde_json::from_slice::<Value>(&body) {
        Ok(body) if is_right => {
            spans.lock().unwrap_or_else(PoisonError::into_inner).extend(read(&body));
        }
        _ => *response.status_mut() = hyper::StatusCode::BAD_REQUEST,
    }
    Ok(response)
}

fn read(body: &Value) -> Vec<Span> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let groups = list(body, "resourceSpans").into_iter().flat_map(|resource| list(&resource, "scopeSpans"));
    groups
        .flat_map(|scope| list(&scope, "spans"))
        .map(|whole| {
            let text = |key: &str| whole.get(key).and_then(Value::as_str).map(str::to_owned);
            Span {
                trace: text("traceId").unwrap_or_default(),
                id: text("spanId").unwrap_or_default(),
                parent: text("parentSpanId"),
                name: text("name").unwrap_or_default(),
                whole,
            }
        })
        .collect()
}
