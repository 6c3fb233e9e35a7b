"""Enqueue tasks and look at them without asyncio: every call blocks its thread.

A client may be used by many threads.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType

import grpc

from windlass import calls, requests
from windlass.calls import Answer, Call, Request
from windlass.client import CALL_LIMIT
from windlass.connection import Connection
from windlass.control_sync import Jobs, Queues
from windlass.errors import UnavailableError, WaitTimeoutError, WindlassError, from_status
from windlass.task import Enqueued, NewTask, OnFailure, RetryPolicy, Task, TaskState
from windlass.v1 import tasks_pb2

__all__ = ["Client"]


class Client:
    """The blocking twin of :class:`windlass.Client`: the same parameters, methods and errors."""

    def __init__(
        self,
        servers: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        cert_file: str | os.PathLike[str] | None = None,
        key_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
    ) -> None:
        self._connection = Connection.create(
            servers, token=token, ca_file=ca_file, cert_file=cert_file, key_file=key_file, insecure=insecure
        )
        self._lock = threading.Lock()
        self._channels: dict[int, grpc.Channel] = {}
        self._current = 0
        #: The queues: how many tasks each has, pause and resume.
        self.queues = Queues(self._call)
        #: The jobs: their limits and delays, pause, resume, cancel and remove.
        self.jobs = Jobs(self._call)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()

    def enqueue(
        self,
        kind: str,
        payload: object = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        ignore_key_conflict: bool = False,
        max_attempts: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        job: str = "",
        job_concurrency: int | None = None,
        workflow: str = "",
        on_failure: OnFailure | None = None,
        traceparent: str = "",
    ) -> Enqueued:
        """Adds one task. When this returns, the task is durable."""
        task = NewTask(
            kind=kind,
            payload=payload,
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            key=key,
            ignore_key_conflict=ignore_key_conflict,
            max_attempts=max_attempts,
            retry=retry,
            timeout=timeout,
            job=job,
            job_concurrency=job_concurrency,
            workflow=workflow,
            on_failure=on_failure,
            traceparent=traceparent,
        )
        request = requests.enqueue(task)
        return requests.enqueued(
            self._call(calls.ENQUEUE, request, is_repeatable=requests.is_repeatable([task]))
        )

    def enqueue_batch(self, tasks: Iterable[NewTask]) -> Sequence[Enqueued]:
        """Adds several tasks, all or none, in one durable commit."""
        tasks = tuple(tasks)
        request = requests.enqueue_batch(tasks)
        return requests.enqueued_batch(
            self._call(calls.ENQUEUE_BATCH, request, is_repeatable=requests.is_repeatable(tasks))
        )

    def get(self, task_id: str) -> Task:
        """One task, unfinished or kept."""
        return Task._of_proto(self._call(calls.GET_TASK, tasks_pb2.GetTaskRequest(task_id=task_id)))

    def wait(self, task_id: str, timeout: float | None = None) -> Task:
        """Waits until a task has ended, at most ``timeout`` seconds (then :class:`~windlass.WaitTimeoutError`)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = requests.WAIT_MAX if deadline is None else max(0.0, deadline - time.monotonic())
            answer = self._call(
                calls.WAIT_TASKS, requests.wait(task_id, left), limit=CALL_LIMIT + requests.WAIT_MAX
            )
            task = requests.waited(task_id, answer)
            if task is not None:
                return task
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeoutError(f"task {task_id} has not ended in {timeout} s", task_id=task_id)

    def cancel(self, task_id: str, reason: str = "") -> TaskState:
        """Ends a task that has not started, or asks a running one to end. Answers its state now."""
        request = tasks_pb2.CancelTasksRequest(task_ids=[task_id], reason=reason)
        return requests.changed(task_id, self._call(calls.CANCEL_TASKS, request))

    def retry(self, task_id: str, delay: float = 0.0) -> TaskState:
        """Grants a dead task a fresh budget of attempts."""
        again = tasks_pb2.RetryTask(task_id=task_id, delay_ms=round(delay * 1000))
        request = tasks_pb2.RetryTasksRequest(tasks=[again])
        return requests.changed(task_id, self._call(calls.RETRY_TASKS, request, is_repeatable=False))

    def repeat(self, task_id: str, delay: float = 0.0) -> str:
        """Adds a task that does the same as one that is done or cancelled, which itself never runs again. Answers the new one's
        id. Each task is repeated once: a third run repeats the second."""
        request = tasks_pb2.RepeatTaskRequest(task_id=task_id, delay_ms=round(delay * 1000))
        answer = self._call(calls.REPEAT_TASK, request, is_repeatable=False)
        return answer.task_id

    def list(
        self,
        *,
        state: TaskState | None = None,
        kind: str = "",
        queue: str = "",
        job: str = "",
        workflow: str = "",
        since: datetime | None = None,
    ) -> Iterator[Task]:
        """Tasks, newest first, page after page."""
        after = ""
        while True:
            request = requests.tasks(
                state=state, kind=kind, queue=queue, job=job, workflow=workflow, since=since, after=after
            )
            page = self._call(calls.LIST_TASKS, request)
            for task in page.tasks:
                yield Task._of_proto(task)
            if not page.next:
                return
            after = page.next

    def _call(
        self,
        call: Call[Request, Answer],
        request: Request,
        *,
        is_repeatable: bool = True,
        limit: float = CALL_LIMIT,
    ) -> Answer:
        """Makes a call at the current server, or at the next ones if it is not there."""
        last: WindlassError = UnavailableError("no server could be reached")
        # Once more than there are servers: the connection to one that was restarted fails once.
        for _ in range(len(self._connection.servers) + 1):
            index = self._current
            try:
                return self._at(index, call, request, is_repeatable, limit)
            except UnavailableError as error:
                last = error
                with self._lock:
                    # Another thread may have moved on already.
                    if index == self._current:
                        self._current = (index + 1) % len(self._connection.servers)
        raise last

    def _at(
        self,
        index: int,
        call: Call[Request, Answer],
        request: Request,
        is_repeatable: bool,
        limit: float,
    ) -> Answer:
        with self._lock:
            channel = self._channels.get(index)
            if channel is None:
                server = self._connection.servers[index]
                channel = self._channels[index] = self._connection.blocking_channel(server)
        method = channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.answer.FromString,
        )
        try:
            return method(request, timeout=limit, metadata=self._connection.headers())
        except grpc.RpcError as failure:
            if not isinstance(failure, grpc.Call):
                raise
            error, had_no_effect = from_status(
                failure.code(), failure.details(), list(failure.trailing_metadata() or ())
            )
        raise requests.final(error, had_no_effect, is_repeatable)
