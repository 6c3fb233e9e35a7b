//! Stores on PostgreSQL, the processes on them, and the judge of what is left after a fault.

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

/// How long anything may take that a test waits for: generous, it only bounds a failure.
pub const LIMIT: Duration = Duration::from_mins(2);

/// Waits until something is so.
///
/// # Errors
/// If it cannot be looked at, or is not so within [`LIMIT`].
pub async fn until(what: &str, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    until_within(LIMIT, what, is_so).await
}

/// The same where a shorter limit is what is shown.
///
/// # Errors
/// If it cannot be looked at, or is not so within the limit.
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
