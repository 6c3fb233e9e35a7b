//! What the server sends to a worker, in messages of a size that standard clients accept. A stream that its
//! worker does not read is ended.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::sync::mpsc;
use tonic::{Status, codegen::tokio_stream::Stream};
use windlass_proto::v1::{self, work_down::Message};

use super::member::Down;
use crate::{
    api::{ErrorCode, ErrorDetail},
    grpc::status,
};

/// Bytes of payloads in one message, approximately: standard clients accept messages of up to 4 MB.
const MESSAGE_BYTES: usize = 1 << 20;

/// The messages for one worker; the sending side of its stream.
pub(crate) struct Downstream(Arc<Mutex<Queue>>);

/// The same queue, to check whether it moves. Flow control suspends the sender for as long as the worker does
/// not read, so the sender cannot check this itself.
pub(in crate::grpc) struct Reader(Arc<Mutex<Queue>>);

struct Queue {
    told: mpsc::Receiver<Down>,
    ready: VecDeque<v1::WorkDown>,
    /// How often the stream was polled.
    asked: u64,
    /// The status that ends the stream.
    end: Option<Status>,
}

impl Downstream {
    pub(in crate::grpc) fn new(told: mpsc::Receiver<Down>) -> (Self, Reader) {
        let queue = Queue { told, ready: VecDeque::new(), asked: 0, end: None };
        let queue = Arc::new(Mutex::new(queue));
        (Self(Arc::clone(&queue)), Reader(queue))
    }
}

impl Drop for Downstream {
    /// The worker is gone: closes the channel, so that the hub's next send fails.
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Reader {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when a message has waited for at least `max`, and at most twice that, without a poll of the
    /// stream. The queue is emptied. If the worker reads again, it gets the reason.
    pub(in crate::grpc) async fn stalled(&self, max: Duration) {
        let mut seen = None;
        loop {
            tokio::time::sleep(max).await;
            let mut queue = self.queue();
            let now = queue.waits().then_some(queue.asked);
            if now.is_some() && now == seen {
                let message = format!("the stream was not read for {} s", max.as_secs());
                queue.clear();
                queue.end = Some(status(ErrorDetail::new(ErrorCode::Timeout, message)));
                return;
            }
            seen = now;
        }
    }
}

impl Queue {
    fn waits(&self) -> bool {
        !self.ready.is_empty() || !self.told.is_empty()
    }

    fn clear(&mut self) {
        self.told.close();
        while self.told.try_recv().is_ok() {}
        self.ready = VecDeque::new();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<v1::WorkDown, Status>>> {
        self.asked += 1;
        loop {
            if let Some(end) = self.end.take() {
                return Poll::Ready(Some(Err(end)));
            }
            if let Some(message) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            match ready!(self.told.poll_recv(cx)) {
                None => return Poll::Ready(None),
                Some(Down::Refused(status)) => return Poll::Ready(Some(Err(status))),
                Some(Down::Message(message)) => {
                    self.ready.push_back(v1::WorkDown { message: Some(*message) });
                }
                Some(Down::Tasks(parcel)) => {
                    let (mut batch, mut bytes) = (Vec::new(), 0);
                    for task in parcel.open() {
                        bytes += task.payload.len();
                        batch.push(task.into());
                        if bytes > MESSAGE_BYTES {
                            bytes = 0;
                            self.ready.push_back(message(std::mem::take(&mut batch)));
                        }
                    }
                    if !batch.is_empty() {
                        self.ready.push_back(message(batch));
                    }
                }
            }
        }
    }
}

impl Stream for Downstream {
    type Item = Result<v1::WorkDown, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).poll(cx)
    }
}

fn message(tasks: Vec<v1::ClaimedTask>) -> v1::WorkDown {
    v1::WorkDown { message: Some(Message::Tasks(v1::work_down::Tasks { tasks })) }
}

#[cfg(test)]
mod tests {
    use tonic::{Code, codegen::tokio_stream::StreamExt};

    use super::*;

    const MAX: Duration = Duration::from_secs(30);

    fn cancellation() -> Down {
        Down::Message(Box::new(Message::Cancel(v1::Cancellation::default())))
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_stream_ends_with_the_reason() {
        let (down, told) = mpsc::channel(16);
        let (mut stream, reader) = Downstream::new(told);
        for _ in 0..3 {
            down.try_send(cancellation()).unwrap();
        }
        stream.next().await.unwrap().unwrap();
        let start = tokio::time::Instant::now();
        reader.stalled(MAX).await;
        assert_eq!(start.elapsed(), 2 * MAX);
        assert!(down.is_closed() && !reader.queue().waits());
        let end = stream.next().await.unwrap().unwrap_err();
        assert_eq!((end.code(), end.message()), (Code::DeadlineExceeded, "the stream was not read for 30 s"));
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_dropped_stream_takes_nothing_while_it_is_watched() {
        let (down, told) = mpsc::channel(16);
        let (stream, reader) = Downstream::new(told);
        down.try_send(cancellation()).unwrap();
        drop(stream);
        down.closed().await;
        assert!(!reader.queue().waits());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_or_idle_stream_stays_open() {
        let (down, told) = mpsc::channel(16);
        let (mut stream, reader) = Downstream::new(told);
        let slow = async {
            tokio::time::sleep(20 * MAX).await;
            for _ in 0..16 {
                down.try_send(cancellation()).unwrap();
            }
            for _ in 0..16 {
                tokio::time::sleep(Duration::from_secs(29)).await;
                stream.next().await.unwrap().unwrap();
            }
            tokio::time::sleep(20 * MAX).await;
        };
        tokio::select! {
            () = reader.stalled(MAX) => panic!("given up"),
            () = slow => {}
        }
    }
}
