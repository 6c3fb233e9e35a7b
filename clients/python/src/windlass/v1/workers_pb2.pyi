from windlass.v1 import task_pb2 as _task_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterRequest(_message.Message):
    __slots__ = ("host", "pid", "version", "kinds", "queues", "max_capacity", "lease_ttl_ms")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    host: str
    pid: int
    version: str
    kinds: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    max_capacity: int
    lease_ttl_ms: int
    def __init__(self, host: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., kinds: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., max_capacity: _Optional[int] = ..., lease_ttl_ms: _Optional[int] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("worker_id", "lease_ttl_ms")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    lease_ttl_ms: int
    def __init__(self, worker_id: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("worker_id", "available_capacity", "max_capacity", "memory_usage", "in_flight", "draining", "factor", "reason", "counts")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USAGE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    available_capacity: int
    max_capacity: int
    memory_usage: float
    in_flight: int
    draining: bool
    factor: float
    reason: str
    counts: _containers.RepeatedCompositeFieldContainer[QueueCounts]
    def __init__(self, worker_id: _Optional[str] = ..., available_capacity: _Optional[int] = ..., max_capacity: _Optional[int] = ..., memory_usage: _Optional[float] = ..., in_flight: _Optional[int] = ..., draining: bool = ..., factor: _Optional[float] = ..., reason: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[QueueCounts, _Mapping]]] = ...) -> None: ...

