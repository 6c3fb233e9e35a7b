//! Requests to the writer, and the bounded queue in which they wait.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::oneshot;
use windlass_core::{Error, Result};

use crate::tx::{Failure, Step, Tx};

/// Most requests that wait for the writer. Beyond it a caller is told at once (BOUNDED).
pub(crate) const QUEUE_MAX: usize = 4096;

/// Who goes first when the writer is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Leases, claims and settlements: what workers wait for.
    Control,
    /// Enqueue, cancel, retry, pause: what clients wait for.
    Client,
    /// Due tasks, expiry, retention.
    Maintenance,
}

/// What an acknowledged request must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// A power cut.
    Durable,
    /// The end of the process: a lost write is as if the request had never been made.
    Relaxed,
    /// Nothing: it does not write.
    Read,
}

/// A request that the writer can run, and run again if its transaction was rolled back.
pub(crate) trait Request: Send {
    fn class(&self) -> Class;
    fn sync(&self) -> Sync;
    /// Runs it and keeps the answer. `Broken` asks for a rollback of the transaction.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), rusqlite::Error>;
    /// Sends the answer that was kept.
    fn answer(self: Box<Self>);
    /// Sends an error instead.
    fn fail(self: Box<Self>, error: Error);
}

/// A request made of a closure and the place for its answer.
pub(crate) struct Call<T, F> {
    class: Class,
    sync: Sync,
    work: F,
    kept: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Call<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
{
    /// A request and where its answer will come.
    pub(crate) fn pair(
        class: Class,
        sync: Sync,
        work: F,
    ) -> (Box<dyn Request>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { class, sync, work, kept: None, reply }), answer)
    }
}

impl<T, F> Request for Call<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
{
    fn class(&self) -> Class {
        self.class
    }

    fn sync(&self) -> Sync {
        self.sync
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), rusqlite::Error> {
        self.kept = None;
        self.kept = Some(match (self.work)(tx) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Broken(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>) {
        if let Some(kept) = self.kept {
            // Nobody to tell is no failure: the caller went away.
            let _ = self.reply.send(kept);
        }
    }

    fn fail(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error));
    }
}

/// Requests in the order in which they are served.
#[derive(Default)]
pub(crate) struct Waiting {
    pub control: VecDeque<Box<dyn Request>>,
    pub client: VecDeque<Box<dyn Request>>,
    pub maintenance: VecDeque<Box<dyn Request>>,
    closed: Option<Error>,
}

impl Waiting {
    /// The next request, control first.
    pub(crate) fn pop(&mut self) -> Option<Box<dyn Request>> {
        self.control.pop_front().or_else(|| self.client.pop_front()).or_else(|| self.maintenance.pop_front())
    }

    /// Every request, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Request> {
        self.control.iter().chain(&self.client).chain(&self.maintenance).map(AsRef::as_ref)
    }

    fn len(&self) -> usize {
        self.control.len() + self.client.len() + self.maintenance.len()
    }

    fn append(&mut self, other: &mut Self) {
        self.control.append(&mut other.control);
        self.client.append(&mut other.client);
        self.maintenance.append(&mut other.maintenance);
    }
}

/// The queue between callers and the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// Requests of each sort that wait, readable without the lock.
    pub control_len: AtomicUsize,
    pub client_len: AtomicUsize,
}

impl Queue {
    /// Adds a request, or answers it at once if the queue is full or closed.
    pub(crate) fn push(&self, request: Box<dyn Request>) {
        let mut waiting = self.lock();
        if let Some(error) = waiting.closed.clone() {
            drop(waiting);
            return request.fail(error);
        }
        if waiting.len() >= QUEUE_MAX {
            drop(waiting);
            return request
                .fail(Error::Unavailable(format!("{QUEUE_MAX} requests wait already; try again later")));
        }
        match request.class() {
            Class::Control => {
                waiting.control.push_back(request);
                self.control_len.store(waiting.control.len(), Ordering::Relaxed);
            }
            Class::Client => {
                waiting.client.push_back(request);
                self.client_len.store(waiting.client.len(), Ordering::Relaxed);
            }
            Class::Maintenance => waiting.maintenance.push_back(request),
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Waits until something is there, then moves all of it behind what the writer already has. False once
    /// the queue is closed and empty.
    pub(crate) fn take_all(&self, into: &mut Waiting, wait: Wait) -> bool {
        let mut waiting = self.lock();
        while wait == Wait::Yes && waiting.len() == 0 && waiting.closed.is_none() {
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        into.append(&mut waiting);
        self.control_len.store(0, Ordering::Relaxed);
        self.client_len.store(0, Ordering::Relaxed);
        waiting.closed.is_none() || into.len() > 0
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().len() == 0
    }

    /// Refuses every later request with this error; those that wait are still served.
    pub(crate) fn close(&self, error: Error) {
        let mut waiting = self.lock();
        waiting.closed.get_or_insert(error);
        drop(waiting);
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether to wait for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Yes,
    No,
}
