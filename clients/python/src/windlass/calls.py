"""The calls of the API that this package makes, with the types of their messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from windlass.v1 import control_pb2, store_pb2, task_pb2, tasks_pb2, workers_pb2

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
REPEAT_TASK = Call("Tasks", "RepeatTask", tasks_pb2.RepeatTaskRequest, tasks_pb2.RepeatTaskResponse)
LIST_QUEUES = Call("Control", "ListQueues", control_pb2.ListQueuesRequest, control_pb2.ListQueuesResponse)
SET_QUEUE = Call("Control", "SetQueue", control_pb2.SetQueueRequest, control_pb2.SetQueueResponse)
LIST_JOBS = Call("Control", "ListJobs", control_pb2.ListJobsRequest, control_pb2.ListJobsResponse)
GET_JOB = Call("Control", "GetJob", control_pb2.GetJobRequest, control_pb2.Job)
SET_JOB = Call("Control", "SetJob", control_pb2.SetJobRequest, control_pb2.Job)
REMOVE_JOB = Call("Control", "RemoveJob", control_pb2.RemoveJobRequest, control_pb2.Changes)
WORK = Call("Workers", "Work", workers_pb2.WorkUp, workers_pb2.WorkDown)
HEARTBEAT = Call("Workers", "Heartbeat", workers_pb2.HeartbeatRequest, workers_pb2.HeartbeatResponse)
RECONCILE = Call("Workers", "Reconcile", workers_pb2.ReconcileRequest, workers_pb2.ReconcileResponse)
RETIRE = Call("Workers", "Retire", workers_pb2.RetireRequest, workers_pb2.Moved)
SETTLE = Call("Store", "Settle", workers_pb2.SettleBatch, workers_pb2.Settled)
GET_RULES = Call("Store", "GetRules", store_pb2.GetRulesRequest, store_pb2.Rules)
