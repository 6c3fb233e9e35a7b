//! A small HTTP client for our own API: one pooled connection, JSON both ways.

use std::{fmt::Write as _, net::IpAddr, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::{client::legacy::Client as HyperClient, rt::TokioExecutor};
use serde::{Serialize, de::DeserializeOwned};
use windlass_server::api::{ErrorBody, ErrorCode, ErrorDetail};

use super::{
    Answer, Pieces,
    credentials::Credentials,
    tls::{Connector, Handshake},
};
use crate::failure::Failure;

/// How long connecting may take: a server is near or it does not run.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an answer may take, on top of the time that the call itself asks to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Largest answer: a page of a thousand tasks, each with a large payload, fits.
const ANSWER_MAX_BYTES: usize = 2 << 30;

/// How an error message starts if the server was reached but the TLS handshake failed.
const NO_TLS: &str = "no TLS with ";

/// Whether the server was reached but the TLS handshake failed. Another try does not help; other settings
/// do.
pub fn is_no_tls(error: &ErrorDetail) -> bool {
    error.message.starts_with(NO_TLS)
}

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    base: String,
    /// The whole header, marked as a secret.
    authorization: Option<HeaderValue>,
    http: HyperClient<Connector, Full<Bytes>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// What a lost answer can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The call changed nothing.
    Reads,
    /// The call may have changed something.
    Writes,
}

impl Client {
    /// A client of the server at a URL.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, Failure> {
        let base = url.trim_end_matches('/').to_owned();
        let wrong = || Failure::usage(format!("{url:?} is not a server's address"));
        let uri: Uri = base.parse().map_err(|_| wrong().hint("write it like http://127.0.0.1:7878"))?;
        match (uri.scheme_str(), uri.authority()) {
            (Some("http" | "https"), Some(_)) => {}
            _ => return Err(wrong().hint("write it like http://127.0.0.1:7878")),
        }
        let connector = Connector::new(&uri, credentials.ca.as_deref(), CONNECT_TIMEOUT)?;
        if credentials.token.is_some() && uri.scheme_str() == Some("http") && !is_local(&uri) {
            tracing::warn!(server = %base, "the token crosses the network unencrypted; use https:// if the server has TLS");
        }
        let authorization = credentials.token.as_ref().map(|token| authorization(token)).transpose()?;
        Ok(Self { base, authorization, http: HyperClient::builder(TokioExecutor::new()).build(connector) })
    }

    /// The server's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a GET; the answer must be a success.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Answer<T> {
        let (_, body) = self.send(Method::GET, path, None, wait, Effect::Reads).await?;
        self.read(&body)
    }

    /// Sends a GET whose answer comes in pieces.
    pub async fn stream(&self, path: &str) -> Answer<Box<dyn Pieces>> {
        let request = self.request(Method::GET, path, None)?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.http.request(request)).await;
        let answer = answer.map_err(|_| self.cut_off("no answer in time", Effect::Reads))?;
        let answer = answer.map_err(|error| self.lost(&error, Effect::Reads))?;
        let status = answer.status();
        let mut body = Body { client: self.clone(), body: answer.into_body() };
        if status.is_success() {
            return Ok(Box::new(body));
        }
        let refusal = body.next().await?.unwrap_or_default();
        match serde_json::from_slice::<ErrorBody>(&refusal) {
            Ok(body) => Err(body.error),
            Err(_) => Err(self.not_ours(&format!("answered {status}"))),
        }
    }

    /// Sends a GET and takes any status: a health check answers 503 too.
    pub async fn get_any<T: DeserializeOwned>(&self, path: &str) -> Answer<(StatusCode, T)> {
        let (status, body) = self.exchange(Method::GET, path, None, Duration::ZERO, Effect::Reads).await?;
        Ok((status, self.read(&body)?))
    }

    /// Changes something.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Answer<T> {
        self.post_waiting(path, body, Duration::ZERO, Effect::Writes).await
    }

    /// Sends a PUT: the resource becomes what the body says.
    pub async fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Answer<T> {
        let body = serde_json::to_vec(body).map_err(|error| ErrorDetail::invalid(error.to_string()))?;
        let (_, answer) =
            self.send(Method::PUT, path, Some(body.into()), Duration::ZERO, Effect::Writes).await?;
        self.read(&answer)
    }

    /// Removes something.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Answer<T> {
        let (_, answer) = self.send(Method::DELETE, path, None, Duration::ZERO, Effect::Writes).await?;
        self.read(&answer)
    }

    /// Sends a question that is too long for a query string, and may wait for its answer.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Answer<T> {
        self.post_waiting(path, body, wait, Effect::Reads).await
    }

    async fn post_waiting<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
        effect: Effect,
    ) -> Answer<T> {
        let body = serde_json::to_vec(body).map_err(|error| ErrorDetail::invalid(error.to_string()))?;
        let (_, answer) = self.send(Method::POST, path, Some(body.into()), wait, effect).await?;
        self.read(&answer)
    }

    /// One exchange whose answer must be a success.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
        effect: Effect,
    ) -> Answer<(StatusCode, Bytes)> {
        let (status, answer) = self.exchange(method, path, body, wait, effect).await?;
        if status.is_success() {
            return Ok((status, answer));
        }
        match serde_json::from_slice::<ErrorBody>(&answer) {
            Ok(body) => Err(body.error),
            Err(_) => Err(self.not_ours(&format!("answered {status}"))),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
        effect: Effect,
    ) -> Answer<(StatusCode, Bytes)> {
        let request = self.request(method, path, body)?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| self.lost(&error, effect))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
            let body = body.map_err(|error| self.cut_off(&error.to_string(), effect))?;
            Ok((status, body.to_bytes()))
        };
        match tokio::time::timeout(ANSWER_TIMEOUT + wait, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(self.cut_off("no answer in time", effect)),
        }
    }

    fn request(&self, method: Method, path: &str, body: Option<Bytes>) -> Answer<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| ErrorDetail::invalid(error.to_string()))?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Answer<T> {
        serde_json::from_slice(body)
            .map_err(|error| self.not_ours(&format!("answered something else ({error})")))
    }

    fn lost(&self, error: &hyper_util::client::legacy::Error, effect: Effect) -> ErrorDetail {
        let cause = std::error::Error::source(error);
        if let Some(problem) = cause.and_then(|cause| cause.downcast_ref::<Handshake>()) {
            return self.no_tls(problem);
        }
        if error.is_connect() {
            return ErrorDetail::new(ErrorCode::Unavailable, format!("no server at {}", self.base))
                .hint("start one with `windlass up`, or name another with --server");
        }
        let mut text = error.to_string();
        if let Some(cause) = std::error::Error::source(error) {
            let _ = write!(text, ": {cause}");
        }
        self.cut_off(&text, effect)
    }

    fn no_tls(&self, problem: &Handshake) -> ErrorDetail {
        let error = |problem: &str| {
            ErrorDetail::new(ErrorCode::Unavailable, format!("{NO_TLS}{}: {problem}", self.base))
        };
        if problem.is_plain() {
            let plain = self.base.replacen("https://", "http://", 1);
            return error("the server there does not use TLS").hint(format!("write {plain}"));
        }
        error(&problem.to_string()).hint(
            "name the certificate's authority with --ca FILE, and use a host name that the certificate has",
        )
    }

    fn cut_off(&self, problem: &str, effect: Effect) -> ErrorDetail {
        let message = format!("the connection to {} broke: {problem}", self.base);
        match effect {
            Effect::Reads => ErrorDetail::new(ErrorCode::Unavailable, message).hint("try again"),
            Effect::Writes => ErrorDetail::new(ErrorCode::UnknownOutcome, message).hint(
                "it may have taken effect: look with `windlass tasks ls`, or repeat the call with --key",
            ),
        }
    }

    fn not_ours(&self, problem: &str) -> ErrorDetail {
        ErrorDetail::new(
            ErrorCode::Unrecognised,
            format!("{} {problem}; it does not look like a Windlass server of this version", self.base),
        )
        .hint("name another with --server, or a store with --store")
    }
}

