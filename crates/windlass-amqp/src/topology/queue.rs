//! The declaration of a queue.

use lapin::{
    options::QueueDeclareOptions,
    types::{AMQPValue, FieldTable, LongString},
};

use super::{Binding, Exchange};
use crate::Error;

/// How the broker stores a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// On one node.
    Classic,
    /// Replicated; counts how often a message was delivered.
    Quorum,
}

/// Where rejected messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeadLetters {
    exchange: String,
    routing_key: String,
    /// Whether exchange and queue are declared together with this queue.
    is_own: bool,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub(crate) name: String,
    pub(crate) kind: QueueKind,
    is_durable: bool,
    is_auto_delete: bool,
    pub(crate) is_single_active: bool,
    delivery_limit: Option<u32>,
    dead_letters: Option<DeadLetters>,
}

impl Queue {
    fn new(name: impl Into<String>, kind: QueueKind, is_durable: bool) -> Self {
        Self {
            name: name.into(),
            kind,
            is_durable,
            is_auto_delete: false,
            is_single_active: false,
            delivery_limit: None,
            dead_letters: None,
        }
    }

    /// A classic queue that survives a restart of the broker, as do its persistent messages.
    pub fn durable(name: impl Into<String>) -> Self {
        Self::new(name, QueueKind::Classic, true)
    }

    /// A quorum queue: replicated, durable, and it counts deliveries.
    pub fn quorum(name: impl Into<String>) -> Self {
        Self::new(name, QueueKind::Quorum, true)
    }

    /// A classic queue that is lost when the broker restarts or its last consumer leaves.
    pub fn transient(name: impl Into<String>) -> Self {
        Self { is_auto_delete: true, ..Self::new(name, QueueKind::Classic, false) }
    }

    /// Rejected messages go to queue `NAME.dead` through exchange `NAME.dlx`, which are declared together
    /// with this queue.
    #[must_use]
    pub fn with_dead_letters(mut self) -> Self {
        let exchange = format!("{}.dlx", self.name);
        self.dead_letters = Some(DeadLetters { exchange, routing_key: self.name.clone(), is_own: true });
        self
    }

    /// Rejected messages go to this exchange with this routing key; declare both elsewhere.
    #[must_use]
    pub fn dead_letters_to(mut self, exchange: impl Into<String>, routing_key: impl Into<String>) -> Self {
        let (exchange, routing_key) = (exchange.into(), routing_key.into());
        self.dead_letters = Some(DeadLetters { exchange, routing_key, is_own: false });
        self
    }

    /// The broker itself gives up a message after this many returns, also one that ended its consumer's
    /// process. Quorum queues only.
    #[must_use]
    pub fn delivery_limit(mut self, returns: u32) -> Self {
        self.delivery_limit = Some(returns);
        self
    }

    /// The dead-letter declarations of this queue.
    pub(super) fn dead_letters(&self) -> Option<(Exchange, Self, Binding)> {
        let letters = self.dead_letters.as_ref().filter(|letters| letters.is_own)?;
        let queue = Self::new(format!("{}.dead", self.name), self.kind, true);
        let binding = Binding::new(&letters.exchange, &queue.name, &letters.routing_key);
        Some((Exchange::direct(&letters.exchange), queue, binding))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.delivery_limit.is_some() && self.kind == QueueKind::Classic {
            let name = &self.name;
            let reason =
                format!("queue {name:?} has a delivery limit: only a quorum queue counts deliveries");
            return Err(Error::Declaration(reason));
        }
        Ok(())
    }

    pub(crate) fn options(&self) -> QueueDeclareOptions {
        QueueDeclareOptions {
            durable: self.is_durable,
            auto_delete: self.is_auto_delete,
            ..QueueDeclareOptions::default()
        }
    }

    pub(crate) fn arguments(&self) -> FieldTable {
        let mut arguments = FieldTable::default();
        let mut set = |name: &'static str, value| {
            arguments.insert(name.into(), value);
        };
        let text = |text: &str| AMQPValue::LongString(LongString::from(text));
        // A classic queue carries no type, so that it equals older declarations.
        if self.kind == QueueKind::Quorum {
            set("x-queue-type", text("quorum"));
        }
        if self.is_single_active {
            set("x-single-active-consumer", AMQPValue::Boolean(true));
        }
        if let Some(limit) = self.delivery_limit {
            set("x-delivery-limit", AMQPValue::LongLongInt(i64::from(limit)));
        }
        if let Some(letters) = &self.dead_letters {
            set("x-dead-letter-exchange", text(&letters.exchange));
            set("x-dead-letter-routing-key", text(&letters.routing_key));
        }
        arguments
    }
}
