//! Handlers of deliveries: the async functions of applications, and their one untyped form.

use std::{future::Future, pin::Pin, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use windlass::{Outcome, handler::IntoOutcome};

use crate::Delivery;

/// The result of a call: an outcome, or why the delivery cannot be decoded, without quoting it.
pub type Call = Pin<Box<dyn Future<Output = Result<Outcome, String>> + Send>>;
/// A handler without its types.
pub type Run = Arc<dyn Fn(Delivery) -> Call + Send + Sync>;

/// A function that handles deliveries: `async fn(payload)` or `async fn(payload, Delivery)`, where the
/// payload is decoded from JSON.
///
/// It runs for many deliveries at once, so it is `Send + Sync`. Its result decides: `Ok` is acknowledged,
/// `Err` is rejected (or returned to the queue, see [`Consumer::redeliver`](crate::Consumer::redeliver)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of deliveries",
    label = "not a handler",
    note = "a handler is `async fn(payload)` or `async fn(payload, Delivery)` with a payload that serde reads, and returns \
            `Result<(), E>`; `Consumer::raw` takes `async fn(Delivery)`"
)]
pub trait MessageHandler<Args>: Send + Sync + 'static {
    /// Converts it to the untyped form.
    fn erased(self) -> Run;
}

impl<F, T, Called> MessageHandler<(T,)> for F
where
    F: Fn(T) -> Called + Send + Sync + 'static,
    T: DeserializeOwned + Send,
    Called: Future<Output: IntoOutcome> + Send + 'static,
{
    fn erased(self) -> Run {
        Arc::new(move |delivery| match decoded(&delivery) {
            Ok(payload) => outcome(self(payload)),
            Err(reason) => Box::pin(std::future::ready(Err(reason))),
        })
    }
}

impl<F, T, Called> MessageHandler<(T, Delivery)> for F
where
    F: Fn(T, Delivery) -> Called + Send + Sync + 'static,
    T: DeserializeOwned + Send,
    Called: Future<Output: IntoOutcome> + Send + 'static,
{
    fn erased(self) -> Run {
        Arc::new(move |delivery| match decoded(&delivery) {
            Ok(payload) => outcome(self(payload, delivery)),
            Err(reason) => Box::pin(std::future::ready(Err(reason))),
        })
    }
}

/// A handler of bytes.
pub fn raw<F, Called>(handler: F) -> Run
where
    F: Fn(Delivery) -> Called + Send + Sync + 'static,
    Called: Future<Output: IntoOutcome> + Send + 'static,
{
    Arc::new(move |delivery| outcome(handler(delivery)))
}

fn outcome<Called>(called: Called) -> Call
where
    Called: Future<Output: IntoOutcome> + Send + 'static,
{
    Box::pin(async move { Ok(called.await.into_outcome()) })
}

/// Decodes the body. The reason names the position, never the text there.
fn decoded<T: DeserializeOwned>(delivery: &Delivery) -> Result<T, String> {
    serde_json::from_slice(delivery.body()).map_err(|error| {
        let what = match error.classify() {
            Category::Io | Category::Syntax => "is not JSON",
            Category::Eof => "is JSON that ends too early",
            Category::Data => "is JSON of another form than the handler takes",
        };
        format!("the body {what} (line {}, column {})", error.line(), error.column())
    })
}
