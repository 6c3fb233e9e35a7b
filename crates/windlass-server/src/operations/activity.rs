//! The last calls that changed something.

use windlass_core::operators::CALLS_KEPT;

use super::{Operations, Result};
use crate::api::{Activity, ErrorDetail};

/// Calls of a page, if the caller names no number.
const CALLS_DEFAULT: u32 = 100;

impl Operations {
    /// One page of the last calls that changed something, newest first, below an id.
    pub async fn activity(&self, after: Option<u64>, limit: Option<u32>) -> Result<Activity> {
        let limit = limit.unwrap_or(CALLS_DEFAULT);
        if limit == 0 || limit > CALLS_KEPT {
            return Err(ErrorDetail::invalid(format!("limit is {limit}; it must be 1 to {CALLS_KEPT}")));
        }
        let mut calls = self.store.operators().calls(after, limit + 1).await?;
        let has_more = calls.len() > limit as usize;
        calls.truncate(limit as usize);
        let next = calls.last().map(|call| call.id).filter(|_| has_more);
        Ok(Activity { calls: calls.into_iter().map(Into::into).collect(), next })
    }
}
