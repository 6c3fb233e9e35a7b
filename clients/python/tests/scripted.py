"""A server that does what a test says: for faults that a real one does not show on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from windlass.v1 import store_pb2, task_pb2, workers_pb2
from windlass.worker import settlement

#: Bounds a failure; nothing is shown by it.
LIMIT = 20.0
#: How a heartbeat is answered unless a test says otherwise.
RENEWED = workers_pb2.WorkDown(
    heartbeat=workers_pb2.HeartbeatAnswer(renewed=workers_pb2.HeartbeatResponse())
)


class Stream:
    """One stream of a worker."""

    def __init__(self, requests: AsyncIterator[workers_pb2.WorkUp], hello: workers_pb2.Hello) -> None:
        self.hello = hello
        self.answers_heartbeats = True
        self.heartbeats: list[workers_pb2.HeartbeatRequest] = []
        self.credit = 0
        self.down: asyncio.Queue[workers_pb2.WorkDown | grpc.StatusCode | None] = asyncio.Queue()
        self._up: asyncio.Queue[workers_pb2.WorkUp] = asyncio.Queue()
        self._requests = requests

    async def read(self) -> None:
        """Sorts what comes: heartbeats and credit are noted, the rest is for the test."""
        async for message in self._requests:
            match message.WhichOneof("message"):
                case "heartbeat":
                    self.heartbeats.append(message.heartbeat)
                    if self.answers_heartbeats:
                        self.down.put_nowait(RENEWED)
                case "credit":
                    self.credit = message.credit.tasks
                    self._up.put_nowait(message)
                case _:
                    self._up.put_nowait(message)

    def send(self, **message: Any) -> None:
        """Sends a message down."""
        self.down.put_nowait(workers_pb2.WorkDown(**message))

    def welcome(self, worker_id: str = "w1", ttl: float = 10.0) -> None:
        """Says welcome."""
        self.send(welcome=workers_pb2.Welcome(worker_id=worker_id, lease_ttl_ms=round(ttl * 1000)))

    def push(self, *tasks: task_pb2.ClaimedTask) -> None:
        """Pushes tasks."""
        self.send(tasks=workers_pb2.WorkDown.Tasks(tasks=tasks))

    def acknowledge(self, batch: workers_pb2.SettleBatch, *fenced: str) -> None:
        """Says that a batch has been written."""
        settled = workers_pb2.Settled(fenced=fenced)
        self.send(
            settled=workers_pb2.SettledBatch(
                settler_no=batch.settler_no, batch_no=batch.batch_no, settled=settled
            )
        )

    def lose(self) -> None:
        """Breaks the stream."""
        self.down.put_nowait(grpc.StatusCode.UNAVAILABLE)

    async def expect_credit(self, tasks: int) -> None:
        """Waits until the worker has granted so much."""
        async with asyncio.timeout(LIMIT):
            while self.credit != tasks:
                message = await self._up.get()
                assert message.WhichOneof("message") == "credit", message

    async def expect_batch(self) -> workers_pb2.SettleBatch:
        """The next batch of ends."""
        async with asyncio.timeout(LIMIT):
            while True:
                message = await self._up.get()
                if message.WhichOneof("message") == "settle":
                    return message.settle

    async def expect(self, kind: str) -> workers_pb2.WorkUp:
        """The next message of a kind."""
        async with asyncio.timeout(LIMIT):
            while True:
                message = await self._up.get()
                if message.WhichOneof("message") == kind:
                    return message


class ScriptedServer:
    """Speaks what a worker needs; streams are the test's."""

    def __init__(self) -> None:
        self.url = ""
        self.retired: list[str] = []
        #: Batches and comparisons that came by call.
        self.settled: list[workers_pb2.SettleBatch] = []
        self.compared: asyncio.Queue[workers_pb2.ReconcileRequest] = asyncio.Queue()
        #: What a comparison answers.
        self.lost: list[workers_pb2.Held] = []
        #: What the next streams are refused with.
        self.refusals: list[grpc.StatusCode] = []
        self._streams: asyncio.Queue[Stream] = asyncio.Queue()

    async def accept(self) -> Stream:
        """The next stream, after its Hello."""
        async with asyncio.timeout(LIMIT):
            return await self._streams.get()

    async def work(
        self, requests: AsyncIterator[workers_pb2.WorkUp], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[workers_pb2.WorkDown]:
        """The stream of a worker."""
        first = await anext(requests)
        assert first.WhichOneof("message") == "hello"
        if self.refusals:
            await context.abort(self.refusals.pop(0), "refused by the test")
        stream = Stream(requests, first.hello)
        reading = asyncio.ensure_future(stream.read())
        self._streams.put_nowait(stream)
        try:
            while (message := await stream.down.get()) is not None:
                if isinstance(message, grpc.StatusCode):
                    await context.abort(message, "lost by the test")
                else:
                    yield message
        finally:
            reading.cancel()

    async def rules(
        self, _request: store_pb2.GetRulesRequest, _context: grpc.aio.ServicerContext[Any, Any]
    ) -> store_pb2.Rules:
        """The usual ones."""
        return settlement.default_rules()

    async def settle(
        self, request: workers_pb2.SettleBatch, _context: grpc.aio.ServicerContext[Any, Any]
    ) -> workers_pb2.Settled:
        """Notes a batch."""
        self.settled.append(request)
        return workers_pb2.Settled()

    async def reconcile(
        self, request: workers_pb2.ReconcileRequest, _context: grpc.aio.ServicerContext[Any, Any]
    ) -> workers_pb2.ReconcileResponse:
        """Notes a comparison."""
        self.compared.put_nowait(request)
        return workers_pb2.ReconcileResponse(lost=self.lost)

    async def retire(
        self, request: workers_pb2.RetireRequest, _context: grpc.aio.ServicerContext[Any, Any]
    ) -> workers_pb2.Moved:
        """Notes a farewell."""
        self.retired.append(request.worker_id)
        return workers_pb2.Moved()


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """A server on a free port."""
    scripted = ScriptedServer()
    server = grpc.aio.server()
    workers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Work": grpc.stream_stream_rpc_method_handler(
            scripted.work, workers_pb2.WorkUp.FromString, workers_pb2.WorkDown.SerializeToString
        ),
        "Retire": grpc.unary_unary_rpc_method_handler(
            scripted.retire, workers_pb2.RetireRequest.FromString, workers_pb2.Moved.SerializeToString
        ),
        "Reconcile": grpc.unary_unary_rpc_method_handler(
            scripted.reconcile,
            workers_pb2.ReconcileRequest.FromString,
            workers_pb2.ReconcileResponse.SerializeToString,
        ),
    }
    settle = grpc.unary_unary_rpc_method_handler(
        scripted.settle, workers_pb2.SettleBatch.FromString, workers_pb2.Settled.SerializeToString
    )
    rules = grpc.unary_unary_rpc_method_handler(
        scripted.rules, store_pb2.GetRulesRequest.FromString, store_pb2.Rules.SerializeToString
    )
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler("windlass.v1.Workers", workers),
            grpc.method_handlers_generic_handler("windlass.v1.Store", {"GetRules": rules, "Settle": settle}),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    scripted.url = f"http://127.0.0.1:{port}"
    try:
        yield scripted
    finally:
        await server.stop(None)


def _ids() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"task{number:09d}"


_next_id = _ids()


def claimed(
    kind: str = "echo",
    *,
    worker_id: str = "w1",
    data: bytes = b"{}",
    workflow: str = "",
    timeout_ms: int | None = None,
    attempt: int = 1,
    claim_no: int = 1,
) -> task_pb2.ClaimedTask:
    """A task as it is pushed."""
    lease = task_pb2.Lease(
        task_id=next(_next_id), lease=7, worker_id=worker_id, attempt=attempt, max_attempts=3, workflow=workflow
    )
    task = task_pb2.ClaimedTask(
        lease=lease,
        lane=task_pb2.Lane(id=1, queue="default", kind=kind),
        payload=task_pb2.Payload(data=data),
        claimed_at_ms=1_000_000,
        claim_no=claim_no,
    )
    if timeout_ms is not None:
        task.timeout_ms = timeout_ms
    return task
