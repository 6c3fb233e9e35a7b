from windlass.v1 import task_pb2 as _task_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_ACTIVE: _ClassVar[JobState]
    JOB_STATE_PAUSED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
    JOB_STATE_REMOVING: _ClassVar[JobState]

class WorkflowAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKFLOW_ACTION_UNSPECIFIED: _ClassVar[WorkflowAction]
    WORKFLOW_ACTION_RETRY: _ClassVar[WorkflowAction]
    WORKFLOW_ACTION_SKIP: _ClassVar[WorkflowAction]
    WORKFLOW_ACTION_CANCEL: _ClassVar[WorkflowAction]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_ACTIVE: JobState
JOB_STATE_PAUSED: JobState
JOB_STATE_CANCELLED: JobState
JOB_STATE_REMOVING: JobState
WORKFLOW_ACTION_UNSPECIFIED: WorkflowAction
WORKFLOW_ACTION_RETRY: WorkflowAction
WORKFLOW_ACTION_SKIP: WorkflowAction
WORKFLOW_ACTION_CANCEL: WorkflowAction

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("lanes", "paused")
    LANES_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    lanes: _containers.RepeatedCompositeFieldContainer[Queue]
    paused: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lanes: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., paused: _Optional[_Iterable[str]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("queue", "kind", "paused", "scheduled", "waiting", "held", "ready", "running", "dead", "at_least", "about")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    kind: str
    paused: bool
    scheduled: int
    waiting: int
    held: int
    ready: int
    running: int
    dead: int
    at_least: _containers.RepeatedScalarFieldContainer[_task_pb2.TaskState]
    about: _containers.RepeatedScalarFieldContainer[_task_pb2.TaskState]
    def __init__(self, queue: _Optional[str] = ..., kind: _Optional[str] = ..., paused: bool = ..., scheduled: _Optional[int] = ..., waiting: _Optional[int] = ..., held: _Optional[int] = ..., ready: _Optional[int] = ..., running: _Optional[int] = ..., dead: _Optional[int] = ..., at_least: _Optional[_Iterable[_Union[_task_pb2.TaskState, str]]] = ..., about: _Optional[_Iterable[_Union[_task_pb2.TaskState, str]]] = ...) -> None: ...

class SetQueueRequest(_message.Message):
    __slots__ = ("queue", "paused")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    paused: bool
    def __init__(self, queue: _Optional[str] = ..., paused: bool = ...) -> None: ...

class SetQueueResponse(_message.Message):
    __slots__ = ("changed",)
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    def __init__(self, changed: bool = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "state", "concurrency", "delay_ms", "created_at_ms", "last_start_ms", "ready", "running", "held")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_START_MS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: JobState
    concurrency: int
    delay_ms: int
    created_at_ms: int
    last_start_ms: int
    ready: int
    running: int
    held: int
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., concurrency: _Optional[int] = ..., delay_ms: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., last_start_ms: _Optional[int] = ..., ready: _Optional[int] = ..., running: _Optional[int] = ..., held: _Optional[int] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("after", "limit")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    after: str
    limit: int
    def __init__(self, after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SetJobRequest(_message.Message):
    __slots__ = ("name", "concurrency", "no_concurrency", "delay_ms", "no_delay", "state", "now")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    NO_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    NO_DELAY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    concurrency: int
    no_concurrency: bool
    delay_ms: int
    no_delay: bool
    state: JobState
    now: bool
    def __init__(self, name: _Optional[str] = ..., concurrency: _Optional[int] = ..., no_concurrency: bool = ..., delay_ms: _Optional[int] = ..., no_delay: bool = ..., state: _Optional[_Union[JobState, str]] = ..., now: bool = ...) -> None: ...

class RemoveJobRequest(_message.Message):
    __slots__ = ("name", "now")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    now: bool
    def __init__(self, name: _Optional[str] = ..., now: bool = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    def __init__(self, tasks: _Optional[int] = ...) -> None: ...

class Workflow(_message.Message):
    __slots__ = ("name", "on_failure", "created_at_ms", "head", "head_state", "blocked_by", "steps")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    HEAD_STATE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    on_failure: _task_pb2.OnFailure
    created_at_ms: int
    head: str
    head_state: _task_pb2.TaskState
    blocked_by: str
    steps: int
    def __init__(self, name: _Optional[str] = ..., on_failure: _Optional[_Union[_task_pb2.OnFailure, str]] = ..., created_at_ms: _Optional[int] = ..., head: _Optional[str] = ..., head_state: _Optional[_Union[_task_pb2.TaskState, str]] = ..., blocked_by: _Optional[str] = ..., steps: _Optional[int] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("blocked", "after", "limit")
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    blocked: bool
    after: str
    limit: int
    def __init__(self, blocked: bool = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListWorkflowsResponse(_message.Message):
    __slots__ = ("workflows",)
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[Workflow]
    def __init__(self, workflows: _Optional[_Iterable[_Union[Workflow, _Mapping]]] = ...) -> None: ...

class GetWorkflowRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ChangeWorkflowRequest(_message.Message):
    __slots__ = ("name", "action")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    action: WorkflowAction
    def __init__(self, name: _Optional[str] = ..., action: _Optional[_Union[WorkflowAction, str]] = ...) -> None: ...
