"""Speaks to a server with nothing but grpcio's own tools: stubs made fresh from the proto, reflection, health.

Run by test_stock_tools.py as a process of its own, which cannot see our package. Prints what it saw as one JSON object.
"""

import json
import sys

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from windlass.v1 import task_pb2, tasks_pb2, tasks_pb2_grpc, workers_pb2, workers_pb2_grpc

assert "VERSION" not in dir(sys.modules["windlass"]), "this is our package, not what was generated"

LIMIT = 60
QUEUE = "stock"


def call_by_call(channel):
    """Enqueue, register, claim, complete; then the same with a stream of its own making."""
    tasks = tasks_pb2_grpc.TasksStub(channel)
    workers = workers_pb2_grpc.WorkersStub(channel)
    payload = task_pb2.Payload(data=b'{"n":1}')
    new = task_pb2.NewTask(kind="stock", queue=QUEUE, payload=payload)
    task_id = tasks.Enqueue(tasks_pb2.EnqueueRequest(task=new)).task_id
    worker = workers.Register(workers_pb2.RegisterRequest(kinds=["stock"], queues=[QUEUE], max_capacity=1))
    claimed = workers.Claim(
        workers_pb2.ClaimRequest(
            worker_id=worker.worker_id, max_tasks=1, kinds=["stock"], queues=[QUEUE], wait_ms=30_000
        )
    ).tasks
    beat = workers_pb2.HeartbeatRequest(
        worker_id=worker.worker_id, available_capacity=0, max_capacity=1, memory_usage=0.5
    )
    workers.Heartbeat(beat)
    workers.Progress(
        workers_pb2.ProgressRequest(
            worker_id=worker.worker_id, task_id=task_id, lease=claimed[0].lease.lease, progress="half"
        )
    )
    seen = next(w for w in workers.ListWorkers(workers_pb2.ListWorkersRequest()).workers if w.worker_id == worker.worker_id)
    half = tasks.GetTask(tasks_pb2.GetTaskRequest(task_id=task_id)).progress
    complete = workers_pb2.CompleteRequest(lease=claimed[0].lease, output=task_pb2.Payload(data=b'"ok"'))
    states = [workers.Complete(complete).state, workers.Complete(complete).state]
    task = tasks.GetTask(tasks_pb2.GetTaskRequest(task_id=task_id))
    workers.Retire(workers_pb2.RetireRequest(worker_id=worker.worker_id))
    return {
        "same": claimed[0].lease.task_id == task_id,
        "payload": claimed[0].payload.data.decode(),
        "memory": seen.memory_usage,
        "progress": half,
        # The second is the same call again, as after a lost answer.
        "states": [task_pb2.TaskState.Name(state) for state in states],
        "output": task.output.data.decode(),
    }


def over_the_stream(channel):
    """One task over ``Work``."""
    tasks = tasks_pb2_grpc.TasksStub(channel)
    up = workers_pb2.WorkUp
    register = workers_pb2.RegisterRequest(kinds=["streamed"], queues=[QUEUE], max_capacity=1)
    outgoing = __import__("queue").SimpleQueue()
    outgoing.put(up(hello=workers_pb2.Hello(register=register)))
    outgoing.put(up(credit=workers_pb2.Credit(tasks=1)))
    down = workers_pb2_grpc.WorkersStub(channel).Work(iter(outgoing.get, None), timeout=LIMIT)
    new = task_pb2.NewTask(kind="streamed", queue=QUEUE)
    task_id = tasks.Enqueue(tasks_pb2.EnqueueRequest(task=new)).task_id
    kinds = []
    for message in down:
        kind = message.WhichOneof("message")
        kinds.append(kind)
        if kind == "tasks":
            outgoing.put(up(complete=workers_pb2.CompleteRequest(lease=message.tasks.tasks[0].lease)))
        if kind == "end":
            assert message.end.task_id == task_id
            outgoing.put(None)
            break
    state = tasks.GetTask(tasks_pb2.GetTaskRequest(task_id=task_id)).state
    return {"kinds": kinds, "state": task_pb2.TaskState.Name(state)}


def reflected(channel, version):
    """The services that a server tells of; its messages are the same in both versions."""
    method = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="windlass.v1.Workers"),
    ]
    listed, file = method(iter(requests), timeout=LIMIT)
    names = [
        name
        for data in file.file_descriptor_response.file_descriptor_proto
        for name in [FileDescriptorProto.FromString(data).name]
    ]
    return {"services": sorted(s.name for s in listed.list_services_response.service), "files": sorted(names)}


def main(target):
    with grpc.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        check = health.Check(health_pb2.HealthCheckRequest(service="windlass.v1.Workers"), timeout=LIMIT)
        seen = {
            "calls": call_by_call(channel),
            "v1": reflected(channel, "v1"),
            "v1alpha": reflected(channel, "v1alpha"),
            "database": sorted(ProtoReflectionDescriptorDatabase(channel).get_services()),
            "health": health_pb2.HealthCheckResponse.ServingStatus.Name(check.status),
        }
        if "--stream" in sys.argv:
            seen["stream"] = over_the_stream(channel)
    print(json.dumps(seen))


main(sys.argv[1])
