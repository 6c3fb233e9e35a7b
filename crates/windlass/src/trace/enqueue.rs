//! An enqueue as a span: the task carries on the trace of its caller.

use std::time::SystemTime;

use windlass_core::{Enqueued, NewTask, Result, TraceContext, store::SharedStore};

use super::{Tracer, Value, What};

/// The destination of new tasks: a store, or directly a worker that waits for them.
#[async_trait::async_trait]
pub trait Adds: Send + Sync {
    /// Adds tasks as [`windlass_core::Store::enqueue`] does.
    async fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>>;
}

#[async_trait::async_trait]
impl Adds for SharedStore {
    async fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.enqueue(tasks).await
    }
}

/// Enqueues tasks with their trace context: below a span of their own if there is a tracer, else below the
/// caller's.
///
/// # Errors
/// As the store's enqueue.
pub async fn enqueue(
    to: &dyn Adds,
    tracer: Option<&Tracer>,
    parent: Option<TraceContext>,
    mut tasks: Vec<NewTask>,
) -> Result<Vec<Enqueued>> {
    let parent = parent.or_else(|| tasks.first().and_then(|task| task.trace));
    let open = tracer.and_then(|tracer| Some((tracer, tracer.open(parent, SystemTime::now())?)));
    let trace = open.as_ref().map(|(_, open)| open.context).or(parent);
    for task in &mut tasks {
        task.trace = trace.or(task.trace);
    }
    let Some((tracer, open)) = open else { return to.add(tasks).await };
    let mut what = What::of_enqueue(&tasks);
    let enqueued = to.add(tasks).await;
    if let Ok([only]) = enqueued.as_deref() {
        what.attributes.push(("messaging.message.id", Value::Text(only.id.to_string())));
    }
    tracer.close(open, what, enqueued.as_ref().err().map(|_| "the store took nothing"));
    enqueued
}
