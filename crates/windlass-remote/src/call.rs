//! One call: a connection, a deadline, and an error that says whether it may have taken effect.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use prost::Message;
use tonic::{Code, Response, Status};
use windlass_core::{Error, Result};
use windlass_proto::{ERROR_TRAILER, convert::error_of, v1};

use crate::channel::{Channel, NOT_SENT, Wire};

/// Whether a call changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads: without an answer it may simply be repeated.
    Reads,
    /// It changes something: without an answer its effect is unknown.
    Writes,
}

impl Channel {
    /// Makes a call.
    pub(crate) async fn call<T, F, C>(self: &Arc<Self>, effect: Effect, max: Duration, call: C) -> Result<T>
    where
        C: FnOnce(Wire) -> F + Send,
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        let wire = self.wire().await?;
        let used = wire.used();
        let give_up = || self.give_up(used.load(Ordering::Relaxed));
        let lost = |what: String| match effect {
            Effect::Reads => Error::Unavailable(what),
            Effect::Writes => Error::Unknown(what),
        };
        match tokio::time::timeout(max, call(wire)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(told(&status).unwrap_or_else(|| {
                if breaks(status.code()) {
                    give_up();
                }
                untold(&status, lost)
            })),
            Err(_) => {
                give_up();
                Err(lost(format!("no answer within {} ms", max.as_millis())))
            }
        }
    }
}

/// The error that the server sent.
pub(crate) fn told(status: &Status) -> Option<Error> {
    let bytes = status.metadata().get_bin(ERROR_TRAILER)?.to_bytes().ok()?;
    v1::Error::decode(bytes).ok().map(|message| error_of(&message))
}

/// The error of a status that did not come from Windlass code on the other side.
fn untold(status: &Status, lost: impl FnOnce(String) -> Error) -> Error {
    let message = status.message().to_owned();
    match status.code() {
        Code::Unavailable if message == NOT_SENT => Error::Unavailable(message),
        // Refused before any Windlass code ran.
        Code::Unimplemented => Error::Unsupported(format!("the server: {message}")),
        Code::InvalidArgument | Code::OutOfRange | Code::PermissionDenied | Code::Unauthenticated => {
            Error::Invalid(format!("the server refused the call: {message}"))
        }
        _ => lost(message),
    }
}

/// Whether a status without an error of ours means that the connection can no longer be used.
fn breaks(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_call_is_unknown_but_an_unsent_one_is_unavailable() {
        let unknown = |status: &Status| untold(status, Error::Unknown);
        assert!(matches!(unknown(&Status::unavailable(NOT_SENT)), Error::Unavailable(_)));
        assert!(matches!(unknown(&Status::unavailable("a proxy says so")), Error::Unknown(_)));
        assert!(matches!(unknown(&Status::unknown("broke")), Error::Unknown(_)));
        assert!(matches!(unknown(&Status::unimplemented("x")), Error::Unsupported(_)));
        assert!(matches!(unknown(&Status::permission_denied("x")), Error::Invalid(_)));
    }
}
