//! The kind `http`: one request, from payload to outcome.
//!
//! ```text
//! payload → request → hop → connection (checked) → answer → verdict ┬ done with output
//!                      ▲                                            ├ retry, perhaps after a given time
//!                      └──────────────── redirect ──────────────────┴ dead
//! ```

mod cidr;
mod connect;
mod headers;
mod output;
mod proxy;
mod redact;
mod redirect;
mod request;
mod retry_after;
mod system;
mod target;
mod tls;
mod url;
mod verdict;

use std::{
    error::Error as StdError,
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use windlass::{
    Context, Outcome,
    handler::RawHandler,
    store::Rules,
    telemetry::{Ended, OutcomeTimes},
};

pub use self::{
    cidr::{Cidr, ParseCidrError},
    connect::{Connector, Resolver, Stream},
    redact::redact_http_payload,
    request::check_http_payload,
};
use self::{
    connect::{CheckedConnector, Parts},
    headers::Headers,
    output::{Body, output},
    proxy::Proxies,
    redirect::Hop,
    request::Request,
    retry_after::retry_after,
    system::{SystemConnector, SystemResolver},
    target::Policy,
    tls::Tls,
    verdict::{Verdict, verdict},
};
use crate::cancelled::unless_cancelled;

/// How long an idle connection is kept for the next request to the same host, and how many per host.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_MAX_PER_HOST: usize = 128;
/// Most bytes of a connection's read buffer, and so of an answer's head.
const READ_BUFFER_MAX_BYTES: usize = 64 << 10;

/// The operator's settings for `http` tasks.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address blocks that tasks may reach although they are not public.
    pub allow_targets: Vec<Cidr>,
    /// Environment variables that a header value `{"env": "NAME"}` may name.
    pub env_headers: Vec<String>,
    /// Whether to use `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`. The proxy gets a `CONNECT` to
    /// the checked address, so names are still resolved by this process.
    pub use_env_proxy: bool,
    /// Certificates in DER form that are trusted besides the system's.
    pub extra_root_certs_der: Vec<Vec<u8>>,
    /// Where request times are recorded.
    pub times: Option<Arc<OutcomeTimes>>,
    /// Largest output; a body is cut so that the whole output fits. Set it to the store's own limit.
    pub output_max_bytes: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allow_targets: Vec::new(),
            env_headers: Vec::new(),
            use_env_proxy: false,
            extra_root_certs_der: Vec::new(),
            times: None,
            output_max_bytes: Rules::default().output_max_bytes,
        }
    }
}

/// An invalid option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A proxy variable that cannot be used.
    #[error("the environment's proxy cannot be used: {0}")]
    Proxy(String),
    /// A certificate that cannot be read.
    #[error("an extra root certificate cannot be used: {0}")]
    RootCertificate(String),
}

/// The handler of kind `http`. Use one per process, because it holds the connection pool.
///
/// | Field | Default | Meaning |
/// |---|---|---|
/// | `url` | | http or https; a user name and password in it are sent as basic credentials |
/// | `method` | `GET` | anything but `CONNECT` and `TRACE` |
/// | `headers` | none | values are text or `{"env": "NAME"}` |
/// | `body` or `json` | none | text, or any JSON value |
/// | `timeout_ms` | 30000 | for everything from the look-up of the name to the last byte of the body |
/// | `max_redirects` | 5 | at most 20 |
/// | `max_body_bytes` | 65536 | a longer body is cut, and the output says `"truncated": true` |
///
/// A 2xx is done, with `{"status", "headers", "body" or "body_base64", "truncated"}` as output. 408, 425,
/// 429, 5xx and every failure of the network are tried again, after `Retry-After` if the answer has it.
/// Anything else is dead, and so is a target that is neither public nor allowed. Every request carries
/// `Windlass-Task`, `Windlass-Attempt`, `Windlass-Job`, `Windlass-Workflow` and, unless the payload sets
/// another, `Idempotency-Key` with the id of the task.
pub struct Http {
    client: Client<CheckedConnector, Full<Bytes>>,
    env_headers: Vec<String>,
    times: Option<Arc<OutcomeTimes>>,
    output_max_bytes: usize,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    /// A handler on the network of this machine.
    ///
    /// # Errors
    /// [`OptionsError`] if an option is invalid.
    pub fn new(options: HttpOptions) -> Result<Self, OptionsError> {
        Self::with_network(options, Arc::new(SystemResolver::new()), Arc::new(SystemConnector))
    }

