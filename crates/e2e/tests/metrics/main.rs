//! What a monitor sees of the built program: `/metrics` against the table of names, and the dashboard and the alerts in the real
//! Prometheus.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod load;
mod ops;
mod page;
mod prometheus;
mod scrape;

use std::time::{Duration, Instant};

/// How long something may take to show up: generous, because test machines are busy.
const LIMIT: Duration = Duration::from_secs(90);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Asks until there is an answer; with what was missing last if there is none in time.
async fn until<T, F: Future<Output = Result<T, String>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(missing) => assert!(Instant::now() < deadline, "not in time: {missing}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
