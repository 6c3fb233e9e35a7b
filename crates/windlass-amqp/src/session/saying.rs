//! Writes frames to the broker. While a batch is being written, the next one collects, and deliveries are
//! still taken and started.

use std::{future::poll_fn, pin::Pin, task::Poll};

use lapin::{
    Channel,
    options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions},
};

use crate::session::ledger::Frame;

/// The frames that were written, or why they were not.
pub type Said = Result<Vec<Frame>, String>;

/// At most one batch of frames is being written.
#[derive(Default)]
pub struct Saying {
    writing: Option<Pin<Box<dyn Future<Output = Said> + Send>>>,
}

impl Saying {
    pub fn is_busy(&self) -> bool {
        self.writing.is_some()
    }

    /// Starts to write a batch; no other may be under way. The write continues when it is polled.
    pub fn begin(&mut self, channel: &Channel, frames: Vec<Frame>) {
        self.writing = Some(Box::pin(write(channel.clone(), frames)));
    }

    /// Polls the write once; the calling task is woken when the write can continue.
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
