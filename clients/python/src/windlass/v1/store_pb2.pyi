from windlass.v1 import control_pb2 as _control_pb2
from windlass.v1 import task_pb2 as _task_pb2
from windlass.v1 import workers_pb2 as _workers_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Rest(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REST_MORE: _ClassVar[Rest]
    REST_NOTHING: _ClassVar[Rest]
    REST_BLOCKED: _ClassVar[Rest]

class Duty(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DUTY_UNSPECIFIED: _ClassVar[Duty]
    DUTY_ADMIT: _ClassVar[Duty]
    DUTY_PROMOTE_DUE: _ClassVar[Duty]
    DUTY_EXPIRE_WORKERS: _ClassVar[Duty]
    DUTY_RETAIN: _ClassVar[Duty]
REST_MORE: Rest
REST_NOTHING: Rest
REST_BLOCKED: Rest
DUTY_UNSPECIFIED: Duty
DUTY_ADMIT: Duty
DUTY_PROMOTE_DUE: Duty
DUTY_EXPIRE_WORKERS: Duty
DUTY_RETAIN: Duty

class GetRulesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Rules(_message.Message):
    __slots__ = ("max_attempts", "max_crashes", "payload_max_bytes", "output_max_bytes", "error_max_bytes", "batch_max", "idempotency_ttl_ms", "retry", "job_default_concurrency")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_CRASHES_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    BATCH_MAX_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    JOB_DEFAULT_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    max_crashes: int
    payload_max_bytes: int
    output_max_bytes: int
    error_max_bytes: int
    batch_max: int
    idempotency_ttl_ms: int
    retry: _task_pb2.RetryPolicy
    job_default_concurrency: int
    def __init__(self, max_attempts: _Optional[int] = ..., max_crashes: _Optional[int] = ..., payload_max_bytes: _Optional[int] = ..., output_max_bytes: _Optional[int] = ..., error_max_bytes: _Optional[int] = ..., batch_max: _Optional[int] = ..., idempotency_ttl_ms: _Optional[int] = ..., retry: _Optional[_Union[_task_pb2.RetryPolicy, _Mapping]] = ..., job_default_concurrency: _Optional[int] = ...) -> None: ...

class GetInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Info(_message.Message):
    __slots__ = ("backend", "location", "engine_version", "schema_version", "bytes", "wal_bytes", "free_disk_bytes", "history_rows", "history_bytes", "durable", "created", "recovered")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_ROWS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FIELD_NUMBER: _ClassVar[int]
    backend: str
    location: str
    engine_version: str
    schema_version: int
    bytes: int
    wal_bytes: int
    free_disk_bytes: int
    history_rows: int
    history_bytes: int
    durable: bool
    created: bool
    recovered: int
    def __init__(self, backend: _Optional[str] = ..., location: _Optional[str] = ..., engine_version: _Optional[str] = ..., schema_version: _Optional[int] = ..., bytes: _Optional[int] = ..., wal_bytes: _Optional[int] = ..., free_disk_bytes: _Optional[int] = ..., history_rows: _Optional[int] = ..., history_bytes: _Optional[int] = ..., durable: bool = ..., created: bool = ..., recovered: _Optional[int] = ...) -> None: ...

class ListLanesRequest(_message.Message):
    __slots__ = ("kinds", "queues")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kinds: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ...) -> None: ...

class ListLanesResponse(_message.Message):
    __slots__ = ("lanes",)
    LANES_FIELD_NUMBER: _ClassVar[int]
    lanes: _containers.RepeatedCompositeFieldContainer[_task_pb2.Lane]
    def __init__(self, lanes: _Optional[_Iterable[_Union[_task_pb2.Lane, _Mapping]]] = ...) -> None: ...

class ClaimForRequest(_message.Message):
    __slots__ = ("demands",)
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    demands: _containers.RepeatedCompositeFieldContainer[Demand]
    def __init__(self, demands: _Optional[_Iterable[_Union[Demand, _Mapping]]] = ...) -> None: ...

class Demand(_message.Message):
    __slots__ = ("worker_id", "claim_no", "lanes", "max_tasks", "prefers")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    PREFERS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim_no: int
    lanes: _containers.RepeatedScalarFieldContainer[int]
    max_tasks: int
    prefers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, worker_id: _Optional[str] = ..., claim_no: _Optional[int] = ..., lanes: _Optional[_Iterable[int]] = ..., max_tasks: _Optional[int] = ..., prefers: _Optional[_Iterable[str]] = ...) -> None: ...

class ClaimForResponse(_message.Message):
    __slots__ = ("tasks", "rest", "next_due_ms", "now_ms")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
    NEXT_DUE_MS_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_task_pb2.ClaimedTask]
    rest: Rest
    next_due_ms: int
    now_ms: int
    def __init__(self, tasks: _Optional[_Iterable[_Union[_task_pb2.ClaimedTask, _Mapping]]] = ..., rest: _Optional[_Union[Rest, str]] = ..., next_due_ms: _Optional[int] = ..., now_ms: _Optional[int] = ...) -> None: ...

class UnclaimRequest(_message.Message):
    __slots__ = ("worker_id", "claim_no")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim_no: int
    def __init__(self, worker_id: _Optional[str] = ..., claim_no: _Optional[int] = ...) -> None: ...

class DutyRequest(_message.Message):
    __slots__ = ("duty", "limit", "retention")
    DUTY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    duty: Duty
    limit: int
    retention: Retention
    def __init__(self, duty: _Optional[_Union[Duty, str]] = ..., limit: _Optional[int] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ...) -> None: ...

