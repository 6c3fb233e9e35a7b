//! From a URL to a connection: resolve the name, check every address, connect to a checked one, TLS.
//!
//! The client keeps idle connections by scheme, host and port. So a connection is only reused for the host
//! whose addresses were checked when it was made, under the same policy.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use async_trait::async_trait;
use http::{Uri, uri::Scheme};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    proxy::Proxies,
    target::{Policy, Refused},
    tls::Tls,
    url::Host,
};

/// Most addresses of one host to try.
const ADDRESSES_MAX: usize = 8;
/// How long to try an address while there is another one. The last one has the task's time limit.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(3);

/// Turns a host name into addresses.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of a name, best first.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Opens connections.
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// Connects to exactly this address.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;
}

/// A connection in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Refused(Refused),
    #[error("the host {0}")]
    Host(String),
    #[error("the name was not resolved: {0}")]
    Resolve(io::Error),
    #[error("no connection: {0}")]
    Connect(io::Error),
    #[error("TLS failed: {0}")]
    Tls(io::Error),
}

/// A connector for the HTTP client that enforces the policy for targets.
#[derive(Clone)]
pub(crate) struct CheckedConnector(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) policy: Policy,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) tls: Tls,
    pub(crate) proxies: Proxies,
}

impl CheckedConnector {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl tower_service::Service<Uri> for CheckedConnector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let parts = Arc::clone(&self.0);
        Box::pin(async move { parts.establish(&uri).await.map(TokioIo::new) })
    }
}

impl Parts {
    async fn establish(&self, uri: &Uri) -> Result<Box<dyn Stream>, Error> {
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let host = Host::parse(uri.host().unwrap_or_default()).map_err(Error::Host)?;
        let addresses = self.checked_addresses(&host).await?;
        let stream = self.reach(&host, &addresses, port, is_secure).await.map_err(Error::Connect)?;
        if is_secure { self.tls.wrap(&host, stream).await.map_err(Error::Tls) } else { Ok(stream) }
    }

    /// The addresses of a host that the policy allows; an error only if there is none.
    async fn checked_addresses(&self, host: &Host) -> Result<Vec<IpAddr>, Error> {
        let found = match host {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name).await.map_err(Error::Resolve)?,
        };
        let mut refusal = None;
        let mut checked = Vec::new();
        for address in found {
            match self.policy.check(address) {
                Ok(address) => checked.push(address),
                Err(refused) => {
                    refusal.get_or_insert(refused);
                }
            }
        }
        match (checked.is_empty(), refusal) {
            (false, _) => Ok(checked),
            (true, Some(refused)) => Err(Error::Refused(refused)),
            (true, None) => Err(Error::Resolve(io::Error::other("it has no address"))),
        }
    }

    /// Connects to the first address that answers.
    async fn reach(
        &self,
        host: &Host,
        addresses: &[IpAddr],
        port: u16,
        is_secure: bool,
    ) -> io::Result<Box<dyn Stream>> {
        let mut rest = addresses.iter().take(ADDRESSES_MAX).peekable();
        let mut last_error = io::Error::other("there is no address to connect to");
        while let Some(address) = rest.next() {
            let opening = self.open(host, SocketAddr::new(*address, port), is_secure);
            let result = if rest.peek().is_none() {
                opening.await
            } else {
                tokio::time::timeout(NEXT_ADDRESS_AFTER, opening)
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            };
            match result {
                Ok(stream) => return Ok(stream),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    async fn open(&self, host: &Host, address: SocketAddr, is_secure: bool) -> io::Result<Box<dyn Stream>> {
        match self.proxies.for_target(host, address.ip(), is_secure) {
            Some(proxy) => proxy.tunnel(address, &*self.resolver, &*self.connector).await,
            None => self.connector.connect(address).await,
        }
    }
}
