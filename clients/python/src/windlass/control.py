"""Queues and jobs as one looks at them, and what clients ask about them; the same for asyncio and for threads."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import cast

from windlass.task import TaskState, milliseconds
from windlass.v1 import control_pb2

__all__ = ["Depth", "Job", "JobState", "Queue"]

#: How many jobs a page of a list has.
PAGE = 200
#: The server counts the held tasks of a job up to this.
HELD_MAX = 10_000


@dataclass(frozen=True)
class Depth:
    """How many tasks are in each state; done and cancelled ones are not counted."""

    scheduled: int = 0
    waiting: int = 0
    held: int = 0
    ready: int = 0
    running: int = 0
    dead: int = 0
    #: States that were counted up to a bound: there are at least so many.
    at_least: frozenset[TaskState] = frozenset()
    #: States that were counted a while ago: there are about so many.
    about: frozenset[TaskState] = frozenset()

    def __add__(self, other: Depth) -> Depth:
        return Depth(
            scheduled=self.scheduled + other.scheduled,
            waiting=self.waiting + other.waiting,
            held=self.held + other.held,
            ready=self.ready + other.ready,
            running=self.running + other.running,
            dead=self.dead + other.dead,
            at_least=self.at_least | other.at_least,
            about=self.about | other.about,
        )

    @classmethod
    def _of_proto(cls, lane: control_pb2.Queue) -> Depth:
        return cls(
            scheduled=lane.scheduled,
            waiting=lane.waiting,
            held=lane.held,
            ready=lane.ready,
            running=lane.running,
            dead=lane.dead,
            at_least=frozenset(TaskState._of_proto(state) for state in lane.at_least),
            about=frozenset(TaskState._of_proto(state) for state in lane.about),
        )


@dataclass(frozen=True)
class Queue:
    """A queue."""

    name: str
    #: Whether nothing is claimed from it.
    paused: bool
    #: How many tasks of each kind are in each state; none for a queue that was paused before its first task.
    kinds: Mapping[str, Depth]

    @property
    def depth(self) -> Depth:
        """How many tasks of all kinds are in each state."""
        return sum(self.kinds.values(), Depth())


class JobState(enum.Enum):
    """What a job lets through."""

    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    #: What waited was cancelled; the job is forgotten when the last task that runs has ended.
    REMOVING = "removing"

    @property
    def _proto(self) -> control_pb2.JobState:
        return cast("control_pb2.JobState", control_pb2.JobState.Value(f"JOB_STATE_{self.name}"))


@dataclass(frozen=True)
class Job:
    """A job: a group of tasks under one limit."""

    name: str
    state: JobState
    #: How many of its tasks run at once at most, over all workers; ``None`` without a limit.
    concurrency: int | None
    #: The least seconds between two starts.
    delay: float | None
    running: int
    ready: int
    #: Tasks that wait for room, counted up to 10,000.
    held: int
    created_at: datetime

    @property
    def held_at_least(self) -> bool:
        """Whether more tasks may wait for room than were counted."""
        return self.held >= HELD_MAX

    @classmethod
    def _of_proto(cls, job: control_pb2.Job) -> Job:
        return cls(
            name=job.name,
            state=JobState[control_pb2.JobState.Name(job.state).removeprefix("JOB_STATE_")],
            concurrency=job.concurrency if job.HasField("concurrency") else None,
            delay=job.delay_ms / 1000 if job.HasField("delay_ms") else None,
            running=job.running,
            ready=job.ready,
            held=job.held,
            created_at=datetime.fromtimestamp(job.created_at_ms / 1000, tz=timezone.utc),
        )


def queues(answer: control_pb2.ListQueuesResponse) -> Sequence[Queue]:
    """Every queue, by name."""
    paused = set(answer.paused)
    kinds: dict[str, dict[str, Depth]] = {name: {} for name in paused}
    for lane in answer.lanes:
        kinds.setdefault(lane.queue, {})[lane.kind] = Depth._of_proto(lane)
        if lane.paused:
            paused.add(lane.queue)
    return [Queue(name, name in paused, kinds[name]) for name in sorted(kinds)]


def depth(name: str, answer: control_pb2.ListQueuesResponse) -> Depth:
    """The depth of one queue; nothing for one that the server does not know."""
    return sum((queue.depth for queue in queues(answer) if queue.name == name), Depth())


def limit_job(name: str, limit: int | None) -> control_pb2.SetJobRequest:
    """Sets or takes away the limit of a job."""
    if limit is None:
        return control_pb2.SetJobRequest(name=name, no_concurrency=True)
    return control_pb2.SetJobRequest(name=name, concurrency=limit)


def delay_job(name: str, seconds: float | None) -> control_pb2.SetJobRequest:
    """Sets or takes away the delay of a job."""
    if not seconds:
        return control_pb2.SetJobRequest(name=name, no_delay=True)
    return control_pb2.SetJobRequest(name=name, delay_ms=milliseconds(seconds))


def change_job(name: str, state: JobState, now: bool = False) -> control_pb2.SetJobRequest:
    """Sets the state of a job."""
    return control_pb2.SetJobRequest(name=name, state=state._proto, now=now)
