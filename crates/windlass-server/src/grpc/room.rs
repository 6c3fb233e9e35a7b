//! Room for messages: a large gRPC message counts against the budget of bodies in memory, as an HTTP/JSON
//! body does.
//!
//! ```text
//! bytes ─► head of a message: its length ─► room for all of it ─► its bytes ─► decoded ─► next head
//! ```
//!
//! The length of a message comes before the message, so the server reserves room before it has a buffer. A
//! call keeps its room until it is answered, and is refused if there is none.
//! An open stream gives back the room of a message when it asks for the next one. If there is no room it
//! waits: a broken stream would cost its worker more than a pause.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use hyper::body::Frame;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};
use tonic::Status;

use super::status;
use crate::{
    api::{ErrorCode, ErrorDetail},
    http::{PERMIT_BYTES, Server, enqueue_max_bytes},
};

/// Bytes before each message: whether it is compressed, and its length.
const HEAD_BYTES: usize = 5;
/// Messages up to this size need no room. One HTTP/2 frame is in memory before the server could count it, but
/// the windows of its connection bound it. Heartbeats are this small, and must not wait for large messages of
/// other callers.
const FREE_MAX_BYTES: usize = 16 << 10;

/// Counts the messages that a call sends.
pub(super) async fn count(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let room = Arc::new(Room::default());
    let request = request.map(|body| Body::new(Counted::new(body, &server, Arc::clone(&room))));
    let response = next.run(request).await;
    room.is_answered.store(true, Ordering::Release);
    response
}

/// The room of one call. The body of its request and the task that waits for its answer share it.
#[derive(Default)]
struct Room {
    taken: Mutex<Option<OwnedSemaphorePermit>>,
    is_answered: AtomicBool,
}

impl Room {
    fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Acquire)
    }

    fn keep(&self, more: OwnedSemaphorePermit) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *taken {
            Some(taken) => taken.merge(more),
            None => *taken = Some(more),
        }
    }

    fn give_back(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

type Acquiring = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A body that passes on one message at a time.
struct Counted {
    body: Body,
    room: Arc<Room>,
    budget: Arc<Semaphore>,
    budget_bytes: usize,
    /// Room is not reserved for a larger message: the decoder refuses it before it allocates memory.
    message_max_bytes: usize,
    read_max: Duration,
    /// Received and not passed on yet.
    rest: Bytes,
    /// The beginning of a message's head that came in pieces and has been passed on.
    head: Vec<u8>,
    /// Bytes of the current message that have not been passed on.
    left: usize,
    waiting: Option<Acquiring>,
    /// When the current message must have arrived.
    due: Option<Pin<Box<Sleep>>>,
}

impl Counted {
    fn new(body: Body, server: &Server, room: Arc<Room>) -> Self {
        Self {
            body,
            room,
            budget: Arc::clone(&server.bodies),
            budget_bytes: server.options.bodies_max_bytes,
            message_max_bytes: enqueue_max_bytes(server.operations.store().rules().payload_max_bytes),
            read_max: server.options.body_read_max,
            rest: Bytes::new(),
            head: Vec::new(),
            left: 0,
            waiting: None,
            due: None,
        }
    }

    /// Whether every message that began has been passed on completely.
    fn is_between(&self) -> bool {
        self.left == 0 && self.head.is_empty() && self.rest.is_empty()
    }

    /// Passes on the next part of `rest`, which is not empty.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        if self.left == 0 {
            let missing = HEAD_BYTES.saturating_sub(self.head.len());
            if self.rest.len() < missing {
                self.head.extend_from_slice(&self.rest);
                return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
            }
            let length = self.head.iter().chain(&self.rest).skip(1).take(HEAD_BYTES - 1);
            let length = length.fold(0, |length, byte| length << 8 | usize::from(*byte));
            ready!(self.poll_room(length, cx))?;
            self.head.clear();
            self.left = missing + length;
        }
        let n = self.left.min(self.rest.len());
        self.left -= n;
        Poll::Ready(Ok(self.rest.split_to(n)))
    }

    fn poll_room(&mut self, bytes: usize, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        if bytes <= FREE_MAX_BYTES || bytes > self.message_max_bytes {
            return Poll::Ready(Ok(()));
        }
        let permits = bytes.div_ceil(PERMIT_BYTES) as u32;
        if self.waiting.is_none() {
            if let Ok(room) = Arc::clone(&self.budget).try_acquire_many_owned(permits) {
                self.room.keep(room);
                return Poll::Ready(Ok(()));
            }
            if !self.room.is_answered() || bytes > self.budget_bytes {
                return Poll::Ready(Err(no_room()));
            }
        }
        let budget = &self.budget;
        let waiting =
            self.waiting.get_or_insert_with(|| Box::pin(Arc::clone(budget).acquire_many_owned(permits)));
        let acquired = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        self.room.keep(acquired.map_err(|_| no_room())?);
        Poll::Ready(Ok(()))
    }

    /// Resolves when a message, or the only message of a call, takes too long to arrive.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        if self.is_between() && self.room.is_answered() {
            self.due = None;
            return Poll::Pending;
        }
        let read_max = self.read_max;
        ready!(self.due.get_or_insert_with(|| Box::pin(sleep(read_max))).as_mut().poll(cx));
        let message = format!("the message did not arrive within {} s", read_max.as_secs());
        Poll::Ready(status(ErrorDetail::new(ErrorCode::Timeout, message)))
    }
}

