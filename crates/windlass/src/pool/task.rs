//! One task as a consumer runs it: the caller's future with the panic guard, its limits and the channel of
//! its result.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep_until},
};

use super::{guard::panic_message, handle::JoinError};
use crate::handler::cancel::{CancelReason, Cancellation};

/// A task without its types.
pub(super) type Job = Pin<Box<dyn Future<Output = End> + Send>>;

/// How a task ended, if it was not aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Panicked,
    DeadlineExceeded,
}

pin_project! {
    /// Stores the future inline, so that a task costs one allocation of its own size.
    pub(super) struct Task<F: Future> {
        #[pin]
        future: F,
        result: Option<oneshot::Sender<Result<F::Output, JoinError>>>,
        // Most tasks have no limits and pay only one word for the option.
        limits: Option<Box<Limits>>,
    }
}

impl<F: Future> Task<F> {
    pub(super) fn new(
        future: F,
        result: Option<oneshot::Sender<Result<F::Output, JoinError>>>,
        limits: Option<Limits>,
    ) -> Self {
        Self { future, result, limits: limits.map(Box::new) }
    }

    /// The future of a task that was not accepted.
    pub(super) fn into_future(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Task<F> {
    type Output = End;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let this = self.project();
        let (future, limits) = (this.future, this.limits.as_deref_mut());
        // Unwind safe: after a panic the future is never polled again, only dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| match limits {
            None => future.poll(cx).map(Ok),
            Some(limits) => limits.poll_within(future, cx),
        }));
        let result = match polled {
            Ok(polled) => ready!(polled),
            Err(panic) => Err(JoinError::Panicked(panic_message(panic))),
        };
        let end = End::of(&result);
        let unheard = match this.result.take() {
            Some(sender) => sender.send(result).err(),
            None => Some(result),
        };
        if let Some(Err(error)) = unheard {
            tracing::warn!(%error, "a task failed and no caller waits for its result");
        }
        Poll::Ready(end)
    }
}

pin_project! {
    /// A future that is created at its first poll: not at all if its task is refused, and inside the panic
    /// guard.
    pub(super) struct Deferred<M, F> {
        make: Option<M>,
        context: Cancellation,
        #[pin]
        made: Option<F>,
    }
}

impl<M, F> Deferred<M, F> {
    pub(super) fn new(make: M, context: Cancellation) -> Self {
        Self { make: Some(make), context, made: None }
    }

    /// The function that creates the future, if it was never polled.
    pub(super) fn into_make(self) -> Option<M> {
        self.make
    }
}

impl<M: FnOnce(Cancellation) -> F, F: Future> Future for Deferred<M, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        if let Some(make) = this.make.take() {
            this.made.set(Some(make(this.context.clone())));
        }
        match this.made.as_pin_mut() {
            Some(made) => made.poll(cx),
            // Only after the function has panicked; no further poll follows.
            None => Poll::Pending,
        }
    }
}

impl End {
    fn of<T>(result: &Result<T, JoinError>) -> Self {
        match result {
            Ok(_) => Self::Completed,
            Err(JoinError::DeadlineExceeded(_)) => Self::DeadlineExceeded,
            Err(_) => Self::Panicked,
        }
    }
}

/// The limits that may end a task: its deadline and the cancellation of the pool.
pub(super) struct Limits {
    deadline: Option<Duration>,
    context: Cancellation,
    pool: Cancellation,
    started: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    pool_cancelled: Option<Pin<Box<dyn Future<Output = CancelReason> + Send>>>,
}

impl Limits {
    /// `context` is what the task sees; the pool sets `pool` when its drain is over.
    pub(super) fn new(deadline: Option<Duration>, context: Cancellation, pool: Cancellation) -> Self {
        Self { deadline, context, pool, started: None, timer: None, pool_cancelled: None }
    }

    fn poll_within<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, JoinError>> {
        if self.started.is_none() && self.deadline.is_some() {
            self.started = Some(Instant::now());
        }
        // Poll the future first and create a timer only after its first pending poll: a short task then needs
        // none.
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        self.pass_on_cancellation(cx);
        self.poll_deadline(cx).map(Err)
    }

    fn pass_on_cancellation(&mut self, cx: &mut Context<'_>) {
        if self.context.is_cancelled() {
            return;
        }
        let pool = &self.pool;
        let cancelled = self.pool_cancelled.get_or_insert_with(|| {
            let pool = pool.clone();
            Box::pin(async move { pool.cancelled().await.clone() })
        });
        if let Poll::Ready(reason) = cancelled.as_mut().poll(cx) {
            self.context.cancel(reason);
            self.pool_cancelled = None;
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<JoinError> {
        let (Some(deadline), Some(started)) = (self.deadline, self.started) else { return Poll::Pending };
        // A deadline beyond the range of the clock is none.
        let Some(ends) = started.checked_add(deadline) else { return Poll::Pending };
        ready!(self.timer.get_or_insert_with(|| Box::pin(sleep_until(ends))).as_mut().poll(cx));
        // Work that the task has started elsewhere learns of the deadline here; the consumer drops the task
        // itself.
        self.context.cancel(CancelReason::Deadline);
        Poll::Ready(JoinError::DeadlineExceeded(deadline))
    }
}

/// Drops a task and catches a panic of its destructor.
pub(super) fn discard(job: Job) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(job))) {
        tracing::warn!(panic = panic_message(panic), "a task panicked while it was dropped");
    }
}
