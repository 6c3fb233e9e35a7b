//! What can go wrong with the broker; one line that says what to do.

use std::time::Duration;

/// Why something with the broker did not work.
///
/// No text holds a payload or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be used.
    #[error("the address of the broker: {0}; write amqp://USER:PASSWORD@HOST:PORT/VHOST")]
    Address(String),
    /// What the address says of TLS cannot be used, such as a file that is not there.
    #[error("TLS to the broker: {0}")]
    Tls(String),
    /// The declarations contradict each other or cannot work; nothing was sent to the broker.
    #[error("{0}")]
    Declaration(String),
    /// The broker was not reached, or the connection was lost. Try again later.
    #[error("the broker at {address} is not reachable: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system or the broker said.
        reason: String,
    },
    /// The broker refused something, such as a declaration that differs from what exists there.
    #[error("the broker refused {what}: {reason}")]
    Refused {
        /// What was asked for.
        what: String,
        /// What it said.
        reason: String,
    },
    /// No queue takes a message of this exchange and routing key.
    #[error(
        "no queue is bound to exchange {exchange:?} for routing key {routing_key:?}: the message was not kept"
    )]
    Unroutable {
        /// The exchange; the default one is empty.
        exchange: String,
        /// The routing key.
        routing_key: String,
    },
    /// The broker is short of memory or disk and takes no messages. Try again later.
    #[error("the broker blocks publishers, for it is short of memory or disk; the message {sent}")]
    Blocked {
        /// Whether it may be there: `was not sent`, or `may be kept once it recovers`.
        sent: &'static str,
    },
    /// The broker neither confirmed nor refused in time: the message may or may not be there.
    #[error("the broker did not confirm within {0:?}; the message may have been kept")]
    Unconfirmed(Duration),
    /// The value could not be made into JSON.
    #[error("the message cannot be made into JSON: {0}")]
    Encode(String),
}

impl Error {
    /// Whether the same call may work later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Blocked { .. } | Self::Unconfirmed(_))
    }
}