fn no_room() -> Status {
    status(
        ErrorDetail::new(ErrorCode::Unavailable, "too many large requests at once").hint("try again shortly"),
    )
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let me = &mut *self;
        if me.left == 0 && me.head.is_empty() && me.waiting.is_none() {
            me.due = None;
            // A decoder that polls again has finished the message before.
            if me.room.is_answered() {
                me.room.give_back();
            }
        }
        loop {
            if !me.rest.is_empty() {
                let piece = ready!(me.poll_piece(cx));
                return Poll::Ready(Some(piece.map(Frame::data).map_err(Into::into)));
            }
            match Pin::new(&mut me.body).poll_frame(cx) {
                Poll::Pending => return me.poll_late(cx).map(|late| Some(Err(late.into()))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => me.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, StreamBody};
    use tonic::codegen::tokio_stream;

    use super::*;

    /// Messages of these lengths, with their heads, as a stream carries them.
    fn framed(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for length in lengths {
            bytes.push(0);
            bytes.extend_from_slice(&(*length as u32).to_be_bytes());
            bytes.resize(bytes.len() + length, *length as u8);
        }
        bytes
    }

    fn counted(bytes: &[u8], chunk: usize, room: &Arc<Room>, budget: &Arc<Semaphore>) -> Counted {
        let frames: Vec<_> = bytes
            .chunks(chunk)
            .map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(chunk))))
            .collect();
        Counted {
            body: Body::new(StreamBody::new(tokio_stream::iter(frames))),
            room: Arc::clone(room),
            budget: Arc::clone(budget),
            budget_bytes: 30 * PERMIT_BYTES,
            message_max_bytes: 1 << 20,
            read_max: Duration::from_secs(30),
            rest: Bytes::new(),
            head: Vec::new(),
            left: 0,
            waiting: None,
            due: None,
        }
    }

    #[tokio::test]
    async fn bytes_pass_unchanged_in_pieces_of_any_size() {
        let lengths = [0, 1, 20 << 10, 17 << 10, 7, 30 << 10, 0];
        let bytes = framed(&lengths);
        for chunk in [1, 2, 3, 4, 5, 6, 7, 1_000, 16 << 10, bytes.len()] {
            let (room, budget) = (Arc::new(Room::default()), Arc::new(Semaphore::new(30)));
            room.is_answered.store(true, Ordering::Release);
            let mut body = counted(&bytes, chunk, &room, &budget);
            let (mut passed, mut most) = (Vec::new(), 0);
            while let Some(frame) = body.frame().await {
                passed.extend_from_slice(&frame.unwrap().into_data().unwrap());
                most = most.max(30 - budget.available_permits());
            }
            assert!(passed == bytes, "in pieces of {chunk}");
            assert_eq!((most, budget.available_permits()), (30, 30), "in pieces of {chunk}");
        }
    }

    #[tokio::test]
    async fn a_call_keeps_its_room_until_it_is_answered() {
        let (room, budget) = (Arc::new(Room::default()), Arc::new(Semaphore::new(30)));
        let bytes = framed(&[20 << 10]);
        counted(&bytes, 1_000, &room, &budget).collect().await.unwrap();
        assert_eq!(budget.available_permits(), 10, "the body is gone, the call is not");
        let other = counted(&bytes, 1_000, &Arc::default(), &budget).collect().await.unwrap_err();
        assert_eq!(Status::from_error(other).code(), tonic::Code::Unavailable);
        drop(room);
        assert_eq!(budget.available_permits(), 30);
    }

    #[tokio::test]
    async fn a_stream_waits_for_room_only_within_the_budget() {
        let (room, budget) = (Arc::new(Room::default()), Arc::new(Semaphore::new(30)));
        room.is_answered.store(true, Ordering::Release);
        let taken = Arc::clone(&budget).try_acquire_many_owned(20).unwrap();
        let bytes = framed(&[20 << 10]);
        let waiting = tokio::spawn(counted(&bytes, 1_000, &room, &budget).collect());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(taken);
        assert_eq!(waiting.await.unwrap().unwrap().to_bytes().len(), bytes.len());
        let more = framed(&[31 << 10]);
        let never = counted(&more, 1_000, &room, &budget);
        let refused = never.collect().await.unwrap_err();
        assert_eq!(Status::from_error(refused).code(), tonic::Code::Unavailable);
    }
}
