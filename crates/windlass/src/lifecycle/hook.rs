//! Runs a hook within its deadline and catches its panic.

use std::{future::poll_fn, pin::Pin, time::Duration};

use tokio::time::timeout;

use super::Failure;
use crate::pool::guard::poll_guarded;

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It returned an error.
    #[error("{0}")]
    Failed(Failure),
    /// It panicked; the text is the panic's message.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It was still running at its deadline and was dropped.
    #[error("it did not end within {0:?}")]
    DeadlineExceeded(Duration),
}

pub(super) async fn guarded(
    mut hook: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + '_>>,
    deadline: Duration,
) -> Result<(), HookError> {
    match timeout(deadline, poll_fn(|cx| poll_guarded(hook.as_mut(), cx))).await {
        Ok(Ok(result)) => result.map_err(HookError::Failed),
        Ok(Err(panic)) => Err(HookError::Panicked(panic)),
        Err(_) => Err(HookError::DeadlineExceeded(deadline)),
    }
}
