//! The declaration of an exchange.

/// How an exchange chooses the queues of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// By the whole routing key.
    Direct,
    /// Every queue.
    Fanout,
    /// By the words of the routing key.
    Topic,
    /// By headers.
    Headers,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub(crate) name: String,
    pub(crate) kind: ExchangeKind,
    pub(crate) is_durable: bool,
}

impl Exchange {
    /// A durable exchange of a kind.
    pub fn new(name: impl Into<String>, kind: ExchangeKind) -> Self {
        Self { name: name.into(), kind, is_durable: true }
    }

    /// A durable exchange that routes by the whole routing key.
    pub fn direct(name: impl Into<String>) -> Self {
        Self::new(name, ExchangeKind::Direct)
    }

    /// A durable exchange that routes by the words of the routing key.
    pub fn topic(name: impl Into<String>) -> Self {
        Self::new(name, ExchangeKind::Topic)
    }

    /// A durable exchange that routes to every queue bound to it.
    pub fn fanout(name: impl Into<String>) -> Self {
        Self::new(name, ExchangeKind::Fanout)
    }

    /// Lost when the broker restarts.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.is_durable = false;
        self
    }
}
