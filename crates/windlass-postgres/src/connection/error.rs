//! What the server's refusals mean to a caller.

use tokio_postgres::error::{Severity, SqlState};
use windlass_core::Error;

use crate::connection::reach::Refusal;

/// Why a store could not be opened. Each is one line that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server cannot be reached.
    #[error("cannot reach {location}: {reason}")]
    Unreachable {
        /// The address that was tried, without its password.
        location: String,
        /// What the network or the server said.
        reason: String,
    },
    /// The server is older than what is supported.
    #[error("PostgreSQL {found} at {location} is too old; {needed} or later is needed")]
    TooOld {
        /// The server.
        location: String,
        /// Its version.
        found: String,
        /// The oldest version that is supported.
        needed: u32,
    },
    /// The server refuses every change.
    #[error(
        "{location} accepts no writes: it is a standby, or default_transaction_read_only is on; name the primary, or \
         all servers (postgres://db1,db2/app)"
    )]
    ReadOnly {
        /// The server.
        location: String,
    },
    /// The schema does not exist.
    #[error(
        "{location} has no schema {schema:?} of Windlass; make it with `windlass migrate`, or start with --migrate"
    )]
    NoSchema {
        /// The server.
        location: String,
        /// The schema.
        schema: String,
    },
    /// A schema of this name belongs to something else.
    #[error("schema {schema:?} at {location} is not one of Windlass; name another with --schema")]
    ForeignSchema {
        /// The server.
        location: String,
        /// The schema.
        schema: String,
    },
    /// The schema is older than this program needs.
    #[error(
        "schema {schema:?} at {location} has version {found}, and this program needs {needed}; run `windlass migrate` \
         (`--plan` shows what it does), or start with --migrate"
    )]
    OlderSchema {
        /// The server.
        location: String,
        /// The schema.
        schema: String,
        /// Its version.
        found: u32,
        /// The version that this program needs.
        needed: u32,
    },
    /// A newer program brought the schema forward, and this program must not write to it.
    #[error(
        "schema {schema:?} at {location} has version {found}, written only by programs that know version \
         {oldest_writer} or later, and this program knows up to {known}; use a newer windlass"
    )]
    NewerSchema {
        /// The server.
        location: String,
        /// The schema.
        schema: String,
        /// Its version.
        found: u32,
        /// The oldest schema version whose programs may write it.
        oldest_writer: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The address or a setting is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The server refused.
    #[error("cannot {action} {location}: {reason}")]
    Refused {
        /// The server.
        location: String,
        /// What was tried.
        action: &'static str,
        /// What it said.
        reason: String,
    },
}

/// A statement that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What the caller is told.
    pub error: Error,
    /// Whether the connection can no longer be used.
    pub is_broken: bool,
    /// Whether the server undid the statement and the same one may succeed now.
    pub is_worth_repeating: bool,
}

impl Failure {
    /// The connection can no longer be used.
    pub(crate) fn broken(error: Error) -> Self {
        Self { is_broken: true, ..Self::from(error) }
    }

    /// The server undid it because of another transaction.
    pub(crate) fn outrun(text: String) -> Self {
        Self { is_worth_repeating: true, ..Self::from(Error::Unavailable(text)) }
    }

    /// Whether the server cancelled the statement because it took too long.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        self.error.to_string().contains(&format!("({})", SqlState::QUERY_CANCELED.code()))
    }

    /// The same failure after an earlier statement has taken effect, which a crash may still undo.
    pub(crate) fn in_doubt(self) -> Self {
        Self { error: Error::Unknown(self.error.to_string()), is_worth_repeating: false, ..self }
    }
}

impl From<Error> for Failure {
    /// A refusal by this program: nothing is wrong with the connection.
    fn from(error: Error) -> Self {
        Self { error, is_broken: false, is_worth_repeating: false }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// What the failure of a statement that was sent means to its caller.
pub(crate) fn of_statement(error: &tokio_postgres::Error) -> Failure {
    let Some(state) = error.code() else {
        // The server did not answer: whether the statement took effect is not known.
        let text = text_of(error);
        let error = if error.is_closed()
            || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        {
            Error::Unknown(text)
        } else {
            Error::Unavailable(text)
        };
        return Failure::broken(error);
    };
    let text = text_of(error);
    match *state {
        // A lock timeout is not repeated: the sessions that wait behind the statement have waited long
        // enough.
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => Failure::outrun(text),
        SqlState::DISK_FULL => Error::StoreFull(text).into(),
        // The statement was undone. The server has become read-only, so the next connection should find
        // another server.
        SqlState::READ_ONLY_SQL_TRANSACTION => Failure::broken(Error::Unavailable(text)),
        SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN
        | SqlState::UNDEFINED_FUNCTION
        | SqlState::INVALID_SCHEMA_NAME
        | SqlState::UNDEFINED_OBJECT => {
            Error::Unavailable(format!("{text}; does the schema exist? see `windlass migrate --plan`")).into()
        }
        _ if state.code().starts_with("22") => Error::Invalid(text).into(),
        // The session was terminated, or the server shuts down: the commit may have happened before.
        _ if state.code().starts_with("57P") || state.code().starts_with("08") => {
            Failure::broken(Error::Unknown(text))
        }
        // An internal error of the server. Any other refused statement is undone, and the connection can be
        // used again.
        _ if state.code().starts_with("XX") || is_fatal(error) => Failure::broken(Error::Unavailable(text)),
        _ => Error::Unavailable(text).into(),
    }
}

/// Whether the server closed the connection with its refusal.
fn is_fatal(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|refusal| refusal.parsed_severity().is_none_or(|s| s != Severity::Error))
}

/// What the failure to connect means to a caller: nothing was sent, so nothing changed.
pub(crate) fn of_connect(error: &tokio_postgres::Error) -> Refusal {
    let is_full = error.code().is_some_and(|state| *state == SqlState::TOO_MANY_CONNECTIONS);
    let mut text = text_of(error);
    if is_full {
        text.push_str("; the server has no connection left: raise max_connections or run fewer processes");
    }
    Refusal { text, is_full }
}

/// The driver's text with its causes. It contains no password and no parameters.
pub(crate) fn text_of(error: &tokio_postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!("{} ({})", refusal.message(), refusal.code().code());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