/// The body of an answer that is read piece by piece.
struct Body {
    client: Client,
    body: Incoming,
}

#[async_trait]
impl Pieces for Body {
    async fn next(&mut self) -> Answer<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(ANSWER_TIMEOUT, self.body.frame()).await;
            let Ok(frame) = frame else {
                return Err(self.client.cut_off("no answer in time", Effect::Reads));
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| self.client.cut_off(&error.to_string(), Effect::Reads))?;
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }
}

/// Whether a server is on this machine.
pub fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The header that shows a token.
fn authorization(token: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| Failure::usage("the token has characters that are not allowed"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A piece of a path or a query, with every special character escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// A query string of the pairs that have a value.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escape(&value?)))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_path_and_a_query() {
        assert_eq!(escape("täglich/a b&c"), "t%C3%A4glich%2Fa%20b%26c");
        assert_eq!(query([("kind", Some("a=b".to_owned())), ("job", None)]), "?kind=a%3Db");
        assert_eq!(query([("kind", None)]), "");
    }

    #[test]
    fn an_address_that_cannot_be_spoken_to_is_refused() {
        let client = |url| Client::new(url, &Credentials::default());
        for url in ["", "127.0.0.1:7878", "ftp://a", "http://", "https://"] {
            assert!(client(url).is_err(), "{url}");
        }
        assert_eq!(client("http://127.0.0.1:7878/").unwrap().base(), "http://127.0.0.1:7878");
    }
}
