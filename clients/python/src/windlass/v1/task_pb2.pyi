from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Encoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENCODING_JSON: _ClassVar[Encoding]
    ENCODING_BYTES: _ClassVar[Encoding]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_SCHEDULED: _ClassVar[TaskState]
    TASK_STATE_WAITING: _ClassVar[TaskState]
    TASK_STATE_HELD: _ClassVar[TaskState]
    TASK_STATE_READY: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_DONE: _ClassVar[TaskState]
    TASK_STATE_DEAD: _ClassVar[TaskState]
    TASK_STATE_CANCELLED: _ClassVar[TaskState]

class OnFailure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_FAILURE_UNSPECIFIED: _ClassVar[OnFailure]
    ON_FAILURE_BLOCK: _ClassVar[OnFailure]
    ON_FAILURE_SKIP: _ClassVar[OnFailure]
    ON_FAILURE_CANCEL: _ClassVar[OnFailure]

class AttemptResult(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_RESULT_UNSPECIFIED: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_DONE: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_RETRY: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_SNOOZED: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_RELEASED: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_CRASHED: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_CANCELLED: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_DEAD: _ClassVar[AttemptResult]
    ATTEMPT_RESULT_REDRIVEN: _ClassVar[AttemptResult]
ENCODING_JSON: Encoding
ENCODING_BYTES: Encoding
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_SCHEDULED: TaskState
TASK_STATE_WAITING: TaskState
TASK_STATE_HELD: TaskState
TASK_STATE_READY: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_DONE: TaskState
TASK_STATE_DEAD: TaskState
TASK_STATE_CANCELLED: TaskState
ON_FAILURE_UNSPECIFIED: OnFailure
ON_FAILURE_BLOCK: OnFailure
ON_FAILURE_SKIP: OnFailure
ON_FAILURE_CANCEL: OnFailure
ATTEMPT_RESULT_UNSPECIFIED: AttemptResult
ATTEMPT_RESULT_DONE: AttemptResult
ATTEMPT_RESULT_RETRY: AttemptResult
ATTEMPT_RESULT_SNOOZED: AttemptResult
ATTEMPT_RESULT_RELEASED: AttemptResult
ATTEMPT_RESULT_CRASHED: AttemptResult
ATTEMPT_RESULT_CANCELLED: AttemptResult
ATTEMPT_RESULT_DEAD: AttemptResult
ATTEMPT_RESULT_REDRIVEN: AttemptResult

class Payload(_message.Message):
    __slots__ = ("encoding", "data")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    encoding: Encoding
    data: bytes
    def __init__(self, encoding: _Optional[_Union[Encoding, str]] = ..., data: _Optional[bytes] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("base_ns", "max_ns", "jitter_percent")
    BASE_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    JITTER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    base_ns: int
    max_ns: int
    jitter_percent: int
    def __init__(self, base_ns: _Optional[int] = ..., max_ns: _Optional[int] = ..., jitter_percent: _Optional[int] = ...) -> None: ...

class NewTask(_message.Message):
    __slots__ = ("kind", "queue", "payload", "priority", "delay_ms", "run_at_ms", "key", "ignore_key_conflict", "max_attempts", "retry", "timeout_ms", "job", "workflow", "on_failure", "traceparent", "job_concurrency")
    KIND_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IGNORE_KEY_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    JOB_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    kind: str
    queue: str
    payload: Payload
    priority: int
    delay_ms: int
    run_at_ms: int
    key: str
    ignore_key_conflict: bool
    max_attempts: int
    retry: RetryPolicy
    timeout_ms: int
    job: str
    workflow: str
    on_failure: OnFailure
    traceparent: str
    job_concurrency: int
    def __init__(self, kind: _Optional[str] = ..., queue: _Optional[str] = ..., payload: _Optional[_Union[Payload, _Mapping]] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., run_at_ms: _Optional[int] = ..., key: _Optional[str] = ..., ignore_key_conflict: bool = ..., max_attempts: _Optional[int] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., job: _Optional[str] = ..., workflow: _Optional[str] = ..., on_failure: _Optional[_Union[OnFailure, str]] = ..., traceparent: _Optional[str] = ..., job_concurrency: _Optional[int] = ...) -> None: ...

class Lane(_message.Message):
    __slots__ = ("id", "queue", "kind")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    id: int
    queue: str
    kind: str
    def __init__(self, id: _Optional[int] = ..., queue: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("task_id", "lease", "worker_id", "attempt", "max_attempts", "retry", "job", "workflow")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    lease: int
    worker_id: str
    attempt: int
    max_attempts: int
    retry: RetryPolicy
    job: str
    workflow: str
    def __init__(self, task_id: _Optional[str] = ..., lease: _Optional[int] = ..., worker_id: _Optional[str] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., job: _Optional[str] = ..., workflow: _Optional[str] = ...) -> None: ...

class ClaimedTask(_message.Message):
    __slots__ = ("lease", "lane", "payload", "priority", "crashes", "claim_no", "timeout_ms", "traceparent", "claimed_at_ms")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    lease: Lease
    lane: Lane
    payload: Payload
    priority: int
    crashes: int
    claim_no: int
    timeout_ms: int
    traceparent: str
    claimed_at_ms: int
    def __init__(self, lease: _Optional[_Union[Lease, _Mapping]] = ..., lane: _Optional[_Union[Lane, _Mapping]] = ..., payload: _Optional[_Union[Payload, _Mapping]] = ..., priority: _Optional[int] = ..., crashes: _Optional[int] = ..., claim_no: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., traceparent: _Optional[str] = ..., claimed_at_ms: _Optional[int] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("attempt", "lease", "worker_id", "started_at_ms", "ended_at_ms", "result", "error")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    lease: int
    worker_id: str
    started_at_ms: int
    ended_at_ms: int
    result: AttemptResult
    error: str
    def __init__(self, attempt: _Optional[int] = ..., lease: _Optional[int] = ..., worker_id: _Optional[str] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., result: _Optional[_Union[AttemptResult, str]] = ..., error: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "state", "lane", "priority", "payload", "job", "workflow", "key", "lease", "attempt", "max_attempts", "crashes", "timeout_ms", "due_at_ms", "started_at_ms", "ended_at_ms", "worker_id", "progress", "output", "error", "cancel_requested", "attempts")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: TaskState
    lane: Lane
    priority: int
    payload: Payload
    job: str
    workflow: str
    key: str
    lease: int
    attempt: int
    max_attempts: int
    crashes: int
    timeout_ms: int
    due_at_ms: int
    started_at_ms: int
    ended_at_ms: int
    worker_id: str
    progress: str
    output: Payload
    error: str
    cancel_requested: str
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    def __init__(self, id: _Optional[str] = ..., state: _Optional[_Union[TaskState, str]] = ..., lane: _Optional[_Union[Lane, _Mapping]] = ..., priority: _Optional[int] = ..., payload: _Optional[_Union[Payload, _Mapping]] = ..., job: _Optional[str] = ..., workflow: _Optional[str] = ..., key: _Optional[str] = ..., lease: _Optional[int] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., due_at_ms: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., worker_id: _Optional[str] = ..., progress: _Optional[str] = ..., output: _Optional[_Union[Payload, _Mapping]] = ..., error: _Optional[str] = ..., cancel_requested: _Optional[str] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "hint", "detail", "key", "task_id")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    detail: str
    key: str
    task_id: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., detail: _Optional[str] = ..., key: _Optional[str] = ..., task_id: _Optional[str] = ...) -> None: ...
