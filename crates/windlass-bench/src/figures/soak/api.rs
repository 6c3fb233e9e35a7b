//! A client for the API calls of a long run.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A client of one process.
pub(super) struct Client {
    port: u16,
    http: HyperClient<HttpConnector, Full<Bytes>>,
}

impl Client {
    pub(super) fn new(port: u16) -> Self {
        Self { port, http: HyperClient::builder(TokioExecutor::new()).build_http() }
    }

    /// Whether the process says that it can do its work.
    pub(super) async fn is_ready(&self) -> bool {
        self.exchange(Method::GET, "/readyz", None).await.is_ok_and(|(status, _)| status.is_success())
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.send(Method::GET, path, None).await?)?)
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.send(Method::POST, path, Some(body)).await?)?)
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.send(Method::PUT, path, Some(body)).await?)?)
    }

    /// Reads something that is not JSON.
    pub(super) async fn text(&self, path: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&self.send(Method::GET, path, None).await?).into_owned())
    }

    /// One exchange whose answer must be a success.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Bytes> {
        let (status, answer) = self.exchange(method, path, body).await?;
        anyhow::ensure!(
            status.is_success(),
            "the server refused {path} with {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        Ok(answer)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:{}{path}", self.port))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.map(Value::to_string).unwrap_or_default().into()))?;
        let exchange = async {
            let response = self.http.request(request).await?;
            let status = response.status();
            anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .with_context(|| format!("no answer to {path} in time"))?
    }
}
