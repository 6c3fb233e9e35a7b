"""What can go wrong, one class per cause.

Every error has the ``code`` that all interfaces of Windlass share, one sentence, and often a hint what to do. None shows a
payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from windlass.v1 import task_pb2

__all__ = [
    "ConflictError",
    "ForbiddenError",
    "InvalidError",
    "KeyConflictError",
    "LeaseLostError",
    "NotFoundError",
    "RateLimitedError",
    "ServerError",
    "StoreFullError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "UnknownOutcomeError",
    "UnsupportedError",
    "WaitTimeoutError",
    "WindlassError",
    "WorkerExpiredError",
]

#: How gRPC begins what it says of a call that it could not send.
_NEVER_SENT = ("failed to connect to all addresses", "DNS resolution failed")

#: The trailer in which a server sends the whole error.
ERROR_TRAILER = "windlass-error-bin"


class WindlassError(Exception):
    """Whatever a server answered that is not a success, or that it could not be reached."""

    #: The name of the cause, the same in every interface.
    code: str = "error"

    def __init__(self, message: str, *, code: str = "", hint: str = "", task_id: str = "", key: str = "") -> None:
        super().__init__(message)
        self.code = code or type(self).code
        #: One line for people.
        self.message = message
        #: What to do.
        self.hint = hint
        #: The task that the error is about, if any.
        self.task_id = task_id
        #: The idempotency key that is taken, if that is the cause.
        self.key = key

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidError(WindlassError):
    """The input breaks a rule; the message names the field."""

    code = "invalid"


class TooLargeError(WindlassError):
    """A payload or a batch is over its limit."""

    code = "too_large"


class NotFoundError(WindlassError):
    """There is no such task, queue, job or worker."""

    code = "not_found"


class UnauthorizedError(WindlassError):
    """The server wants a token, or another one."""

    code = "unauthorized"


class ForbiddenError(WindlassError):
    """The token does not allow this call."""

    code = "forbidden"


class ConflictError(WindlassError):
    """The task is in a state in which this cannot be done."""

    code = "conflict"


class KeyConflictError(WindlassError):
    """The idempotency key belongs to a task with another kind or payload; ``task_id`` names it."""

    code = "key_conflict"


class LeaseLostError(WindlassError):
    """The attempt is no longer this worker's: somebody else may run the task."""

    code = "lease_lost"


class WorkerExpiredError(WindlassError):
    """The worker's registration is over."""

    code = "worker_expired"


class StoreFullError(WindlassError):
    """The server's disk has too little room; try again later."""

    code = "store_full"


class RateLimitedError(WindlassError):
    """Too many calls; try again in a second."""

    code = "rate_limited"


class UnavailableError(WindlassError):
    """No server can take this now; nothing has happened, try again."""

    code = "unavailable"


class UnknownOutcomeError(WindlassError):
    """The answer was lost: the call may have taken effect. Look before you repeat it, or give tasks a key."""

    code = "unknown_outcome"


class UnsupportedError(WindlassError):
    """This server cannot do that."""

    code = "unsupported"


class ServerError(WindlassError):
    """The server or its store has failed."""

    code = "store_failed"


class WaitTimeoutError(WindlassError, TimeoutError):
    """The task has not ended in the time that the caller gave."""

    code = "wait_timeout"


_CLASSES: dict[str, type[WindlassError]] = {
    cls.code: cls
    for cls in (
        InvalidError,
        TooLargeError,
        NotFoundError,
        UnauthorizedError,
        ForbiddenError,
        ConflictError,
        KeyConflictError,
        LeaseLostError,
        WorkerExpiredError,
        StoreFullError,
        RateLimitedError,
        UnavailableError,
        UnknownOutcomeError,
        UnsupportedError,
        ServerError,
    )
}

# For answers that come without the trailer: from a proxy, or from gRPC itself.
_BY_STATUS: dict[grpc.StatusCode, type[WindlassError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidError,
    grpc.StatusCode.OUT_OF_RANGE: TooLargeError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthorizedError,
    grpc.StatusCode.PERMISSION_DENIED: ForbiddenError,
    grpc.StatusCode.FAILED_PRECONDITION: ConflictError,
    grpc.StatusCode.ALREADY_EXISTS: KeyConflictError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: RateLimitedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    # A call that ran out of its time, or whose connection broke, may have been served.
    grpc.StatusCode.DEADLINE_EXCEEDED: UnknownOutcomeError,
    grpc.StatusCode.CANCELLED: UnknownOutcomeError,
    grpc.StatusCode.UNKNOWN: UnknownOutcomeError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
}


def from_message(error: task_pb2.Error, otherwise: type[WindlassError] = ServerError) -> WindlassError:
    """The error that a server described; ``otherwise`` is for codes of a newer server."""
    cls = _CLASSES.get(error.code, otherwise)
    return cls(error.message, code=error.code, hint=error.hint, task_id=error.task_id, key=error.key)


def from_status(
    status: grpc.StatusCode, details: str | None, trailers: Iterable[tuple[str, str | bytes]]
) -> tuple[WindlassError, bool]:
    """The error of a call, and whether the call certainly had no effect: Windlass itself refused it, or it never left."""
    cls = _BY_STATUS.get(status, ServerError)
    for name, value in trailers:
        if name == ERROR_TRAILER and isinstance(value, bytes):
            try:
                return from_message(task_pb2.Error.FromString(value), cls), True
            except DecodeError:
                break
    text = details or status.name.lower().replace("_", " ")
    return cls(text), text.startswith(_NEVER_SENT)


def from_aio(failure: grpc.aio.AioRpcError) -> tuple[WindlassError, bool]:
    """The same for a call of asyncio."""
    # The stubs say less than there is: the trailers are pairs.
    trailers = cast("Iterable[tuple[str, str | bytes]]", failure.trailing_metadata() or ())
    return from_status(failure.code(), failure.details(), trailers)


def is_passing(error: WindlassError) -> bool:
    """Whether the same call may succeed later without any change by the caller."""
    passing = (UnavailableError, StoreFullError, RateLimitedError, UnknownOutcomeError)
    return isinstance(error, passing) or error.code == "timeout"
