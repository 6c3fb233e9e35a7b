//! Requests to the writer, and the bounded queue in which they wait.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;
use windlass_core::{Error, Result};

use crate::connection::{
    options::Options,
    tx::{Failure, Step, Tx},
};

/// Most requests that wait for the writer. Beyond that the caller gets an error at once (BOUNDED).
pub(crate) const QUEUE_MAX: usize = 4096;
/// How long the writer spins for a follow-up request after its last answers.
const LINGER_MAX: Duration = Duration::from_micros(100);

/// From so many rows on a client's request counts as bulk, after the claims: in front of them it would make
/// workers wait.
const CLIENT_ROWS_MAX: usize = 16;
/// At most so many client requests go before the claims of the same transaction.
const CLIENTS_BEFORE_CLAIMS: usize = 128;
/// After so many bulk requests one of maintenance is served.
const BULK_BEFORE_MAINTENANCE: usize = 8;

/// The order in which a busy writer serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Leases and settlements: what keeps workers alive and frees them.
    Control,
    /// Small requests of clients.
    Client,
    /// Claims: after the small enqueues, so that a claim can take a task in the commit that adds it.
    Claim,
    /// Large requests of clients.
    Bulk,
    /// Due tasks, expiry, retention.
    Maintenance,
}

impl Class {
    /// The class of a client's request that touches `rows` rows.
    pub(crate) fn of_client(rows: usize) -> Self {
        if rows <= CLIENT_ROWS_MAX { Self::Client } else { Self::Bulk }
    }
}

/// What an acknowledged request must survive, and whether it writes at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// A power cut.
    Durable,
    /// The end of the process, not a power cut: a lost write is as if the request had never been made.
    Relaxed,
    /// As `Relaxed`, but it writes only if a task is ready or a job waits for its next turn.
    RelaxedIfReady,
    /// As `Durable`, with the same condition.
    DurableIfReady,
    /// Nothing: it does not write.
    Read,
}

impl Sync {
    /// What a claim must survive.
    pub(crate) fn of_claims(options: &Options) -> Self {
        if options.durable_claims { Self::DurableIfReady } else { Self::RelaxedIfReady }
    }
}

/// A request that the writer can run, and run again if its transaction is rolled back.
pub(crate) trait Request: Send {
    fn class(&self) -> Class;
    fn sync(&self) -> Sync;
    /// Runs it and stores the answer. An error asks for a rollback of the transaction.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), rusqlite::Error>;
    /// Sends the stored answer.
    fn answer(self: Box<Self>);
    /// Sends an error instead.
    fn fail(self: Box<Self>, error: Error);
}

/// A request made of a closure and the channel for its answer.
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
    /// A request, and the receiver of its answer.
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
            // The caller may have dropped its call; that is no failure.
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
    control: VecDeque<Box<dyn Request>>,
    client: VecDeque<Box<dyn Request>>,
    claim: VecDeque<Box<dyn Request>>,
    bulk: VecDeque<Box<dyn Request>>,
    maintenance: VecDeque<Box<dyn Request>>,
    /// Client requests served since the last claim, or since none waited.
    clients_served: usize,
    /// Bulk requests served since the last maintenance request, or since none waited.
    bulk_served: usize,
    closed: Option<Error>,
    /// Whether the writer sleeps until it is woken.
    asleep: bool,
}

impl Waiting {
    /// The next request.
    pub(crate) fn pop(&mut self) -> Option<Box<dyn Request>> {
        if let Some(request) = self.control.pop_front() {
            return Some(request);
        }
        if self.claim.is_empty() || self.clients_served >= CLIENTS_BEFORE_CLAIMS {
            self.clients_served = 0;
        } else if let Some(request) = self.client.pop_front() {
            self.clients_served += 1;
            return Some(request);
        }
        if let Some(request) = self.claim.pop_front().or_else(|| self.client.pop_front()) {
            return Some(request);
        }
        if self.maintenance.is_empty() || self.bulk_served >= BULK_BEFORE_MAINTENANCE {
            self.bulk_served = 0;
        } else if let Some(request) = self.bulk.pop_front() {
            self.bulk_served += 1;
            return Some(request);
        }
        self.maintenance.pop_front().or_else(|| self.bulk.pop_front())
    }

