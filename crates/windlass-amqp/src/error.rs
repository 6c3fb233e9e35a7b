//! Errors of the broker and its use; each is one line that says what to do.

use std::time::Duration;

/// Why a call to the broker failed.
///
/// No text contains a payload or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be used.
    #[error("the address of the broker: {0}; write amqp://USER:PASSWORD@HOST:PORT/VHOST")]
    Address(String),
    /// The TLS parts of the address cannot be used, for example because a file does not exist.
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
        /// The reason from the system or the broker.
        reason: String,
    },
    /// The broker refused something, such as a declaration that differs from what exists there.
    #[error("the broker refused {what}: {reason}")]
    Refused {
        /// The refused request.
        what: String,
        /// The broker's reason.
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
        /// Whether the message may be in a queue: `was not sent`, or `may be kept once it recovers`.
        sent: &'static str,
    },
    /// The broker neither confirmed nor refused in time: the message may or may not be in a queue.
    #[error("the broker did not confirm within {0:?}; the message may have been kept")]
    Unconfirmed(Duration),
    /// The value could not be encoded as JSON.
    #[error("the message cannot be made into JSON: {0}")]
    Encode(String),
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Blocked { .. } | Self::Unconfirmed(_))
    }
}
