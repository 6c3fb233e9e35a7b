//! What can go wrong with a scratch server.

use std::io;

/// Why a scratch server could not do what it was asked for; one line that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that is needed is not on this machine.
    #[error("{what} is missing: install {install}")]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// The package that brings it.
        install: &'static str,
    },
    /// The folder of the server could not be made, read or written.
    #[error("the folder of the scratch server: {0}; check that the folder for temporary files is writable")]
    Folder(#[from] io::Error),
    /// The certificate of the server could not be made.
    #[error("the certificate of the scratch server: {0}")]
    Certificate(String),
    /// The server did not start.
    #[error("{server} did not start: {reason}")]
    Start {
        /// Which server.
        server: &'static str,
        /// The last thing that it said.
        reason: String,
    },
    /// The shell that keeps the server has gone, so the server has gone as well.
    #[error("the shell that keeps the scratch server was killed; start a new one")]
    KeeperGone,
    /// rabbitmqctl refused a command, or could not reach its node.
    #[error("rabbitmqctl: {0}")]
    Rabbitmqctl(String),
    /// psql refused a statement or a connection.
    #[error("psql: {0}")]
    Psql(String),
}
