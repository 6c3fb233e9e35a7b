//! The kind `echo`: succeeds at once with its payload as output, for tests and first steps.

use async_trait::async_trait;
use windlass::{Context, Outcome, handler::RawHandler};

/// Succeeds with the payload as output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

#[async_trait]
impl RawHandler for Echo {
    async fn call(&self, context: Context) -> Outcome {
        Outcome::Done(Some(context.payload().clone()))
    }
}
