//! Waiting for what a server does in its own time: the condition is checked again and again, up to a
//! deadline.

use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds().await {
        assert!(Instant::now() < deadline, "still not true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
