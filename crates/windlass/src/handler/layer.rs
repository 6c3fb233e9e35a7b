//! Code of the application around every run of a handler: metrics, error reports, task-locals, spans.
//!
//! ```text
//! layer 1 ─► layer 2 ─► … ─► attempt: run, panic, deadline, cancel ─► outcome ─► … ─► layer 1 ─► settle
//! ```
//!
//! A layer therefore also sees ends that the handler did not choose. Without layers none of this code runs.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use windlass_core::Outcome;

use crate::{
    engine::executor,
    handler::{
        RawHandler,
        cancel::CancelReason,
        context::{Attempt, Context},
    },
    pool::guard::catch_panic,
    worker::shared::Shared,
};

/// How long layers may take after the attempt was ended from outside (deadline, cancellation, stop, lost
/// lease).
const GRACE: Duration = Duration::from_secs(1);

/// The return type of a layer: the outcome, in a future.
pub type LayerFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Code around every run of a handler. The first that was added is the outermost.
///
/// Implemented for closures:
///
/// ```
/// use std::time::Instant;
/// use windlass::{Context, Next, Outcome, Task, Worker};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Task)] struct Greet(String);
/// # async fn greet(Greet(_): Greet) {}
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// let store = windlass::open("sqlite::memory:").await?;
/// let worker = Worker::builder(store)
///     .layer(|ctx: Context, next: Next| async move {
///         let started = Instant::now();
///         let outcome = next.run().await;
///         if let Outcome::Retry { error, .. } | Outcome::Dead(error) = &outcome {
///             eprintln!("{} attempt {} took {:?}: {error}", ctx.id(), ctx.attempt(), started.elapsed());
///         }
///         outcome
///     })
///     .handle(greet)
///     .build()?;
/// # Ok(()) }
/// ```
///
/// A panic in a layer is a failed attempt of that task only. The outcome that a layer returns decides the
/// task, so it usually returns what [`Next::run`] gave it.
pub trait Layer: Send + Sync + 'static {
    /// Surrounds one run.
    fn call(&self, context: Context, next: Next) -> LayerFuture;
}

impl<F, Fut> Layer for F
where
    F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn call(&self, context: Context, next: Next) -> LayerFuture {
        Box::pin(self(context, next))
    }
}

/// The inner layers and the attempt.
#[must_use = "the handler does not run unless `.run()` is awaited"]
pub struct Next {
    shared: Arc<Shared>,
    attempt: Arc<Attempt>,
    handler: Arc<dyn RawHandler>,
    place: usize,
}

impl Next {
    /// Runs the attempt and returns its outcome: the handler's, or that of the event that ended it (a panic
    /// and a deadline are failures, with that reason).
    pub async fn run(mut self) -> Outcome {
        let layer = self.shared.registry.layers().get(self.place).cloned();
        match layer {
            Some(layer) => {
                self.place += 1;
                let context = Context::new(self.attempt.clone());
                layer.call(context, self).await
            }
            None => executor::outcome(&self.shared, &self.attempt, self.handler).await,
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("task", &self.attempt.claimed.id).finish_non_exhaustive()
    }
}

/// Runs an attempt inside the layers.
pub(crate) async fn outcome(
    shared: &Arc<Shared>,
    attempt: &Arc<Attempt>,
    handler: Arc<dyn RawHandler>,
) -> Outcome {
    let next = Next { shared: shared.clone(), attempt: attempt.clone(), handler, place: 0 };
    let mut run = std::pin::pin!(catch_panic(Box::pin(next.run())));
    tokio::select! {
        biased;
        ended = &mut run => executor::returned(shared, attempt, ended),
        // The attempt ends at these times without help; this is for a layer that does not.
        outcome = overdue(shared, attempt) => outcome,
    }
}

async fn overdue(shared: &Shared, attempt: &Attempt) -> Outcome {
    tokio::select! {
        () = executor::until(attempt.deadline) => {}
        _ = attempt.cancellation.cancelled() => {}
    }
    let reason = attempt.cancellation.reason();
    if let Some(CancelReason::Requested(_)) = reason {
        tokio::time::sleep(shared.config.cancel_grace).await;
    }
    tokio::time::sleep(GRACE).await;
    match reason {
        Some(CancelReason::Requested(reason)) => Outcome::cancel(reason.clone()),
        Some(CancelReason::Shutdown | CancelReason::LeaseLost) => Outcome::Release,
        Some(CancelReason::Deadline) | None => executor::timed_out(attempt),
    }
}
