//! Handlers as the executor calls them: one kind, one function from a context to an outcome.

use async_trait::async_trait;
use windlass_core::Outcome;

use crate::context::Context;

/// The code behind a kind, without types: it reads [`Context::payload`] itself.
///
/// Most handlers are plain async functions registered with `Worker::builder(…).handle(…)`; this trait is for
/// code that serves kinds known only at run time.
#[async_trait]
pub trait RawHandler: Send + Sync + 'static {
    /// Runs one attempt. A panic is caught and counts as a failed attempt.
    async fn call(&self, context: Context) -> Outcome;
}