class QueueCounts(_message.Message):
    __slots__ = ("queue", "started", "done", "retried", "dead", "cancelled", "returned", "busy_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    RETRIED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    BUSY_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    started: int
    done: int
    retried: int
    dead: int
    cancelled: int
    returned: int
    busy_ms: int
    def __init__(self, queue: _Optional[str] = ..., started: _Optional[int] = ..., done: _Optional[int] = ..., retried: _Optional[int] = ..., dead: _Optional[int] = ..., cancelled: _Optional[int] = ..., returned: _Optional[int] = ..., busy_ms: _Optional[int] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("cancels", "max_capacity", "lease_epoch")
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    LEASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    cancels: _containers.RepeatedCompositeFieldContainer[Cancellation]
    max_capacity: int
    lease_epoch: int
    def __init__(self, cancels: _Optional[_Iterable[_Union[Cancellation, _Mapping]]] = ..., max_capacity: _Optional[int] = ..., lease_epoch: _Optional[int] = ...) -> None: ...

class Cancellation(_message.Message):
    __slots__ = ("task_id", "lease", "reason")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    lease: int
    reason: str
    def __init__(self, task_id: _Optional[str] = ..., lease: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TaskHeartbeatRequest(_message.Message):
    __slots__ = ("worker_id", "task_id", "lease")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    task_id: str
    lease: int
    def __init__(self, worker_id: _Optional[str] = ..., task_id: _Optional[str] = ..., lease: _Optional[int] = ...) -> None: ...

class TaskHeartbeatResponse(_message.Message):
    __slots__ = ("cancel_requested",)
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    cancel_requested: str
    def __init__(self, cancel_requested: _Optional[str] = ...) -> None: ...

class RetireRequest(_message.Message):
    __slots__ = ("worker_id",)
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    def __init__(self, worker_id: _Optional[str] = ...) -> None: ...

class Moved(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    def __init__(self, tasks: _Optional[int] = ...) -> None: ...

class ClaimRequest(_message.Message):
    __slots__ = ("worker_id", "max_tasks", "kinds", "queues", "wait_ms")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    max_tasks: int
    kinds: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    wait_ms: int
    def __init__(self, worker_id: _Optional[str] = ..., max_tasks: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class ClaimResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_task_pb2.ClaimedTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[_task_pb2.ClaimedTask, _Mapping]]] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ("lease", "output")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    lease: _task_pb2.Lease
    output: _task_pb2.Payload
    def __init__(self, lease: _Optional[_Union[_task_pb2.Lease, _Mapping]] = ..., output: _Optional[_Union[_task_pb2.Payload, _Mapping]] = ...) -> None: ...

class FailRequest(_message.Message):
    __slots__ = ("lease", "error", "retry_after_ms", "fatal")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    FATAL_FIELD_NUMBER: _ClassVar[int]
    lease: _task_pb2.Lease
    error: str
    retry_after_ms: int
    fatal: bool
    def __init__(self, lease: _Optional[_Union[_task_pb2.Lease, _Mapping]] = ..., error: _Optional[str] = ..., retry_after_ms: _Optional[int] = ..., fatal: bool = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("lease", "delay_ms")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    lease: _task_pb2.Lease
    delay_ms: int
    def __init__(self, lease: _Optional[_Union[_task_pb2.Lease, _Mapping]] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class SettledTask(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _task_pb2.TaskState
    def __init__(self, state: _Optional[_Union[_task_pb2.TaskState, str]] = ...) -> None: ...

class ProgressRequest(_message.Message):
    __slots__ = ("worker_id", "task_id", "lease", "progress")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    task_id: str
    lease: int
    progress: str
    def __init__(self, worker_id: _Optional[str] = ..., task_id: _Optional[str] = ..., lease: _Optional[int] = ..., progress: _Optional[str] = ...) -> None: ...

class ProgressResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReconcileRequest(_message.Message):
    __slots__ = ("worker_id", "up_to_claim_no", "in_flight")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    UP_TO_CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    up_to_claim_no: int
    in_flight: _containers.RepeatedCompositeFieldContainer[Held]
    def __init__(self, worker_id: _Optional[str] = ..., up_to_claim_no: _Optional[int] = ..., in_flight: _Optional[_Iterable[_Union[Held, _Mapping]]] = ...) -> None: ...

class ReconcileResponse(_message.Message):
    __slots__ = ("tasks", "lost")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    lost: _containers.RepeatedCompositeFieldContainer[Held]
    def __init__(self, tasks: _Optional[int] = ..., lost: _Optional[_Iterable[_Union[Held, _Mapping]]] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("task_id", "lease")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    lease: int
    def __init__(self, task_id: _Optional[str] = ..., lease: _Optional[int] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers",)
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "host", "pid", "version", "kinds", "queues", "max_capacity", "available_capacity", "in_flight", "memory_usage", "factor", "reason", "draining", "live", "ended", "registered_at_ms", "renewed_at_ms", "counts")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USAGE_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RENEWED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    host: str
    pid: int
    version: str
    kinds: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    max_capacity: int
    available_capacity: int
    in_flight: int
    memory_usage: float
    factor: float
    reason: str
    draining: bool
    live: bool
    ended: bool
    registered_at_ms: int
    renewed_at_ms: int
    counts: _containers.RepeatedCompositeFieldContainer[QueueCounts]
    def __init__(self, worker_id: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., kinds: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., max_capacity: _Optional[int] = ..., available_capacity: _Optional[int] = ..., in_flight: _Optional[int] = ..., memory_usage: _Optional[float] = ..., factor: _Optional[float] = ..., reason: _Optional[str] = ..., draining: bool = ..., live: bool = ..., ended: bool = ..., registered_at_ms: _Optional[int] = ..., renewed_at_ms: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[QueueCounts, _Mapping]]] = ...) -> None: ...

class SetWorkerRequest(_message.Message):
    __slots__ = ("worker_id", "max_capacity")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    max_capacity: int
    def __init__(self, worker_id: _Optional[str] = ..., max_capacity: _Optional[int] = ...) -> None: ...

class SetWorkerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("held", "job", "workflow", "done", "retry", "snooze", "release", "dead", "cancelled")
    HELD_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    SNOOZE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    held: Held
    job: str
    workflow: str
    done: Done
    retry: RetryAt
    snooze: SnoozeUntil
    release: HandBack
    dead: Dead
    cancelled: Cancelled
    def __init__(self, held: _Optional[_Union[Held, _Mapping]] = ..., job: _Optional[str] = ..., workflow: _Optional[str] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., retry: _Optional[_Union[RetryAt, _Mapping]] = ..., snooze: _Optional[_Union[SnoozeUntil, _Mapping]] = ..., release: _Optional[_Union[HandBack, _Mapping]] = ..., dead: _Optional[_Union[Dead, _Mapping]] = ..., cancelled: _Optional[_Union[Cancelled, _Mapping]] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("output", "note")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    output: _task_pb2.Payload
    note: str
    def __init__(self, output: _Optional[_Union[_task_pb2.Payload, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class RetryAt(_message.Message):
    __slots__ = ("due_at_ms", "error")
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    due_at_ms: int
    error: str
    def __init__(self, due_at_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class SnoozeUntil(_message.Message):
    __slots__ = ("due_at_ms",)
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    due_at_ms: int
    def __init__(self, due_at_ms: _Optional[int] = ...) -> None: ...

class HandBack(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Dead(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: str
    def __init__(self, error: _Optional[str] = ...) -> None: ...

class Cancelled(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class SettleBatch(_message.Message):
    __slots__ = ("worker_id", "settler_no", "batch_no", "items")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SETTLER_NO_FIELD_NUMBER: _ClassVar[int]
    BATCH_NO_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    settler_no: int
    batch_no: int
    items: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, worker_id: _Optional[str] = ..., settler_no: _Optional[int] = ..., batch_no: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("fenced", "lanes_ready", "next_due_ms", "replayed")
    FENCED_FIELD_NUMBER: _ClassVar[int]
    LANES_READY_FIELD_NUMBER: _ClassVar[int]
    NEXT_DUE_MS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    fenced: _containers.RepeatedScalarFieldContainer[str]
    lanes_ready: _containers.RepeatedScalarFieldContainer[int]
    next_due_ms: int
    replayed: bool
    def __init__(self, fenced: _Optional[_Iterable[str]] = ..., lanes_ready: _Optional[_Iterable[int]] = ..., next_due_ms: _Optional[int] = ..., replayed: bool = ...) -> None: ...

class WorkUp(_message.Message):
    __slots__ = ("hello", "credit", "settle", "heartbeat", "progress", "complete", "fail", "release")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    FAIL_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    credit: Credit
    settle: SettleBatch
    heartbeat: HeartbeatRequest
    progress: ProgressRequest
    complete: CompleteRequest
    fail: FailRequest
    release: ReleaseRequest
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., settle: _Optional[_Union[SettleBatch, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatRequest, _Mapping]] = ..., progress: _Optional[_Union[ProgressRequest, _Mapping]] = ..., complete: _Optional[_Union[CompleteRequest, _Mapping]] = ..., fail: _Optional[_Union[FailRequest, _Mapping]] = ..., release: _Optional[_Union[ReleaseRequest, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("worker_id", "register", "in_flight", "up_to_claim_no")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    UP_TO_CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    register: RegisterRequest
    in_flight: _containers.RepeatedCompositeFieldContainer[Held]
    up_to_claim_no: int
    def __init__(self, worker_id: _Optional[str] = ..., register: _Optional[_Union[RegisterRequest, _Mapping]] = ..., in_flight: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., up_to_claim_no: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    def __init__(self, tasks: _Optional[int] = ...) -> None: ...

class WorkDown(_message.Message):
    __slots__ = ("welcome", "tasks", "settled", "heartbeat", "cancel", "drain", "end")
    class Tasks(_message.Message):
        __slots__ = ("tasks",)
        TASKS_FIELD_NUMBER: _ClassVar[int]
        tasks: _containers.RepeatedCompositeFieldContainer[_task_pb2.ClaimedTask]
        def __init__(self, tasks: _Optional[_Iterable[_Union[_task_pb2.ClaimedTask, _Mapping]]] = ...) -> None: ...
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    tasks: WorkDown.Tasks
    settled: SettledBatch
    heartbeat: HeartbeatAnswer
    cancel: Cancellation
    drain: Drain
    end: EndAnswer
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., tasks: _Optional[_Union[WorkDown.Tasks, _Mapping]] = ..., settled: _Optional[_Union[SettledBatch, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatAnswer, _Mapping]] = ..., cancel: _Optional[_Union[Cancellation, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., end: _Optional[_Union[EndAnswer, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("worker_id", "lease_ttl_ms", "handed_back", "now_ms", "claim_no", "lost")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    HANDED_BACK_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NO_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    lease_ttl_ms: int
    handed_back: int
    now_ms: int
    claim_no: int
    lost: _containers.RepeatedCompositeFieldContainer[Held]
    def __init__(self, worker_id: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., handed_back: _Optional[int] = ..., now_ms: _Optional[int] = ..., claim_no: _Optional[int] = ..., lost: _Optional[_Iterable[_Union[Held, _Mapping]]] = ...) -> None: ...

class SettledBatch(_message.Message):
    __slots__ = ("settler_no", "batch_no", "settled", "error")
    SETTLER_NO_FIELD_NUMBER: _ClassVar[int]
    BATCH_NO_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    settler_no: int
    batch_no: int
    settled: Settled
    error: _task_pb2.Error
    def __init__(self, settler_no: _Optional[int] = ..., batch_no: _Optional[int] = ..., settled: _Optional[_Union[Settled, _Mapping]] = ..., error: _Optional[_Union[_task_pb2.Error, _Mapping]] = ...) -> None: ...

class HeartbeatAnswer(_message.Message):
    __slots__ = ("renewed", "error")
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    renewed: HeartbeatResponse
    error: _task_pb2.Error
    def __init__(self, renewed: _Optional[_Union[HeartbeatResponse, _Mapping]] = ..., error: _Optional[_Union[_task_pb2.Error, _Mapping]] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class EndAnswer(_message.Message):
    __slots__ = ("task_id", "lease", "state", "error")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    lease: int
    state: _task_pb2.TaskState
    error: _task_pb2.Error
    def __init__(self, task_id: _Optional[str] = ..., lease: _Optional[int] = ..., state: _Optional[_Union[_task_pb2.TaskState, str]] = ..., error: _Optional[_Union[_task_pb2.Error, _Mapping]] = ...) -> None: ...
