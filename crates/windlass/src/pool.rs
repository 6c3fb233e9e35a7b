//! The pool: the one place where tasks run.
//!
//! A pool has a fixed number of slots; each running task holds one. Work enters in two ways.
//! [`Pool::dispatch`] adds a task, which starts at once if a slot is free and else waits in a bounded buffer.
//! [`Pool::reserve`] takes slots first, for work that is fetched only if it can start ([`Reserved::start`]).
//! A panic, a deadline or an abort ends the task and nothing else.
//!
//! ```
//! # use std::time::Duration;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use windlass::{Pool, Rejected};
//!
//! let pool = Pool::builder().size(8).buffer(100).build()?;
//! match pool.dispatch(async { 6 * 7 }) {
//!     Ok(handle) => assert_eq!(handle.await?, 42),
//!     Err(Rejected::Full(_task)) => {}   // try again later
//!     Err(Rejected::Closed(_task)) => {} // the pool is stopping
//! }
//! let report = pool.stop(Duration::from_secs(30)).await;
//! assert_eq!(report.to_string(), "0 drained, 0 cancelled, 0 aborted");
//! # Ok(())
//! # }
//! ```

mod builder;
mod consumer;
mod feeder;
mod gauges;
pub(crate) mod guard;
mod handle;
mod refusals;
mod reserved;
mod shared;
pub(crate) mod slots;
mod stop;
pub(crate) mod sync;
mod task;
mod wait;

use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use tokio::{runtime, sync::oneshot};

pub(crate) use self::feeder::Feeder;
pub use self::{
    builder::{PoolBuilder, PoolError},
    gauges::Gauges,
    handle::{Handle, JoinError, Rejected},
    reserved::Reserved,
    stop::StopReport,
};
use self::{
    shared::{Refusal, Shared},
    stop::Phase,
    task::{Deferred, Limits, Task},
};
use crate::{admission::Controller, handler::cancel::Cancellation};

/// After so long without a consumer for a task with a slot, another consumer is woken.
const STALL: Duration = Duration::from_millis(5);

/// A pool of slots with a bounded buffer before them. Cheap to clone; when the last clone is dropped without
/// a [`stop`](Self::stop), its tasks are aborted.
#[derive(Clone)]
pub struct Pool {
    owner: Arc<Owner>,
}

/// The part that only callers have, not consumers: when it is dropped, the pool ends.
struct Owner {
    shared: Arc<Shared>,
}

/// Options of a single task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispatchOptions {
    /// How long the task may run, counted from its start. After that its context is cancelled and it is
    /// dropped, and its handle returns [`JoinError::DeadlineExceeded`].
    pub deadline: Option<Duration>,
}

impl DispatchOptions {
    /// Options with a deadline.
    pub fn within(deadline: Duration) -> Self {
        Self { deadline: Some(deadline) }
    }
}

impl Pool {
    /// Settings with their defaults.
    pub fn builder() -> PoolBuilder {
        PoolBuilder::default()
    }

    fn new(size: usize, buffer: usize, runtime: runtime::Handle) -> Self {
        Self { owner: Arc::new(Owner { shared: Arc::new(Shared::new(size, buffer, runtime)) }) }
    }

    /// Lets a controller set how many of the slots may be used. Only the first controller counts.
    pub(crate) fn obey(&self, controller: &Controller) {
        if self.shared().admission.set(controller.clone()).is_ok() {
            controller.attach(Feeder::new(self.shared()));
        }
    }

    /// Changes the number of slots. Running tasks continue, even if there are fewer slots now.
    pub fn resize(&self, size: usize) {
        let shared = self.shared();
        shared.slots.resize(size);
        match shared.admission.get() {
            Some(controller) => controller.slots_changed(&Feeder::new(shared)),
            None => shared.allow(size),
        }
    }

    /// How many slots there are.
    pub fn size(&self) -> usize {
        self.shared().slots.total()
    }

    /// How many of them may be used now: all, unless admission control limits them. Takes no lock.
    pub fn allowed(&self) -> usize {
        self.shared().slots.limit()
    }

    /// Tells the controller that a caller has work and does not add it because no more is
    /// [`allowed`](Self::allowed): a slow start then continues sooner. Cheap, and without effect if there is
    /// no controller.
    pub fn held_up(&self) {
        self.shared().held_up();
    }

    /// How many of the slots may be used, and how many of those are free.
    pub(crate) fn allowance(&self) -> (usize, usize) {
        let slots = &self.shared().slots;
        (slots.limit(), slots.free())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    /// Adds a task. Never blocks: it starts at once if a slot is free, else it waits in the buffer.
    ///
    /// May be called on any thread, also outside of a runtime.
    ///
    /// # Errors
    /// Returns the task in [`Rejected::Full`] if there is no room, in [`Rejected::Closed`] once the pool is
    /// stopping.
    pub fn dispatch<F, T>(&self, task: F) -> Result<Handle<T>, Rejected<F>>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = boxed(task, None);
        match self.shared().admit(task) {
            Ok(()) => Ok(handle),
            Err((task, refusal)) => Err(self.refuse(task.into_future(), refusal)),
        }
    }

