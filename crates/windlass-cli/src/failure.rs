//! A failure as the user sees it: one line, one hint, one exit code.

use std::{fmt, process::ExitCode};

use windlass_core::Error;
use windlass_server::api::{ErrorCode, ErrorDetail};

/// How the program ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The command ran and failed.
    Failed = 1,
    /// The command line or a setting is wrong.
    Usage = 2,
    /// The named thing does not exist.
    NotFound = 3,
    /// Refused: a limit, a conflict, a permission.
    Refused = 4,
    /// No server or store answers; try again.
    Unreachable = 5,
    /// A task that was waited for ended dead or cancelled.
    EndedBadly = 6,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure with its exit code and, if there is one, a hint that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// What failed, in one line.
    pub message: String,
    /// What to do, in one line.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// A failure of the command line or a setting.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The same failure with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure to report for an error of any type.
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return failure.clone();
        }
        if let Some(error) = error.downcast_ref::<Error>() {
            return ErrorDetail::from(error.clone()).into();
        }
        if let Some(error) = error.downcast_ref::<ErrorDetail>() {
            return error.clone().into();
        }
        // All causes in one line: a cause on a line of its own looks like a second error.
        Self::new(Exit::Failed, format!("{error:#}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<ErrorDetail> for Failure {
    fn from(error: ErrorDetail) -> Self {
        Self { exit: exit_of(error.code), message: error.message, hint: error.hint }
    }
}

/// The exit code of an error, the same whether the store is here or behind a server.
fn exit_of(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::Unavailable | ErrorCode::UnknownOutcome | ErrorCode::Timeout => Exit::Unreachable,
        ErrorCode::Invalid => Exit::Usage,
        ErrorCode::NotFound => Exit::NotFound,
        ErrorCode::TooLarge
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::RateLimited
        | ErrorCode::Conflict
        | ErrorCode::KeyConflict
        | ErrorCode::StoreFull
        | ErrorCode::LeaseLost
        | ErrorCode::WorkerExpired
        | ErrorCode::Unsupported => Exit::Refused,
        ErrorCode::MethodNotAllowed
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::StoreFailed
        | ErrorCode::Unrecognised => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_error_has_the_documented_exit_code() {
        let cases = [
            (Error::Unavailable("x".into()), Exit::Unreachable),
            (Error::Invalid("x".into()), Exit::Usage),
            (Error::NotFound("task x".into()), Exit::NotFound),
            (Error::Conflict("x".into()), Exit::Refused),
            (Error::StoreFull("x".into()), Exit::Refused),
            (Error::Fatal("x".into()), Exit::Failed),
        ];
        for (error, exit) in cases {
            let text = error.to_string();
            assert_eq!(Failure::of(&anyhow::Error::new(error)).exit, exit, "{text}");
        }
    }

    #[test]
    fn a_chain_of_causes_is_one_line() {
        let error = anyhow::anyhow!("no such file").context("cannot read x.toml");
        assert_eq!(Failure::of(&error).message, "cannot read x.toml: no such file");
    }
}
