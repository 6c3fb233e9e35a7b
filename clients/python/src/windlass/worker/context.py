"""What a handler is given: its task, and its ties to the worker."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable

from windlass.v1 import task_pb2
from windlass.worker.registration import Registration


class CancelReason(enum.Enum):
    """Why running work was asked to end."""

    #: Somebody cancelled the task.
    REQUESTED = "requested"
    #: The attempt's time is up.
    DEADLINE = "deadline"
    #: The worker is stopping and its drain deadline has passed.
    SHUTDOWN = "shutdown"
    #: The worker could not renew its lease: somebody else may run the task.
    LEASE_LOST = "lease lost"


class Context:
    """One attempt of one task, for its handler. May be used from any thread."""

    def __init__(
        self,
        claimed: task_pb2.ClaimedTask,
        payload: object,
        registration: Registration,
        report_progress: Callable[[str], None],
    ) -> None:
        lease = claimed.lease
        self.task_id: str = lease.task_id
        self.kind: str = claimed.lane.kind
        self.queue: str = claimed.lane.queue
        #: What the task carries: JSON values, or ``bytes``.
        self.payload = payload
        #: From 1; raised with every attempt that counts.
        self.attempt: int = lease.attempt
        self.max_attempts: int = lease.max_attempts
        #: How often its process died with it since it last ended otherwise; ``attempt`` does not count those.
        self.crashes: int = claimed.crashes
        self.priority: int = claimed.priority
        self.job: str = lease.job
        self.workflow: str = lease.workflow
        #: W3C trace context of whoever enqueued the task.
        self.traceparent: str = claimed.traceparent
        self._registration = registration
        self._report_progress = report_progress
        self._cancelled = threading.Event()
        self._reason: CancelReason | None = None

    def __repr__(self) -> str:
        return f"<Context of task {self.task_id}, kind {self.kind}, attempt {self.attempt}>"

    def progress(self, text: str) -> None:
        """Keeps a short text with the task that says how far it is. Never waits; of several the last one counts."""
        self._report_progress(text)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should end.

        A coroutine learns of it as :class:`asyncio.CancelledError`. A plain function in its thread has to look; it also sees
        here that the lease is over while nothing else of the worker gets to run.
        """
        return self._cancelled.is_set() or self._registration.is_over

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why, if so."""
        if self._reason is None and self._registration.is_over:
            return CancelReason.LEASE_LOST
        return self._reason

    def wait_cancelled(self, seconds: float) -> bool:
        """For plain functions: waits so long, or until the handler should end. Answers whether it should."""
        self._cancelled.wait(seconds)
        return self.cancelled

    def _cancel(self, reason: CancelReason) -> None:
        # The first reason stays.
        if self._reason is None:
            self._reason = reason
            self._cancelled.set()
