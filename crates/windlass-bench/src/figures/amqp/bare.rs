//! Bare lapin: fills the queues, and is the consumer that ours is compared with.

use std::{
    pin::Pin,
    task::Poll,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures_core::Stream as _;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        QueueDeclareOptions, QueueDeleteOptions,
    },
    types::{FieldTable, ShortString},
};

/// Messages sent before their confirms are awaited.
const WINDOW: usize = 1_000;
/// Delivery modes of the protocol.
const TRANSIENT: u8 = 1;
const PERSISTENT: u8 = 2;

/// Whether messages outlive the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    InMemory,
    OnDisk,
}

/// A connection with one channel.
pub(super) struct Bare {
    connection: Connection,
    channel: Channel,
}

impl Bare {
    /// Connects, and turns on publisher confirms.
    pub(super) async fn open(url: &str) -> anyhow::Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self { connection, channel })
    }

    pub(super) async fn declare(&self, queue: &str) -> anyhow::Result<()> {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(queue.into(), options, FieldTable::default()).await?;
        Ok(())
    }

    pub(super) async fn delete(&self, queue: &str) -> anyhow::Result<()> {
        self.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await?;
        Ok(())
    }

    /// Messages that wait.
    pub(super) async fn waiting(&self, queue: &str) -> anyhow::Result<u32> {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        Ok(self.channel.queue_declare(queue.into(), options, FieldTable::default()).await?.message_count())
    }

    /// Publishes bodies and waits until the broker has confirmed every one.
    pub(super) async fn fill(
        &self,
        queue: &str,
        keep: Keep,
        bodies: impl Iterator<Item = Vec<u8>>,
    ) -> anyhow::Result<()> {
        let mode = if keep == Keep::OnDisk { PERSISTENT } else { TRANSIENT };
        let properties = BasicProperties::default().with_delivery_mode(mode);
        let mut under_way = Vec::with_capacity(WINDOW);
        for body in bodies {
            let (to, options) = (ShortString::default(), BasicPublishOptions::default());
            let sent = self.channel.basic_publish(to, queue.into(), options, &body, properties.clone());
            under_way.push(sent.await?);
            if under_way.len() == WINDOW {
                confirmed(&mut under_way).await?;
            }
        }
        confirmed(&mut under_way).await
    }

    /// Takes so many messages. One frame acknowledges all messages that have arrived by then, as a
    /// consumer without handlers would do it. Returns the time from the first to the last ack.
    pub(super) async fn consume(
        &self,
        queue: &str,
        shape: Shape,
        messages: usize,
    ) -> anyhow::Result<Duration> {
        self.channel.basic_qos(shape.prefetch, BasicQosOptions::default()).await?;
        let (tag, options) = (ShortString::from("bare"), BasicConsumeOptions::default());
        let mut stream =
            self.channel.basic_consume(queue.into(), tag, options, FieldTable::default()).await?;
        let (mut began, mut taken) = (None, 0);
        while taken < messages {
            let mut last = next(&mut stream).await?;
            began.get_or_insert_with(Instant::now);
            taken += 1;
            for _ in 1..shape.acks_at_once {
                let Some(delivery) = ready(&mut stream).await? else { break };
                last = delivery;
                taken += 1;
            }
            self.channel.basic_ack(last.delivery_tag, BasicAckOptions { multiple: true }).await?;
        }
        Ok(began.context("no message came")?.elapsed())
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        Ok(self.connection.close(200, "done".into()).await?)
    }
}

/// How a consumer is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) prefetch: u16,
    /// Deliveries that one frame acknowledges at most.
    pub(super) acks_at_once: usize,
}

async fn confirmed(under_way: &mut Vec<lapin::PublisherConfirm>) -> anyhow::Result<()> {
    for confirm in under_way.drain(..) {
        anyhow::ensure!(
            matches!(confirm.await?, Confirmation::Ack(None)),
            "the broker did not keep a message"
        );
    }
    Ok(())
}

async fn next(stream: &mut lapin::Consumer) -> anyhow::Result<lapin::message::Delivery> {
    let next = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await;
    Ok(next.context("the broker ended the subscription")??)
}

/// The next delivery, if it has already arrived.
async fn ready(stream: &mut lapin::Consumer) -> anyhow::Result<Option<lapin::message::Delivery>> {
    let next = std::future::poll_fn(|cx| match Pin::new(&mut *stream).poll_next(cx) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        Poll::Pending => Poll::Ready(None),
    });
    Ok(next.await.flatten().transpose()?)
}
