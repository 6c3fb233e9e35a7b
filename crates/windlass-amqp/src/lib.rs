//! RabbitMQ consumers and publishers on the pool of Windlass.
//!
//! ```no_run
//! # use std::{io, time::Duration};
//! use windlass_amqp::{Consumer, Consumers, Queue};
//!
//! #[derive(serde::Deserialize)]
//! struct Order { id: u64 }
//!
//! async fn on_order(order: Order) -> Result<(), io::Error> {
//!     // An error goes to the dead letters; a panic affects only this delivery.
//!     println!("order {}", order.id);
//!     Ok(())
//! }
//!
//! # async fn run() -> Result<(), windlass_amqp::Error> {
//! let consumers = Consumers::connect("amqp://127.0.0.1")
//!     .queue(Queue::durable("orders").with_dead_letters())
//!     // By default CPUs × 4 workers, with a prefetch to match.
//!     .consume(Consumer::new("orders", on_order).event_type("order.created"))
//!     .start().await?;
//!
//! // The report reads like `12 drained, 0 cancelled, 0 aborted`.
//! let report = consumers.stop(Duration::from_secs(30)).await;
//! # drop(report);
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: [`Topology`] is what is declared. [`Consumers`] starts one task per [`Consumer`], which
//! runs one *session* after another, each with its own channel. A session gives deliveries to the pool and
//! sends their answers through its *ledger*. Nothing of a session outlives its channel, so no answer can
//! reach another channel.

mod backoff;
mod bridge;
mod connection;
mod consumer;
mod consumers;
mod error;
mod inspect;
mod meters;
mod publisher;
mod session;
mod span;
mod topology;

pub use bridge::{
    Bridge, NameFrom,
    sink::{Enqueuing, SharedSink, Sink},
};
#[doc(hidden)]
pub use consumer::footprint::Footprint;
pub use consumer::{
    Consumer,
    delivery::Delivery,
    handler::MessageHandler,
    sizing::{SharedPool, Sizes, cpus, shared_pool, sizes},
};
pub use consumers::{Consumers, Handle, Running};
pub use error::Error;
pub use inspect::{QueueFigures, inspect};
pub use meters::{ConsumerFigures, State};
pub use publisher::{Message, Publisher, PublisherOptions};
pub use session::decision::Redelivery;
pub use topology::{Binding, Exchange, ExchangeKind, Queue, QueueKind, Topology};

/// Compiles the examples of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/guides/rabbitmq.md")]
    struct RabbitMq;
}
