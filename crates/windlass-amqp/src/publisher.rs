//! Publishing with confirms: the message is in a queue, or the caller gets an error.

mod message;

use std::{fmt, sync::Arc, time::Duration};

use lapin::{
    BasicProperties, Channel, Confirmation, Connection,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};
use windlass::trace::{Begun, TraceContext, Tracer};

pub use self::message::Message;
use crate::{
    Error,
    backoff::backoff,
    connection::{Link, short},
    span,
};

/// Settings of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherOptions {
    /// How often one message may be sent, the first time included; a lost connection or a missing answer
    /// costs one attempt.
    pub attempts: u32,
    /// How long the broker may take to confirm a message that was sent.
    pub confirm_within: Duration,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self { attempts: 3, confirm_within: Duration::from_secs(10) }
    }
}

/// Publishes messages and waits until the broker has them. Cheap to clone; clones share one channel.
#[derive(Clone)]
pub struct Publisher {
    link: Arc<Link>,
    options: PublisherOptions,
    tracer: Option<Tracer>,
    open: Arc<Mutex<Option<Channel>>>,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>, options: PublisherOptions, tracer: Option<Tracer>) -> Self {
        Self { link, options, tracer, open: Arc::default() }
    }

    /// Sends a message and waits until the broker confirms that a queue has it.
    ///
    /// A message that is sent again after a lost confirm may be in the queue twice, under the same message
    /// id. If the caller cancels the call, the message may or may not be in the queue.
    ///
    /// # Errors
    /// [`Error::Unroutable`] if no queue takes it; [`Error::Blocked`] if the broker is short of memory or
    /// disk; [`Error::Unreachable`] or [`Error::Unconfirmed`] when all attempts are spent.
    pub async fn publish(&self, exchange: &str, routing_key: &str, message: &Message) -> Result<(), Error> {
        let span = self.tracer.as_ref().and_then(|tracer| tracer.begin(message.parent()));
        let trace = span.as_ref().map(Begun::context);
        let published = self.publish_in(trace, exchange, routing_key, message).await;
        if let Some(span) = span {
            let failure = published.is_err().then_some("the broker did not take the message");
            span::published(span, exchange, routing_key, message.known_id(), failure);
        }
        published
    }

    /// Sends the message with this place in a trace, in up to `attempts` attempts.
    async fn publish_in(
        &self,
        trace: Option<TraceContext>,
        exchange: &str,
        routing_key: &str,
        message: &Message,
    ) -> Result<(), Error> {
        let properties = message.properties(trace)?;
        let mut backoff = backoff();
        let mut left = self.options.attempts.max(1);
        loop {
            left -= 1;
            match self.send(exchange, routing_key, message, &properties).await {
                Err(error @ (Error::Unreachable { .. } | Error::Unconfirmed(_))) if left > 0 => {
                    tracing::warn!(%error, left, "a message is sent again");
                    sleep(backoff.next()).await;
                }
                result => return result,
            }
        }
    }

    async fn send(
        &self,
        exchange: &str,
        routing_key: &str,
        message: &Message,
        properties: &BasicProperties,
    ) -> Result<(), Error> {
        let limit = self.options.confirm_within;
        let connection = self.link.connection().await?;
        if connection.status().blocked() {
            return Err(Error::Blocked { sent: "was not sent" });
        }
        let channel = match timeout(limit, self.channel(&connection)).await {
            Ok(opened) => opened?,
            Err(_) if connection.status().blocked() => return Err(Error::Blocked { sent: "was not sent" }),
            Err(_) => {
                let reason = format!("no channel within {limit:?}");
                return Err(Error::Unreachable { address: self.link.address(), reason });
            }
        };
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let (to, key, properties) = (short(exchange)?, short(routing_key)?, properties.clone());
        let confirmed = async {
            let sent = channel.basic_publish(to, key, options, message.body(), properties).await?;
            sent.await
        };
        match timeout(limit, confirmed).await {
            Err(_) if connection.status().blocked() => {
                Err(Error::Blocked { sent: "may be kept once it recovers" })
            }
            Err(_) => {
                // Its late confirm must not be taken for that of the next message, which gets a new channel.
                self.forget(&channel).await;
                Err(Error::Unconfirmed(limit))
            }
            Ok(Err(error)) => Err(self.link.lost("a message", &error)),
            Ok(Ok(Confirmation::Ack(None))) => Ok(()),
            Ok(Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)))) => {
                Err(Error::Unroutable { exchange: exchange.to_owned(), routing_key: routing_key.to_owned() })
            }
            Ok(Ok(Confirmation::Nack(None) | Confirmation::NotRequested)) => Err(Error::Refused {
                what: "a message".to_owned(),
                reason: "it could not keep it".to_owned(),
            }),
        }
    }

    /// The channel in confirm mode; opened if there is none. Confirms belong to their channel, so none is
    /// carried over to another.
    async fn channel(&self, connection: &Connection) -> Result<Channel, Error> {
        let mut held = self.open.lock().await;
        if let Some(channel) =
            held.as_ref().filter(|channel| channel.status().connected() && connection.status().connected())
        {
            return Ok(channel.clone());
        }
        let channel = self.link.channel().await?;
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        confirms.await.map_err(|error| self.link.lost("confirms", &error))?;
        *held = Some(channel.clone());
        Ok(channel)
    }

    /// Drops the channel, unless another caller has replaced it already; the next message opens a new one.
    async fn forget(&self, channel: &Channel) {
        let mut held = self.open.lock().await;
        if held.as_ref().is_some_and(|held| held.id() == channel.id()) {
            *held = None;
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("link", &self.link)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