class Retention(_message.Message):
    __slots__ = ("history_age_ms", "history_max_bytes", "dead_age_ms")
    HISTORY_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEAD_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    history_age_ms: int
    history_max_bytes: int
    dead_age_ms: int
    def __init__(self, history_age_ms: _Optional[int] = ..., history_max_bytes: _Optional[int] = ..., dead_age_ms: _Optional[int] = ...) -> None: ...

class DutyReport(_message.Message):
    __slots__ = ("moved", "workers", "lanes_ready", "next_due_ms", "more")
    MOVED_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    LANES_READY_FIELD_NUMBER: _ClassVar[int]
    NEXT_DUE_MS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    moved: int
    workers: _containers.RepeatedScalarFieldContainer[str]
    lanes_ready: _containers.RepeatedScalarFieldContainer[int]
    next_due_ms: int
    more: bool
    def __init__(self, moved: _Optional[int] = ..., workers: _Optional[_Iterable[str]] = ..., lanes_ready: _Optional[_Iterable[int]] = ..., next_due_ms: _Optional[int] = ..., more: bool = ...) -> None: ...

class WatchHintsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Hint(_message.Message):
    __slots__ = ("ready", "due_ms", "lanes", "cancel", "listening")
    class Ready(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class LanesChanged(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Listening(_message.Message):
        __slots__ = ("hears_of_new_tasks",)
        HEARS_OF_NEW_TASKS_FIELD_NUMBER: _ClassVar[int]
        hears_of_new_tasks: bool
        def __init__(self, hears_of_new_tasks: bool = ...) -> None: ...
    READY_FIELD_NUMBER: _ClassVar[int]
    DUE_MS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    LISTENING_FIELD_NUMBER: _ClassVar[int]
    ready: Hint.Ready
    due_ms: int
    lanes: Hint.LanesChanged
    cancel: _workers_pb2.Cancellation
    listening: Hint.Listening
    def __init__(self, ready: _Optional[_Union[Hint.Ready, _Mapping]] = ..., due_ms: _Optional[int] = ..., lanes: _Optional[_Union[Hint.LanesChanged, _Mapping]] = ..., cancel: _Optional[_Union[_workers_pb2.Cancellation, _Mapping]] = ..., listening: _Optional[_Union[Hint.Listening, _Mapping]] = ...) -> None: ...

class AuditRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AuditResponse(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("task_id", "promise", "detail")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PROMISE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    promise: str
    detail: str
    def __init__(self, task_id: _Optional[str] = ..., promise: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class GetReadyLinesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadyLines(_message.Message):
    __slots__ = ("last", "heads")
    class Head(_message.Message):
        __slots__ = ("lane", "queue", "place")
        LANE_FIELD_NUMBER: _ClassVar[int]
        QUEUE_FIELD_NUMBER: _ClassVar[int]
        PLACE_FIELD_NUMBER: _ClassVar[int]
        lane: int
        queue: str
        place: int
        def __init__(self, lane: _Optional[int] = ..., queue: _Optional[str] = ..., place: _Optional[int] = ...) -> None: ...
    LAST_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    last: int
    heads: _containers.RepeatedCompositeFieldContainer[ReadyLines.Head]
    def __init__(self, last: _Optional[int] = ..., heads: _Optional[_Iterable[_Union[ReadyLines.Head, _Mapping]]] = ...) -> None: ...

class ViewGatesRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _task_pb2.Task
    def __init__(self, task: _Optional[_Union[_task_pb2.Task, _Mapping]] = ...) -> None: ...

class GateView(_message.Message):
    __slots__ = ("job", "occupants", "workflow")
    JOB_FIELD_NUMBER: _ClassVar[int]
    OCCUPANTS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    job: _control_pb2.Job
    occupants: _containers.RepeatedScalarFieldContainer[str]
    workflow: _control_pb2.Workflow
    def __init__(self, job: _Optional[_Union[_control_pb2.Job, _Mapping]] = ..., occupants: _Optional[_Iterable[str]] = ..., workflow: _Optional[_Union[_control_pb2.Workflow, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("name", "spec", "paused", "next_at_ms", "last_at_ms", "last_task")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_TASK_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: str
    paused: bool
    next_at_ms: int
    last_at_ms: int
    last_task: str
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[str] = ..., paused: bool = ..., next_at_ms: _Optional[int] = ..., last_at_ms: _Optional[int] = ..., last_task: _Optional[str] = ...) -> None: ...

class PutScheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules",)
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[Schedule]
    def __init__(self, schedules: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ...) -> None: ...

class RemoveScheduleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveScheduleResponse(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: bool
    def __init__(self, removed: bool = ...) -> None: ...

class DueSchedulesRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class DueSchedulesResponse(_message.Message):
    __slots__ = ("now_ms", "due", "next_at_ms")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    due: _containers.RepeatedCompositeFieldContainer[Schedule]
    next_at_ms: int
    def __init__(self, now_ms: _Optional[int] = ..., due: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ..., next_at_ms: _Optional[int] = ...) -> None: ...

class FireScheduleRequest(_message.Message):
    __slots__ = ("name", "tick_ms", "task", "next_at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TICK_MS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tick_ms: int
    task: _task_pb2.NewTask
    next_at_ms: int
    def __init__(self, name: _Optional[str] = ..., tick_ms: _Optional[int] = ..., task: _Optional[_Union[_task_pb2.NewTask, _Mapping]] = ..., next_at_ms: _Optional[int] = ...) -> None: ...

class FireScheduleResponse(_message.Message):
    __slots__ = ("fired", "task_id", "existing")
    FIRED_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    fired: bool
    task_id: str
    existing: bool
    def __init__(self, fired: bool = ..., task_id: _Optional[str] = ..., existing: bool = ...) -> None: ...
