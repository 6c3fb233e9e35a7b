"""The queues and jobs of a client, without asyncio: every call blocks its thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from windlass import calls, control
from windlass.calls import Answer, Call, Request
from windlass.control import Depth, Job, JobState, Queue
from windlass.v1 import control_pb2


class Caller(Protocol):
    """What makes a call and gives its answer."""

    def __call__(self, call: Call[Request, Answer], request: Request, *, is_repeatable: bool = True) -> Answer: ...


class Queues:
    """The queues: how many tasks each has, pause and resume."""

    def __init__(self, call: Caller) -> None:
        self._call = call

    def list(self) -> Sequence[Queue]:
        """Every queue, by name."""
        return control.queues(self._call(calls.LIST_QUEUES, control_pb2.ListQueuesRequest()))

    def depth(self, name: str) -> Depth:
        """How many tasks of a queue are in each state; none of a queue that the server does not know."""
        return control.depth(name, self._call(calls.LIST_QUEUES, control_pb2.ListQueuesRequest()))

    def pause(self, name: str) -> bool:
        """Stops claims from a queue, also from one without a task; what runs goes on. Answers whether that is new."""
        return self._call(calls.SET_QUEUE, control_pb2.SetQueueRequest(queue=name, paused=True)).changed

    def resume(self, name: str) -> bool:
        """Lets tasks of a paused queue be claimed again. Answers whether that is new."""
        return self._call(calls.SET_QUEUE, control_pb2.SetQueueRequest(queue=name, paused=False)).changed


class Jobs:
    """The jobs: their limits and delays, pause, resume, cancel and remove. A job is there from its first task on, or once
    it was set."""

    def __init__(self, call: Caller) -> None:
        self._call = call

    def list(self) -> Iterator[Job]:
        """Jobs by name, page after page."""
        after = ""
        while True:
            page = self._call(calls.LIST_JOBS, control_pb2.ListJobsRequest(after=after, limit=control.PAGE))
            for job in page.jobs:
                yield Job._of_proto(job)
            if len(page.jobs) < control.PAGE:
                return
            after = page.jobs[-1].name

    def get(self, name: str) -> Job:
        """One job."""
        return Job._of_proto(self._call(calls.GET_JOB, control_pb2.GetJobRequest(name=name)))

    def set_concurrency(self, name: str, limit: int | None) -> Job:
        """Sets how many tasks of a job run at once at most, over all workers; ``None`` takes the limit away. Makes the job
        if it is not there."""
        return self._set(control.limit_job(name, limit))

    def set_delay(self, name: str, seconds: float | None) -> Job:
        """Sets the least time between two starts; ``None`` takes it away. Makes the job if it is not there."""
        return self._set(control.delay_job(name, seconds))

    def pause(self, name: str) -> Job:
        """Starts nothing more of a job; what runs goes on."""
        return self._change(control.change_job(name, JobState.PAUSED))

    def resume(self, name: str) -> Job:
        """Starts tasks of a paused or cancelled job again."""
        return self._change(control.change_job(name, JobState.ACTIVE))

    def cancel(self, name: str, *, now: bool = False) -> Job:
        """Cancels what waits in a job and what comes; with ``now`` also asks what runs to end."""
        return self._change(control.change_job(name, JobState.CANCELLED, now))

    def remove(self, name: str, *, now: bool = False) -> int:
        """Cancels what waits in a job and forgets the job when the last task that runs has ended. Answers how many tasks were
        cancelled."""
        request = control_pb2.RemoveJobRequest(name=name, now=now)
        return self._call(calls.REMOVE_JOB, request, is_repeatable=False).tasks

    def _change(self, request: control_pb2.SetJobRequest) -> Job:
        # A slip of the pen must not make another job.
        self.get(request.name)
        return self._set(request)

    def _set(self, request: control_pb2.SetJobRequest) -> Job:
        return Job._of_proto(self._call(calls.SET_JOB, request))
