//! The network of this machine.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use async_trait::async_trait;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::Semaphore,
};

use super::connect::{Connector, Resolver, Stream};

/// Most names that are looked up at once. Each look-up holds a thread of the runtime's blocking pool, and a
/// name server that does not answer must not take them all.
const LOOKUPS_MAX: usize = 64;

/// The operating system's resolver.
pub(crate) struct SystemResolver {
    lookups: Semaphore,
}

impl SystemResolver {
    pub(crate) fn new() -> Self {
        Self { lookups: Semaphore::new(LOOKUPS_MAX) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let _permit = self.lookups.acquire().await.map_err(io::Error::other)?;
        Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// TCP.
pub(crate) struct SystemConnector;

#[async_trait]
impl Connector for SystemConnector {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        // A request is written in one piece: waiting for more data would only add latency.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
