//! Stores on PostgreSQL, their processes, and the judge that checks the state after a fault.

mod attempts;
mod judge;
mod load;
mod place;
mod wire;

use std::time::Duration;

use anyhow::Result;

pub use attempts::{Attempt, attempts, check_workflow, most_running};
pub use judge::{Judged, judge, judge_after_crashes};
pub use load::{Load, client, tasks};
pub use place::Place;
pub use wire::Wire;

use crate::until::within;

/// How long an expected event may take: generous, it only bounds a failure.
pub const LIMIT: Duration = Duration::from_mins(2);

/// Waits until a condition holds.
///
/// # Errors
/// If the condition cannot be checked, or does not hold within [`LIMIT`].
pub async fn until(what: &str, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    until_within(LIMIT, what, is_so).await
}

/// The same with another limit, for tests that prove a shorter time.
///
/// # Errors
/// If the condition cannot be checked, or does not hold within the limit.
pub async fn until_within(
    limit: Duration,
    what: &str,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let mut failed = None;
    let ask = async || match is_so() {
        Ok(true) => Ok(()),
        Ok(false) => Err(what.to_owned()),
        Err(error) => {
            failed = Some(error);
            Ok(())
        }
    };
    within(limit, ask).await?;
    failed.map_or(Ok(()), Err)
}
