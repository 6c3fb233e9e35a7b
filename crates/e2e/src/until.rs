//! Waits for a condition, with a limit that only bounds a failure.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How long it may take until a condition holds: generous, because test machines are busy.
pub const LIMIT: Duration = Duration::from_mins(2);
/// How often the condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Asks until there is an answer.
///
/// # Errors
/// The last reason, if there is no answer within [`LIMIT`].
pub async fn until<T>(ask: impl AsyncFnMut() -> Result<T, String>) -> Result<T> {
    within(LIMIT, ask).await
}

/// The same with another limit.
///
/// # Errors
/// The last reason, if there is no answer within the limit.
pub async fn within<T>(limit: Duration, mut ask: impl AsyncFnMut() -> Result<T, String>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        match ask().await {
            Ok(found) => return Ok(found),
            Err(missing) if Instant::now() > deadline => bail!("not within {limit:?}: {missing}"),
            Err(_) => sleep(LOOK_EVERY).await,
        }
    }
}
