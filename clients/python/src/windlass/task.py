"""Tasks: as they are handed in, and as one looks at them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import cast

from windlass import payload as payloads
from windlass.errors import InvalidError
from windlass.v1 import task_pb2

__all__ = ["Attempt", "Enqueued", "NewTask", "OnFailure", "RetryPolicy", "Task", "TaskState"]


class TaskState(str, enum.Enum):
    """Where a task stands; this also answers why it does not run."""

    #: Not due yet.
    SCHEDULED = "scheduled"
    #: Behind its predecessor in its workflow.
    WAITING = "waiting"
    #: Its job is at its limit or paused, or nobody alive can take it.
    HELD = "held"
    #: May be claimed now.
    READY = "ready"
    #: Leased to one attempt of one worker.
    RUNNING = "running"
    #: Ended in success.
    DONE = "done"
    #: Ended for good without success.
    DEAD = "dead"
    #: Ended by request.
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in (TaskState.DONE, TaskState.DEAD, TaskState.CANCELLED)

    def _to_proto(self) -> task_pb2.TaskState:
        return cast("task_pb2.TaskState", task_pb2.TaskState.Value(f"TASK_STATE_{self.name}"))

    @classmethod
    def _of_proto(cls, state: task_pb2.TaskState) -> TaskState:
        return cls(task_pb2.TaskState.Name(state).removeprefix("TASK_STATE_").lower())


class OnFailure(str, enum.Enum):
    """What a dead step means for the rest of its workflow."""

    #: The workflow waits until somebody retries, skips or cancels.
    BLOCK = "block"
    #: The next step runs.
    SKIP = "skip"
    #: The rest is cancelled.
    CANCEL = "cancel"


@dataclass(frozen=True)
class RetryPolicy:
    """Delays between attempts: ``base × 2ⁿ`` seconds, at most ``max``, spread by ``jitter_percent`` either way."""

    base: float = 1.0
    max: float = 600.0
    jitter_percent: int = 20

    def _to_proto(self) -> task_pb2.RetryPolicy:
        return task_pb2.RetryPolicy(
            base_ns=round(self.base * 1e9), max_ns=round(self.max * 1e9), jitter_percent=self.jitter_percent
        )


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """A task to enqueue."""

    #: Which handler runs it.
    kind: str
    #: What it carries: anything that JSON can say, or ``bytes``.
    payload: object = None
    #: Which queue it waits in.
    queue: str = "default"
    #: Higher first.
    priority: int = 0
    #: Seconds from now until it may start.
    delay: float | None = None
    #: When it may start, if not after a delay.
    run_at: datetime | None = None
    #: Idempotency key: the same queue and key give one task.
    key: str | None = None
    #: With another kind or payload under the same key: answer with the existing task instead of an error.
    ignore_key_conflict: bool = False
    max_attempts: int | None = None
    retry: RetryPolicy | None = None
    #: Seconds that one attempt may take.
    timeout: float | None = None
    #: The job that it belongs to, if any.
    job: str = ""
    #: The limit of its job if the store does not know that job yet; a job that is there keeps its own.
    job_concurrency: int | None = None
    #: The workflow that it is appended to, if any.
    workflow: str = ""
    on_failure: OnFailure | None = None
    #: W3C trace context of whoever enqueues it.
    traceparent: str = ""

    def _to_proto(self) -> task_pb2.NewTask:
        if self.delay is not None and self.run_at is not None:
            raise InvalidError("a task has a delay or a time, not both")
        task = task_pb2.NewTask(
            kind=self.kind,
            queue=self.queue,
            priority=self.priority,
            ignore_key_conflict=self.ignore_key_conflict,
            job=self.job,
            workflow=self.workflow,
            traceparent=self.traceparent,
        )
        # No payload is what the server makes an empty object of, as in every other interface.
        if self.payload is not None:
            task.payload.CopyFrom(payloads.encode(self.payload))
        if self.delay is not None:
            task.delay_ms = milliseconds(self.delay)
        if self.run_at is not None:
            task.run_at_ms = timestamp_ms(self.run_at)
        if self.key is not None:
            task.key = self.key
        if self.max_attempts is not None:
            task.max_attempts = self.max_attempts
        if self.retry is not None:
            task.retry.CopyFrom(self.retry._to_proto())
        if self.timeout is not None:
            task.timeout_ms = milliseconds(self.timeout)
        if self.job_concurrency is not None:
            task.job_concurrency = self.job_concurrency
        if self.on_failure is not None:
            on_failure = task_pb2.OnFailure.Value(f"ON_FAILURE_{self.on_failure.name}")
            task.on_failure = cast("task_pb2.OnFailure", on_failure)
        return task


@dataclass(frozen=True)
class Enqueued:
    """The answer to an enqueue: the task is durable."""

    task_id: str
    #: Whether a task with this key was already there.
    existing: bool = False
    #: What the caller should know, for example that no live worker has this kind.
    warnings: Sequence[str] = ()
    #: Whether its job is cancelled, and with it the task: at once, or when its turn in its workflow comes.
    cancelled: bool = False


@dataclass(frozen=True)
class Attempt:
    """One ended attempt."""

    attempt: int
    worker_id: str
    #: ``done``, ``retry``, ``snoozed``, ``released``, ``crashed``, ``cancelled``, ``dead`` or ``redriven``.
    result: str
    started_at: datetime | None
    ended_at: datetime
    error: str | None


@dataclass(frozen=True)
class Task:
    """A task as one looks at it."""

    id: str
    state: TaskState
    kind: str
    queue: str
    priority: int
    payload: object
    #: What its handler left behind; ``None`` also while it has not ended.
    output: object
    error: str | None
    progress: str | None
    key: str | None
    job: str
    workflow: str
    attempt: int
    max_attempts: int
    crashes: int
    worker_id: str
    due_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    #: Why it was asked to end, if it was.
    cancel_requested: str | None
    #: Ended attempts, oldest first.
    attempts: Sequence[Attempt]

    @classmethod
    def _of_proto(cls, task: task_pb2.Task) -> Task:
        return cls(
            id=task.id,
            state=TaskState._of_proto(task.state),
            kind=task.lane.kind,
            queue=task.lane.queue,
            priority=task.priority,
            payload=payloads.decode(task.payload) if task.HasField("payload") else None,
            output=payloads.decode(task.output) if task.HasField("output") else None,
            error=task.error if task.HasField("error") else None,
            progress=task.progress if task.HasField("progress") else None,
            key=task.key if task.HasField("key") else None,
            job=task.job,
            workflow=task.workflow,
            attempt=task.attempt,
            max_attempts=task.max_attempts,
            crashes=task.crashes,
            worker_id=task.worker_id,
            due_at=_time(task.due_at_ms) if task.HasField("due_at_ms") else None,
            started_at=_time(task.started_at_ms) if task.HasField("started_at_ms") else None,
            ended_at=_time(task.ended_at_ms) if task.HasField("ended_at_ms") else None,
            cancel_requested=task.cancel_requested if task.HasField("cancel_requested") else None,
            attempts=tuple(_attempt(attempt) for attempt in task.attempts),
        )


def _attempt(attempt: task_pb2.Attempt) -> Attempt:
    return Attempt(
        attempt=attempt.attempt,
        worker_id=attempt.worker_id,
        result=task_pb2.AttemptResult.Name(attempt.result).removeprefix("ATTEMPT_RESULT_").lower(),
        started_at=_time(attempt.started_at_ms) if attempt.HasField("started_at_ms") else None,
        ended_at=_time(attempt.ended_at_ms),
        error=attempt.error if attempt.HasField("error") else None,
    )


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc)


def milliseconds(seconds: float) -> int:
    """A duration as the wire has it; none is negative."""
    if seconds < 0:
        raise InvalidError("a duration is not negative")
    return round(seconds * 1000)


def timestamp_ms(time: datetime) -> int:
    """A time as the wire has it. One without a zone could mean anything."""
    if time.tzinfo is None:
        raise InvalidError("a time needs a time zone", hint="for example datetime.now(timezone.utc)")
    return round(time.timestamp() * 1000)
