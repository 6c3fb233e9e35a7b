//! A proxy before a server, as an operator may have one: it serves the server below a prefix, and removes it.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::{
    Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

type Answer = Response<Either<Incoming, Empty<Bytes>>>;

/// The proxy. Ends when it goes out of scope.
pub struct Proxy {
    /// Its address with the prefix, such as `http://localhost:40123/ops`: another host than the server's own, so
    /// that the two cannot be taken for each other.
    pub address: String,
    front: Arc<Front>,
    server: JoinHandle<()>,
}

struct Front {
    prefix: String,
    /// The address of the server behind, once it is known.
    behind: watch::Sender<String>,
    strays: Mutex<Vec<String>>,
    client: Client<HttpConnector, Incoming>,
}

impl Proxy {
    /// Listens on a free port of loopback. Requests wait until the server behind it is known.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn start(prefix: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address: SocketAddr = listener.local_addr()?;
        let front = Arc::new(Front {
            prefix: prefix.to_owned(),
            behind: watch::Sender::new(String::new()),
            strays: Mutex::default(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        });
        let server = tokio::spawn(serve(listener, Arc::clone(&front)));
        Ok(Self { address: format!("http://localhost:{}{prefix}", address.port()), front, server })
    }

    /// Names the server behind it, such as `http://127.0.0.1:7878`.
    pub fn forward_to(&self, address: &str) {
        self.front.behind.send_replace(address.to_owned());
    }

    /// Paths outside of the prefix that were asked for.
    pub fn strays(&self) -> Vec<String> {
        self.front.strays.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, front: Arc<Front>) {
    // The connections end with this future: dropping the set aborts them.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let front = Arc::clone(&front);
        connections.spawn(async move {
            let service = service_fn(move |request| forward(request, Arc::clone(&front)));
            // A browser may end a connection whenever it likes.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(mut request: Request<Incoming>, front: Arc<Front>) -> Result<Answer, Infallible> {
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str()).to_owned();
    let Some(path) = asked.strip_prefix(&front.prefix).filter(|path| path.starts_with('/')) else {
        front.strays.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        return Ok(empty(StatusCode::NOT_FOUND));
    };
    let mut known = front.behind.subscribe();
    let behind =
        known.wait_for(|behind| !behind.is_empty()).await.map_or(String::new(), |behind| behind.clone());
    let Ok(to) = format!("{behind}{path}").parse() else { return Ok(empty(StatusCode::BAD_GATEWAY)) };
    *request.uri_mut() = to;
    // The client asks the server by the server's own name, as many proxies do.
    request.headers_mut().remove(header::HOST);
    match front.client.request(request).await {
        Ok(answer) => Ok(answer.map(Either::Left)),
        Err(_) => Ok(empty(StatusCode::BAD_GATEWAY)),
    }
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Either::Right(Empty::new()));
    *answer.status_mut() = status;
    answer
}
