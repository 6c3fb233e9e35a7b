//! The outcome of an attempt, as its handler returns it.

use std::time::Duration;

use crate::payload::Payload;

/// The output of a successful handler, if it has one.
pub type Output = Option<Payload>;

/// The end of one attempt, as the handler (or the executor on its behalf) sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded, perhaps with an output.
    Done(Output),
    /// It failed; try again, after the policy's delay unless another is given.
    Retry {
        /// What went wrong.
        error: String,
        /// When to try again; `None` leaves it to the policy.
        after: Option<Duration>,
    },
    /// Call again later; no attempt is spent.
    Snooze(Duration),
    /// The task is no longer wanted: end it as cancelled.
    Cancel(String),
    /// It will never succeed: no further attempts.
    Dead(String),
    /// The worker hands the task back unfinished (shutdown); the attempt is not spent.
    Release,
}

impl Outcome {
    /// A failure with the policy's delay.
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), after: None }
    }

    /// A failure with this delay instead of the policy's.
    pub fn retry_after(after: Duration, error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), after: Some(after) }
    }

    /// Call again later; no attempt is spent.
    pub fn snooze(delay: Duration) -> Self {
        Self::Snooze(delay)
    }

    /// End the task as cancelled, for this reason.
    pub fn cancel(reason: impl Into<String>) -> Self {
        Self::Cancel(reason.into())
    }

    /// End the task as dead, for this reason.
    pub fn dead(reason: impl Into<String>) -> Self {
        Self::Dead(reason.into())
    }

    /// Success with an output.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the value has no JSON form.
    pub fn done(output: &impl serde::Serialize) -> crate::Result<Self> {
        Ok(Self::Done(Some(Payload::json(output)?)))
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done(None)
    }
}

impl From<Payload> for Outcome {
    fn from(output: Payload) -> Self {
        Self::Done(Some(output))
    }
}