    /// A handler on a network that the caller provides.
    ///
    /// # Errors
    /// [`OptionsError`] if an option is invalid.
    pub fn with_network(
        options: HttpOptions,
        resolver: Arc<dyn Resolver>,
        connector: Arc<dyn Connector>,
    ) -> Result<Self, OptionsError> {
        let proxies = if options.use_env_proxy {
            Proxies::read(|name| std::env::var(name).ok()).map_err(OptionsError::Proxy)?
        } else {
            Proxies::default()
        };
        let tls = Tls::new(options.extra_root_certs_der)
            .map_err(|error| OptionsError::RootCertificate(error.to_string()))?;
        let policy = Policy::new(options.allow_targets);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX_PER_HOST)
            .http1_max_buf_size(READ_BUFFER_MAX_BYTES)
            .build(CheckedConnector::new(Parts { policy, resolver, connector, tls, proxies }));
        let HttpOptions { env_headers, times, output_max_bytes, .. } = options;
        Ok(Self { client, env_headers, times, output_max_bytes })
    }

    /// The first request of an exchange.
    fn first_hop(&self, request: &Request, context: &Context) -> Result<Hop, String> {
        let mut headers =
            Headers::resolve(&request.headers, &self.env_headers, |name| std::env::var_os(name))?;
        if let Some(credentials) = &request.credentials {
            headers.authorize(credentials.clone());
        }
        headers.stamp(context, request.is_json)?;
        Ok(Hop {
            url: request.url.clone(),
            method: request.method.clone(),
            headers,
            body: request.body.clone(),
        })
    }

    /// Sends the request, follows redirects, and judges the last answer.
    async fn exchange(&self, mut hop: Hop, request: &Request) -> Outcome {
        let mut redirects = 0;
        loop {
            let host = hop.url.authority();
            let message = match message(&hop) {
                Ok(message) => message,
                Err(error) => {
                    return Outcome::dead(format!("http: the request to {host} cannot be sent: {error}"));
                }
            };
            let response = match self.client.request(message).await {
                Ok(response) => response,
                Err(error) => return failure(&host, &error),
            };
            let status = response.status();
            match verdict(status) {
                Verdict::Done => return self.finish(&host, response, request).await,
                Verdict::Retry => return postponed(&host, &response),
                Verdict::Dead => return Outcome::dead(answered(&host, status)),
                Verdict::Redirect if redirects >= request.max_redirects => {
                    let answered = answered(&host, status);
                    return Outcome::dead(format!(
                        "{answered} after {redirects} redirects followed; max_redirects allows no more"
                    ));
                }
                Verdict::Redirect => redirects += 1,
            }
            hop = match hop.follow(status, response.headers()) {
                Ok(next) => next,
                Err(reason) => return Outcome::dead(format!("{} {reason}", answered(&host, status))),
            };
        }
    }

    async fn finish(&self, host: &str, response: Response<Incoming>, request: &Request) -> Outcome {
        let (head, body) = response.into_parts();
        // Do not read more than fits into the output.
        let max_bytes = request.max_body_bytes.min(self.output_max_bytes);
        match read(body, max_bytes).await {
            Ok(body) => {
                let output = output(head.status, &head.headers, &body, self.output_max_bytes);
                Outcome::done(&output).unwrap_or_else(|error| Outcome::dead(format!("http: {error}")))
            }
            Err(error) => failure(host, &error),
        }
    }
}

#[async_trait]
impl RawHandler for Http {
    async fn call(&self, context: Context) -> Outcome {
        let started = Instant::now();
        let outcome = self.run(&context).await;
        if let Some(times) = &self.times {
            times.note(Ended::of(&outcome), started.elapsed());
        }
        outcome
    }
}

impl Http {
    async fn run(&self, context: &Context) -> Outcome {
        let prepared = Request::from_payload(context.payload())
            .and_then(|request| self.first_hop(&request, context).map(|hop| (request, hop)));
        let (request, hop) = match prepared {
            Ok(prepared) => prepared,
            Err(reason) => return Outcome::dead(format!("http: {reason}")),
        };
        let host = hop.url.authority();
        unless_cancelled(context.cancelled(), async {
            let exchange = self.exchange(hop, &request);
            tokio::time::timeout(request.timeout, exchange).await.unwrap_or_else(|_| {
                let limit_ms = request.timeout.as_millis();
                Outcome::retry(format!(
                    "http: {host} timed out: no whole answer within timeout_ms ({limit_ms})"
                ))
            })
        })
        .await
    }
}

fn message(hop: &Hop) -> Result<http::Request<Full<Bytes>>, http::Error> {
    let mut message = http::Request::new(Full::new(hop.body.clone()));
    *message.method_mut() = hop.method.clone();
    *message.uri_mut() = hop.url.to_uri()?;
    *message.headers_mut() = hop.headers.map.clone();
    Ok(message)
}

/// Reads at most `max_bytes`; the rest of a longer body is never fetched.
async fn read(mut body: Incoming, max_bytes: usize) -> Result<Body, hyper::Error> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room_bytes = max_bytes - bytes.len();
        if let Some(fitting) = data.get(..room_bytes).filter(|_| data.len() > room_bytes) {
            bytes.extend_from_slice(fitting);
            return Ok(Body { bytes: bytes.freeze(), truncated: true });
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Body { bytes: bytes.freeze(), truncated: false })
}

fn answered(host: &str, status: StatusCode) -> String {
    format!("http: {host} answered {status}")
}

fn postponed(host: &str, response: &Response<Incoming>) -> Outcome {
    let error = answered(host, response.status());
    match retry_after(response.headers(), SystemTime::now()) {
        Some(wait) => Outcome::retry_after(wait, error),
        None => Outcome::retry(error),
    }
}

/// The outcome of a request without an answer: dead for a refused target, a retry for anything else.
fn failure(host: &str, error: &(dyn StdError + 'static)) -> Outcome {
    let mut deepest = error;
    loop {
        match deepest.downcast_ref::<connect::Error>() {
            Some(connect::Error::Refused(refused)) => {
                return Outcome::dead(format!("http: {host}: {refused}"));
            }
            Some(error) => return Outcome::retry(format!("http: {host}: {error}")),
            None => match deepest.source() {
                Some(source) => deepest = source,
                None => return Outcome::retry(format!("http: {host}: {deepest}")),
            },
        }
    }
}
