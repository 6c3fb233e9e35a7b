//! A site that sometimes fails, for the `http` tasks of a long run.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Starts the site on a free port; returns its address. It ends with the runtime.
pub(super) async fn start() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A killed worker leaves a broken connection: expected here.
                let _ =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    });
    Ok(address)
}

/// The first attempt of each task fails and may be retried; a missing page always stays missing.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let attempt = request.headers().get("windlass-attempt").and_then(|number| number.to_str().ok());
    let status = match request.uri().path() {
        "/missing" => StatusCode::NOT_FOUND,
        _ if attempt == Some("1") => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    Ok(response)
}