    /// Every request, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Request> {
        let first = self.control.iter().chain(&self.client).chain(&self.claim);
        first.chain(&self.bulk).chain(&self.maintenance).map(AsRef::as_ref)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Small requests of clients.
    pub(crate) fn clients(&self) -> usize {
        self.client.len()
    }

    /// Requests of workers.
    pub(crate) fn of_workers(&self) -> usize {
        self.control.len() + self.claim.len()
    }

    fn len(&self) -> usize {
        self.of_workers() + self.client.len() + self.bulk.len() + self.maintenance.len()
    }

    fn push(&mut self, request: Box<dyn Request>) {
        match request.class() {
            Class::Control => self.control.push_back(request),
            Class::Client => self.client.push_back(request),
            Class::Claim => self.claim.push_back(request),
            Class::Bulk => self.bulk.push_back(request),
            Class::Maintenance => self.maintenance.push_back(request),
        }
    }

    fn append(&mut self, other: &mut Self) {
        self.control.append(&mut other.control);
        self.client.append(&mut other.client);
        self.claim.append(&mut other.claim);
        self.bulk.append(&mut other.bulk);
        self.maintenance.append(&mut other.maintenance);
    }
}

/// The queue between callers and the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// The number of requests that the writer held when it last took some.
    taken: AtomicUsize,
    /// The number of worker requests that wait, readable without the lock.
    pub workers_len: AtomicUsize,
    /// The number of small client requests that wait, readable without the lock.
    pub clients_len: AtomicUsize,
}

impl Queue {
    /// Adds a request, or fails it at once if the queue is full or closed.
    pub(crate) fn push(&self, request: Box<dyn Request>) {
        let mut waiting = self.lock();
        if let Some(error) = waiting.closed.clone() {
            drop(waiting);
            return request.fail(error);
        }
        if waiting.len() + self.taken.load(Ordering::Relaxed) >= QUEUE_MAX {
            drop(waiting);
            return request
                .fail(Error::Unavailable(format!("{QUEUE_MAX} requests wait already; try again later")));
        }
        waiting.push(request);
        self.workers_len.store(waiting.of_workers(), Ordering::Relaxed);
        self.clients_len.store(waiting.clients(), Ordering::Relaxed);
        // Waking a thread is a system call: wake the writer only if it sleeps.
        let wake = std::mem::take(&mut waiting.asleep);
        drop(waiting);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// Waits for a request if `wait` says so, then moves all of them behind those that the writer has.
    /// Returns false once the queue is closed and empty.
    pub(crate) fn take_all(&self, into: &mut Waiting, wait: Wait) -> bool {
        if wait == Wait::Yes {
            self.linger();
        }
        let mut waiting = self.lock();
        while wait == Wait::Yes && waiting.is_empty() && waiting.closed.is_none() {
            waiting.asleep = true;
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.asleep = false;
        into.append(&mut waiting);
        self.workers_len.store(0, Ordering::Relaxed);
        self.clients_len.store(0, Ordering::Relaxed);
        self.taken.store(into.len(), Ordering::Relaxed);
        waiting.closed.is_none() || !into.is_empty()
    }

    /// Spins for a moment before the thread sleeps: a follow-up request arrives within that time, and waking
    /// a thread takes longer.
    fn linger(&self) {
        let started = Instant::now();
        let nobody =
            || self.workers_len.load(Ordering::Relaxed) == 0 && self.clients_len.load(Ordering::Relaxed) == 0;
        while nobody() && started.elapsed() < LINGER_MAX {
            std::thread::yield_now();
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Refuses every later request with this error; the writer still serves those that wait.
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
