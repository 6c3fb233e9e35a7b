//! Errors of scratch servers.

use std::io;

/// Why a scratch server failed; one line that tells the user what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A required program is not on this machine.
    #[error("{what} is missing: install {install}")]
    Missing {
        /// The missing program.
        what: &'static str,
        /// The package that contains it.
        install: &'static str,
    },
    /// The folder of the server could not be created, read or written.
    #[error("the folder of the scratch server: {0}; check that the folder for temporary files is writable")]
    Folder(#[from] io::Error),
    /// The certificate of the server could not be created.
    #[error("the certificate of the scratch server: {0}")]
    Certificate(String),
    /// The server did not start.
    #[error("{server} did not start: {reason}")]
    Start {
        /// Which server.
        server: &'static str,
        /// The last line of its output.
        reason: String,
    },
    /// The shell that keeps the server was killed, so the server has ended too.
    #[error("the shell that keeps the scratch server was killed; start a new one")]
    KeeperGone,
    /// rabbitmqctl reported an error, or could not reach its node.
    #[error("rabbitmqctl: {0}")]
    Rabbitmqctl(String),
    /// psql reported an error of a statement or a connection.
    #[error("psql: {0}")]
    Psql(String),
}
