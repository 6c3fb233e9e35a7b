//! Repeats a statement that the server undid because of another transaction.

use std::time::Duration;

use windlass_core::Result;

use crate::connection::error::Failure;

/// How often a statement is tried that lost against another transaction.
const TRIES: u32 = 5;
/// Pause before the second try; doubled with each, and randomised.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs `work` until it succeeds, fails for good, or was tried often enough. Only for work that the server
/// undid as a whole: a deadlock, a serialization failure.
pub(crate) async fn repeat<T, F>(mut work: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match work().await {
            Err(failure) if failure.is_worth_repeating => {
                tracing::debug!(error = %failure.error, "the server undid a statement; it is repeated");
                let spread = u32::from(std::process::id() as u8 & 7);
                tokio::time::sleep(pause + pause / 8 * spread).await;
                pause *= 2;
            }
            answer => return Ok(answer?),
        }
    }
    Ok(work().await?)
}
