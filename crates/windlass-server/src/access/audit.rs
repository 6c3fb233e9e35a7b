//! The audit lines: who has changed what, in the log of each server.

use http::StatusCode;
use tonic::Code;
use tracing::info;
use windlass_core::WorkerId;

use super::{Call, Caller};

/// How a call was answered, with the status of its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// With an HTTP status.
    Http(StatusCode),
    /// With a gRPC status.
    Grpc(Code),
}

impl Answered {
    /// The status of a refusal for a missing right.
    pub(super) fn denied(call: &Call) -> Self {
        if call.is_grpc() { Self::Grpc(Code::PermissionDenied) } else { Self::Http(StatusCode::FORBIDDEN) }
    }

    /// The outcome in one word, for the audit line.
    pub(super) fn outcome(self) -> &'static str {
        match self {
            Self::Http(status) if status.is_success() => "done",
            Self::Grpc(Code::Ok) => "done",
            Self::Http(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            | Self::Grpc(Code::Unauthenticated | Code::PermissionDenied) => "denied",
            Self::Http(status) if status.is_client_error() => "refused",
            Self::Grpc(
                Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::ResourceExhausted
                | Code::Unimplemented,
            ) => "refused",
            Self::Http(_) | Self::Grpc(_) => "failed",
        }
    }
}

/// Writes an audit line for a call that changes something for others: the caller, the call, its path and its
/// outcome. Other calls are not audited.
/// An HTTP path contains names and ids. A gRPC message contains them instead: `about` holds them, if the
/// message was read. A body is never logged.
pub fn audit(caller: &Caller, call: &Call, (path, about): (&str, &str), answered: Answered) {
    if !call.destructive {
        return;
    }
    let outcome = answered.outcome();
    // A field of its own for gRPC: the numbers of gRPC statuses mean something else than those of HTTP.
    match answered {
        Answered::Http(status) => {
            let status = status.as_u16();
            info!(target: AUDIT, who = %caller, call = call.name, path, status, outcome, "audit");
        }
        Answered::Grpc(code) => {
            info!(
                target: AUDIT, who = %caller, call = call.name, path, about, grpc_status = ?code, outcome, "audit"
            );
        }
    }
}

/// Writes an audit line for a browser that logged in or out.
pub(crate) fn audit_session(caller: &Caller, call: &str, path: &str) {
    info!(target: AUDIT, who = %caller, call, path, status = 200, outcome = "done", "audit");
}

/// Writes an audit line for a caller that named a worker which another caller registered. After a token is
/// replaced, each of its workers causes one such line.
pub(crate) fn audit_foreign_worker(caller: &Caller, worker: WorkerId) {
    info!(target: AUDIT, who = %caller, call = "speak for a worker", about = %worker, outcome = "denied", "audit");
}

/// The `tracing` target of audit lines. It is the same at every level.
pub const AUDIT: &str = "windlass::audit";
