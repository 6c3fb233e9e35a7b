from windlass.v1 import task_pb2 as _task_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnqueueRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _task_pb2.NewTask
    def __init__(self, task: _Optional[_Union[_task_pb2.NewTask, _Mapping]] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ("task_id", "existing", "warnings", "cancelled")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    existing: bool
    warnings: _containers.RepeatedScalarFieldContainer[str]
    cancelled: bool
    def __init__(self, task_id: _Optional[str] = ..., existing: bool = ..., warnings: _Optional[_Iterable[str]] = ..., cancelled: bool = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_task_pb2.NewTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[_task_pb2.NewTask, _Mapping]]] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ("tasks", "warnings")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[EnqueuedTask]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tasks: _Optional[_Iterable[_Union[EnqueuedTask, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class EnqueuedTask(_message.Message):
    __slots__ = ("task_id", "existing", "cancelled")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    existing: bool
    cancelled: bool
    def __init__(self, task_id: _Optional[str] = ..., existing: bool = ..., cancelled: bool = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("state", "kind", "queue", "job", "workflow", "since_ms", "after", "limit", "until_ms", "cause", "worker_id", "key", "task_ids", "summary")
    STATE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    state: _task_pb2.TaskState
    kind: str
    queue: str
    job: str
    workflow: str
    since_ms: int
    after: str
    limit: int
    until_ms: int
    cause: str
    worker_id: str
    key: str
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    summary: bool
    def __init__(self, state: _Optional[_Union[_task_pb2.TaskState, str]] = ..., kind: _Optional[str] = ..., queue: _Optional[str] = ..., job: _Optional[str] = ..., workflow: _Optional[str] = ..., since_ms: _Optional[int] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., until_ms: _Optional[int] = ..., cause: _Optional[str] = ..., worker_id: _Optional[str] = ..., key: _Optional[str] = ..., task_ids: _Optional[_Iterable[str]] = ..., summary: bool = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_task_pb2.Task]
    next: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[_task_pb2.Task, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class WaitTasksRequest(_message.Message):
    __slots__ = ("task_ids", "timeout_ms")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    timeout_ms: int
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class WaitTasksResponse(_message.Message):
    __slots__ = ("ended", "missing")
    ENDED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    ended: _containers.RepeatedCompositeFieldContainer[_task_pb2.Task]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ended: _Optional[_Iterable[_Union[_task_pb2.Task, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelTasksRequest(_message.Message):
    __slots__ = ("task_ids", "reason")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class RetryTasksRequest(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[RetryTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[RetryTask, _Mapping]]] = ...) -> None: ...

class RetryTask(_message.Message):
    __slots__ = ("task_id", "delay_ms")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    delay_ms: int
    def __init__(self, task_id: _Optional[str] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class RepeatTaskRequest(_message.Message):
    __slots__ = ("task_id", "delay_ms")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    delay_ms: int
    def __init__(self, task_id: _Optional[str] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class RepeatTaskResponse(_message.Message):
    __slots__ = ("task_id", "state")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    state: _task_pb2.TaskState
    def __init__(self, task_id: _Optional[str] = ..., state: _Optional[_Union[_task_pb2.TaskState, str]] = ...) -> None: ...

class RemoveTasksRequest(_message.Message):
    __slots__ = ("task_ids",)
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class FindKeyRequest(_message.Message):
    __slots__ = ("queue", "key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    key: str
    def __init__(self, queue: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class FindKeyResponse(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...

class ChangedTasks(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[ChangedTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[ChangedTask, _Mapping]]] = ...) -> None: ...

class ChangedTask(_message.Message):
    __slots__ = ("task_id", "state", "error")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    state: _task_pb2.TaskState
    error: _task_pb2.Error
    def __init__(self, task_id: _Optional[str] = ..., state: _Optional[_Union[_task_pb2.TaskState, str]] = ..., error: _Optional[_Union[_task_pb2.Error, _Mapping]] = ...) -> None: ...
