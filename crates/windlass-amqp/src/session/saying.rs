//! Frames on their way to the broker. While some are written the next ones gather, and deliveries are taken and started.

use std::{future::poll_fn, pin::Pin, task::Poll};

use lapin::{
    Channel,
    options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions},
};

use crate::ledger::Frame;

/// What was written, or why it could not be.
pub type Said = Result<Vec<Frame>, String>;

/// At most one batch of frames is under way.
#[derive(Default)]
pub struct Saying {
    writing: Option<Pin<Box<dyn Future<Output = Said> + Send>>>,
}

impl Saying {
    pub fn is_busy(&self) -> bool {
        self.writing.is_some()
    }

    /// Begins with a batch; nothing is under way. It goes on when it is looked at.
    pub fn begin(&mut self, channel: &Channel, frames: Vec<Frame>) {
        self.writing = Some(Box::pin(write(channel.clone(), frames)));
    }

    /// Looks whether the batch is written; whoever looks is woken when it is.
    pub async fn look(&mut self) -> Option<Said> {
        let writing = self.writing.as_mut()?;
        let said = poll_fn(|cx| match writing.as_mut().poll(cx) {
            Poll::Ready(said) => Poll::Ready(Some(said)),
            Poll::Pending => Poll::Ready(None),
        });
        let said = said.await;
        if said.is_some() {
            self.writing = None;
        }
        said
    }

    /// Waits until the batch is written; for ever if there is none. Cancel safe.
    pub async fn written(&mut self) -> Said {
        let Some(writing) = self.writing.as_mut() else { return std::future::pending().await };
        let said = writing.await;
        self.writing = None;
        said
    }
}

async fn write(channel: Channel, frames: Vec<Frame>) -> Said {
    for frame in &frames {
        let written = match *frame {
            Frame::AckUpTo(tag) => channel.basic_ack(tag, BasicAckOptions { multiple: true }).await,
            Frame::Ack(tag) => channel.basic_ack(tag, BasicAckOptions { multiple: false }).await,
            Frame::Reject(tag) => channel.basic_reject(tag, BasicRejectOptions { requeue: false }).await,
            Frame::Requeue(tag) => {
                channel.basic_nack(tag, BasicNackOptions { multiple: false, requeue: true }).await
            }
        };
        written.map_err(|error| error.to_string())?;
    }
    Ok(frames)
}
