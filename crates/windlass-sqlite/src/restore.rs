//! Bringing a copy back.

use std::path::Path;

use crate::error::OpenError;

/// How a copy is brought back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Leave every queue paused.
    pub hold: bool,
    /// Replace a store that exists.
    pub overwrite: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Tasks whose leases were ended; they are ready again with their attempt given back.
    pub handed_back: u64,
    /// Queues that were left paused.
    pub queues_held: u64,
}

/// Puts a copy made by `backup` in the place of a store that is not in use.
pub fn restore(_backup: &Path, to: &Path, _options: RestoreOptions) -> Result<Restored, OpenError> {
    Err(OpenError::NoSuchStore(to.to_owned()))
}
