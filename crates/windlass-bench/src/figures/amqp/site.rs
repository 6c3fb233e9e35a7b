//! The broker of the bench: a private node, or a named broker on which the bench makes its own queues.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use anyhow::Context as _;
use windlass_scratch::Broker;

/// Where the messages go.
pub(super) struct Site {
    url: String,
    /// The private node; it is removed at the end of the bench.
    broker: Option<Arc<Broker>>,
}

impl Site {
    /// The named broker, or a private one.
    pub(super) fn new(url: Option<&str>) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Ok(Self { url: url.to_owned(), broker: None });
        }
        let broker = Broker::start().context("no private RabbitMQ for the bench; name one with --amqp")?;
        Ok(Self { url: broker.url(), broker: Some(Arc::new(broker)) })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The private node.
    pub(super) fn broker(&self) -> anyhow::Result<Arc<Broker>> {
        self.broker.clone().context("only a private broker can be restarted")
    }

    /// A queue name that no other run has.
    pub(super) fn queue() -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        format!("windlass-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
    }
}