    /// Adds a task that can be asked to end: it gets a [`Cancellation`]. The pool sets it when the drain of a
    /// stop is over or the task's own deadline has passed. Never blocks.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), but with the function, which was not called.
    pub fn dispatch_with<M, F, T>(&self, make: M, options: DispatchOptions) -> Result<Handle<T>, Rejected<M>>
    where
        M: FnOnce(Cancellation) -> F + Send + 'static,
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let context = Cancellation::new();
        let limits = Limits::new(options.deadline, context.clone(), self.shared().cancellation.clone());
        let (task, handle) = boxed(Deferred::new(make, context), Some(limits));
        match self.shared().admit(task) {
            Ok(()) => Ok(handle),
            Err((task, refusal)) => match task.into_future().into_make() {
                Some(make) => Err(self.refuse(make, refusal)),
                // Not reached: only an accepted task is ever polled.
                None => Ok(handle),
            },
        }
    }

    /// Adds a task and waits for room up to the deadline, for callers that must not drop it.
    ///
    /// Cancel safe in the sense that the task is either added or dropped with the call.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch); [`Rejected::Full`] after the deadline.
    pub async fn dispatch_wait<F, T>(&self, task: F, deadline: Duration) -> Result<Handle<T>, Rejected<F>>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = boxed(task, None);
        let (task, refusal) = match self.shared().admit(task) {
            Ok(()) => return Ok(handle),
            Err((task, Refusal::Full)) => match self.shared().admit_within(task, deadline).await {
                Ok(()) => return Ok(handle),
                Err(refused) => refused,
            },
            Err(refused) => refused,
        };
        Err(self.refuse(task.into_future(), refusal))
    }

    /// Takes up to `wanted` free slots, none once the pool is stopping. Dropping the result returns the
    /// unused slots.
    pub fn reserve(&self, wanted: usize) -> Reserved {
        let shared = self.shared();
        // Under the lock, so that a stop sees either no reservation or one that it waits for.
        let state = shared.lock();
        let wanted = if state.phase == Phase::Open { wanted } else { 0 };
        let held = shared.slots.reserve(wanted);
        drop(state);
        Reserved::new(Arc::clone(shared), held)
    }

    /// Waits until a slot was freed since the last return of this function. For one waiting loop per pool:
    /// several freed slots give one wake-up. Cancel safe.
    pub async fn freed(&self) {
        let shared = self.shared();
        shared.slot_freed.notified().await;
        // Acknowledge before the caller looks for slots, so that the next freed slot wakes it again.
        shared.slots.acknowledge();
    }

    /// Finds tasks that have a slot and wait for a thread. While tasks are short, one consumer is woken for
    /// many of them; if a handler blocks its thread, the others would wait for it. Ends only by being
    /// dropped; costs nothing while no task waits.
    pub(crate) async fn keep_starting(&self) -> Infallible {
        while let Some(since) = self.shared().waits_since() {
            tokio::time::sleep_until(since + STALL).await;
            self.shared().call_unhurried();
        }
        std::future::pending().await
    }

    /// Stops the pool within the deadline and reports how its tasks ended.
    ///
    /// Intake closes at once. Buffered and running tasks continue with a live context for nine tenths of the
    /// deadline. Then unstarted tasks are dropped and running ones are asked to end; at the deadline the rest
    /// is aborted. A task that blocks its thread cannot be aborted before it yields: the stop waits 50 ms for
    /// it, and the report counts it as aborted.
    ///
    /// Any number of callers may stop a pool, at the same time and later: all get the same report, and the
    /// earliest deadline counts. Cancel safe: the stop continues without the caller.
    pub async fn stop(&self, deadline: Duration) -> StopReport {
        self.shared().stop(deadline).await
    }

    /// A snapshot of the pool's state and counters.
    pub fn gauges(&self) -> Gauges {
        self.shared().gauges()
    }

    fn refuse<F>(&self, task: F, refusal: Refusal) -> Rejected<F> {
        match refusal {
            Refusal::Closed => Rejected::Closed(task),
            Refusal::Full => {
                self.shared().refuse();
                Rejected::Full(task)
            }
        }
    }
}

fn boxed<F, T>(future: F, limits: Option<Limits>) -> (Box<Task<F>>, Handle<T>)
where
    F: Future<Output = T>,
{
    let (sender, receiver) = oneshot::channel();
    (Box::new(Task::new(future, Some(sender), limits)), Handle::new(receiver))
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.abort();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.gauges()).finish()
    }
}
