//! Publishing with confirms: a message is there, or the caller knows that it is not.

mod message;

use std::{sync::Arc, time::Duration};

use lapin::{
    Channel, Confirmation, Connection,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

pub use self::message::Message;
use crate::{
    Error,
    backoff::Backoff,
    connection::{Link, short},
};

/// How a publisher behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherOptions {
    /// Sendings of one message, the first included; a lost connection or an answer that does not come costs one.
    pub attempts: u32,
    /// How long the broker may take to confirm one sending.
    pub confirm_within: Duration,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self { attempts: 3, confirm_within: Duration::from_secs(10) }
    }
}

/// Publishes messages and waits until the broker has them. Cheap to clone; clones share one channel.
#[derive(Debug, Clone)]
pub struct Publisher {
    link: Arc<Link>,
    options: PublisherOptions,
    open: Arc<Mutex<Option<Open>>>,
}

/// A channel in confirm mode with its connection. Confirms belong to the channel they came on, so none outlives it.
#[derive(Debug, Clone)]
struct Open {
    channel: Channel,
    connection: Arc<Connection>,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>, options: PublisherOptions) -> Self {
        Self { link, options, open: Arc::default() }
    }

    /// Sends a message and waits until the broker confirms that a queue has it.
    ///
    /// A message that is sent again after a lost confirm may be there twice, under the same message id. Cancelling the call
    /// leaves open whether it is there.
    ///
    /// # Errors
    /// [`Error::Unroutable`] if no queue takes it; [`Error::Blocked`] if the broker is short of memory or disk;
    /// [`Error::Unreachable`] or [`Error::Unconfirmed`] when all attempts are spent.
    pub async fn publish(&self, exchange: &str, routing_key: &str, message: &Message) -> Result<(), Error> {
        let mut backoff = Backoff::default();
        let mut left = self.options.attempts.max(1);
        loop {
            left -= 1;
            match self.send(exchange, routing_key, message).await {
                Err(error @ (Error::Unreachable { .. } | Error::Unconfirmed(_))) if left > 0 => {
                    tracing::warn!(%error, left, "a message is sent again");
                    sleep(backoff.after(Duration::ZERO)).await;
                }
                result => return result,
            }
        }
    }

    async fn send(&self, exchange: &str, routing_key: &str, message: &Message) -> Result<(), Error> {
        let Open { channel, connection } = self.open().await?;
        if connection.status().blocked() {
            return Err(Error::Blocked { sent: "was not sent" });
        }
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let (to, key, properties) = (short(exchange)?, short(routing_key)?, message.properties()?);
        let confirmed = async {
            let sent = channel.basic_publish(to, key, options, message.body(), properties).await?;
            sent.await
        };
        match timeout(self.options.confirm_within, confirmed).await {
            Err(_) if connection.status().blocked() => {
                Err(Error::Blocked { sent: "may be kept once it recovers" })
            }
            Err(_) => Err(Error::Unconfirmed(self.options.confirm_within)),
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

    /// The channel, opened if there is none.
    async fn open(&self) -> Result<Open, Error> {
        let mut held = self.open.lock().await;
        if let Some(open) = held.as_ref().filter(|open| open.channel.status().connected()) {
            return Ok(open.clone());
        }
        let (connection, channel) = (self.link.connection().await?, self.link.channel().await?);
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        confirms.await.map_err(|error| self.link.lost("confirms", &error))?;
        let open = Open { channel, connection };
        *held = Some(open.clone());
        Ok(open)
    }
}
