"""Enqueue tasks and look at them, with asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from types import TracebackType

import grpc.aio

from windlass import calls, requests
from windlass.calls import Answer, Call, Request
from windlass.connection import Connection
from windlass.control_async import Jobs, Queues
from windlass.errors import UnavailableError, WaitTimeoutError, WindlassError, from_aio
from windlass.task import Enqueued, NewTask, OnFailure, RetryPolicy, Task, TaskState
from windlass.v1 import tasks_pb2

__all__ = ["Client"]

#: How long a call may take, in seconds, beyond what it is asked to wait.
CALL_LIMIT = 30.0


class Client:
    """A client of one or more servers.

    With several servers a call goes to the next one if a server cannot be reached. A call whose answer is lost is repeated
    only where that is harmless; an enqueue without a key then raises :class:`~windlass.UnknownOutcomeError`.

    The parameters are those of :class:`~windlass.connection.Connection`. Use it as ``async with Client() as client``, or
    call :meth:`close` in the end.
    """

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
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._current = 0
        #: The queues: how many tasks each has, pause and resume.
        self.queues = Queues(self._call)
        #: The jobs: their limits and delays, pause, resume, cancel and remove.
        self.jobs = Jobs(self._call)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    async def enqueue(
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
            await self._call(calls.ENQUEUE, request, is_repeatable=requests.is_repeatable([task]))
        )

    async def enqueue_batch(self, tasks: Iterable[NewTask]) -> Sequence[Enqueued]:
        """Adds several tasks, all or none, in one durable commit."""
        tasks = tuple(tasks)
        request = requests.enqueue_batch(tasks)
        return requests.enqueued_batch(
            await self._call(calls.ENQUEUE_BATCH, request, is_repeatable=requests.is_repeatable(tasks))
        )

    async def get(self, task_id: str) -> Task:
        """One task, unfinished or kept."""
        return Task._of_proto(await self._call(calls.GET_TASK, tasks_pb2.GetTaskRequest(task_id=task_id)))

    async def wait(self, task_id: str, timeout: float | None = None) -> Task:
        """Waits until a task has ended, at most ``timeout`` seconds (then :class:`~windlass.WaitTimeoutError`)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = requests.WAIT_MAX if deadline is None else max(0.0, deadline - time.monotonic())
            request = requests.wait(task_id, left)
            answer = await self._call(calls.WAIT_TASKS, request, limit=CALL_LIMIT + requests.WAIT_MAX)
            task = requests.waited(task_id, answer)
            if task is not None:
                return task
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeoutError(f"task {task_id} has not ended in {timeout} s", task_id=task_id)

    async def cancel(self, task_id: str, reason: str = "") -> TaskState:
        """Ends a task that has not started, or asks a running one to end. Answers its state now."""
        request = tasks_pb2.CancelTasksRequest(task_ids=[task_id], reason=reason)
        return requests.changed(task_id, await self._call(calls.CANCEL_TASKS, request))

    async def retry(self, task_id: str, delay: float = 0.0) -> TaskState:
        """Grants a dead task a fresh budget of attempts."""
        again = tasks_pb2.RetryTask(task_id=task_id, delay_ms=round(delay * 1000))
        request = tasks_pb2.RetryTasksRequest(tasks=[again])
        return requests.changed(
            task_id, await self._call(calls.RETRY_TASKS, request, is_repeatable=False)
        )

    async def repeat(self, task_id: str, delay: float = 0.0) -> str:
        """Adds a task that does the same as one that is done or cancelled, which itself never runs again. Answers the new one's
        id. Each task is repeated once: a third run repeats the second."""
        request = tasks_pb2.RepeatTaskRequest(task_id=task_id, delay_ms=round(delay * 1000))
        answer = await self._call(calls.REPEAT_TASK, request, is_repeatable=False)
        return answer.task_id

    async def list(
        self,
        *,
        state: TaskState | None = None,
        kind: str = "",
        queue: str = "",
        job: str = "",
        workflow: str = "",
        since: datetime | None = None,
    ) -> AsyncIterator[Task]:
        """Tasks, newest first, page after page."""
        after = ""
        while True:
            request = requests.tasks(
                state=state, kind=kind, queue=queue, job=job, workflow=workflow, since=since, after=after
            )
            page = await self._call(calls.LIST_TASKS, request)
            for task in page.tasks:
                yield Task._of_proto(task)
            if not page.next:
                return
            after = page.next

    async def _call(
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
                return await self._at(index, call, request, is_repeatable, limit)
            except UnavailableError as error:
                last = error
                # Another call may have moved on already.
                if index == self._current:
                    self._current = (index + 1) % len(self._connection.servers)
        raise last

    async def _at(
        self,
        index: int,
        call: Call[Request, Answer],
        request: Request,
        is_repeatable: bool,
        limit: float,
    ) -> Answer:
        channel = self._channels.get(index)
        if channel is None:
            channel = self._channels[index] = self._connection.channel(self._connection.servers[index])
        method = channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.answer.FromString,
        )
        try:
            return await method(request, timeout=limit, metadata=self._connection.metadata())
        except grpc.aio.AioRpcError as failure:
            error, had_no_effect = from_aio(failure)
        raise requests.final(error, had_no_effect, is_repeatable)
