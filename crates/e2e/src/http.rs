//! A small HTTP client for the control plane.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

/// How long one call may take; long polls ask for less.
const CALL_LIMIT: Duration = Duration::from_mins(1);

/// Talks to one server.
#[derive(Clone)]
pub struct Api {
    base: String,
    token: Option<String>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer: the status and the body, as JSON if possible.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body; a JSON string if it was not JSON.
    pub body: Value,
}

impl Api {
    /// A client of the server at `base`, such as `http://127.0.0.1:7878`.
    pub fn new(base: impl Into<String>) -> Self {
        Self { base: base.into(), token: None, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// The same client with a token, which it shows with every call.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.call(Method::GET, path, &[], Bytes::new()).await
    }

    /// Sends a JSON body.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.post_raw(path, body.to_string()).await
    }

    /// Sends any bytes with the content type of JSON.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn post_raw(&self, path: &str, body: impl Into<Bytes>) -> Result<Answer> {
        self.call(Method::POST, path, &[], body.into()).await
    }

    /// Sends a PUT request with a JSON body.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        self.call(Method::PUT, path, &[], body.to_string().into()).await
    }

    /// Sends a DELETE request.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn delete(&self, path: &str) -> Result<Answer> {
        self.call(Method::DELETE, path, &[], Bytes::new()).await
    }

    /// Sends a JSON body with extra headers.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Answer> {
        self.call(Method::POST, path, headers, body.to_string().into()).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body))?;
        let exchange = async {
            let response = self.client.request(request).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await?.to_bytes();
            let body = serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
            anyhow::Ok(Answer { status, body })
        };
        tokio::time::timeout(CALL_LIMIT, exchange).await.context("no answer in time")?
    }
}

impl Answer {
    /// Every task id in the body, in order.
    pub fn ids(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect_ids(&self.body, &mut found);
        found
    }

    /// The code of a refusal, such as `invalid`.
    pub fn error_code(&self) -> Option<&str> {
        self.body.pointer("/error/code")?.as_str()
    }

    /// The message of a refusal.
    pub fn error_message(&self) -> Option<&str> {
        self.body.pointer("/error/message")?.as_str()
    }
}

fn collect_ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("id").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect_ids(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, found)),
        _ => {}
    }
}
