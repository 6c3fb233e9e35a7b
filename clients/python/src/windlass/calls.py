"""The calls of the API that this package makes, with the types of their messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from windlass.v1 import store_pb2, task_pb2, tasks_pb2, workers_pb2

Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True)
class Call(Generic[Request, Answer]):
    """One method of a service."""

    service: str
    method: str
    request: type[Request]
    answer: type[Answer]

    @property
    def path(self) -> str:
        """As HTTP/2 names it."""
        return f"/windlass.v1.{self.service}/{self.method}"


ENQUEUE = Call("Tasks", "Enqueue", tasks_pb2.EnqueueRequest, tasks_pb2.EnqueueResponse)
ENQUEUE_BATCH = Call("Tasks", "EnqueueBatch", tasks_pb2.EnqueueBatchRequest, tasks_pb2.EnqueueBatchResponse)
GET_TASK = Call("Tasks", "GetTask", tasks_pb2.GetTaskRequest, task_pb2.Task)
LIST_TASKS = Call("Tasks", "ListTasks", tasks_pb2.ListTasksRequest, tasks_pb2.ListTasksResponse)
WAIT_TASKS = Call("Tasks", "WaitTasks", tasks_pb2.WaitTasksRequest, tasks_pb2.WaitTasksResponse)
CANCEL_TASKS = Call("Tasks", "CancelTasks", tasks_pb2.CancelTasksRequest, tasks_pb2.ChangedTasks)
RETRY_TASKS = Call("Tasks", "RetryTasks", tasks_pb2.RetryTasksRequest, tasks_pb2.ChangedTasks)
WORK = Call("Workers", "Work", workers_pb2.WorkUp, workers_pb2.WorkDown)
HEARTBEAT = Call("Workers", "Heartbeat", workers_pb2.HeartbeatRequest, workers_pb2.HeartbeatResponse)
RECONCILE = Call("Workers", "Reconcile", workers_pb2.ReconcileRequest, workers_pb2.ReconcileResponse)
RETIRE = Call("Workers", "Retire", workers_pb2.RetireRequest, workers_pb2.Moved)
SETTLE = Call("Store", "Settle", workers_pb2.SettleBatch, workers_pb2.Settled)
GET_RULES = Call("Store", "GetRules", store_pb2.GetRulesRequest, store_pb2.Rules)
