"""What clients ask and what they make of the answers; the same for asyncio and for threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from windlass.errors import (
    NotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    WindlassError,
    from_message,
)
from windlass.task import Enqueued, NewTask, Task, TaskState, milliseconds, timestamp_ms
from windlass.v1 import tasks_pb2

#: Longest wait that a server grants to one call, in seconds; longer ones are several calls.
WAIT_MAX = 30.0
#: How many tasks a page of a list has.
PAGE = 200


def enqueue(task: NewTask) -> tasks_pb2.EnqueueRequest:
    """Adds one task."""
    return tasks_pb2.EnqueueRequest(task=task._to_proto())


def enqueued(answer: tasks_pb2.EnqueueResponse) -> Enqueued:
    """What became of it."""
    return Enqueued(answer.task_id, answer.existing, tuple(answer.warnings), answer.cancelled)


def enqueue_batch(tasks: Iterable[NewTask]) -> tasks_pb2.EnqueueBatchRequest:
    """Adds several tasks, all or none."""
    return tasks_pb2.EnqueueBatchRequest(tasks=[task._to_proto() for task in tasks])


def enqueued_batch(answer: tasks_pb2.EnqueueBatchResponse) -> Sequence[Enqueued]:
    """What became of them, in order; what the caller should know stands with each."""
    warnings = tuple(answer.warnings)
    return [Enqueued(task.task_id, task.existing, warnings, task.cancelled) for task in answer.tasks]


def is_repeatable(tasks: Iterable[NewTask]) -> bool:
    """Whether an enqueue may be sent again after a lost answer: every task has a key, so none is added twice."""
    return all(task.key is not None for task in tasks)


def final(error: WindlassError, had_no_effect: bool, is_repeatable: bool) -> WindlassError:
    """What the failure of a call means for its caller: :class:`UnavailableError` if the call may be made again elsewhere,
    :class:`UnknownOutcomeError` if it may have taken effect and must not."""
    if not isinstance(error, (UnavailableError, UnknownOutcomeError)) or had_no_effect:
        return error
    if is_repeatable:
        return UnavailableError(error.message)
    return UnknownOutcomeError(f"the answer was lost: {error.message}", hint="look before you repeat it")


def wait(task_id: str, seconds: float) -> tasks_pb2.WaitTasksRequest:
    """Waits for the end of a task."""
    return tasks_pb2.WaitTasksRequest(task_ids=[task_id], timeout_ms=milliseconds(min(seconds, WAIT_MAX)))


def waited(task_id: str, answer: tasks_pb2.WaitTasksResponse) -> Task | None:
    """The task, once it has ended."""
    if answer.missing:
        raise NotFoundError(f"there is no task {task_id}", task_id=task_id)
    return Task._of_proto(answer.ended[0]) if answer.ended else None


def tasks(
    *,
    state: TaskState | None,
    kind: str,
    queue: str,
    job: str,
    workflow: str,
    since: datetime | None,
    after: str,
) -> tasks_pb2.ListTasksRequest:
    """One page of tasks."""
    request = tasks_pb2.ListTasksRequest(
        kind=kind, queue=queue, job=job, workflow=workflow, after=after, limit=PAGE
    )
    if state is not None:
        request.state = state._to_proto()
    if since is not None:
        request.since_ms = timestamp_ms(since)
    return request


def changed(task_id: str, answer: tasks_pb2.ChangedTasks) -> TaskState:
    """The state of the one task that was to be changed."""
    for task in answer.tasks:
        if task.HasField("error"):
            raise from_message(task.error)
        return TaskState._of_proto(task.state)
    raise NotFoundError(f"there is no task {task_id}", task_id=task_id)
