"""Workers that run while a test does."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio
from servers import LIMIT, Server

from windlass import Client, Worker
from windlass.v1 import workers_pb2


def name() -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:12]}"


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    """The worker is connected; in the end it drains, unless it has already."""
    run = asyncio.create_task(worker.run(handle_signals=False))
    connected = asyncio.create_task(worker.connected())
    try:
        async with asyncio.timeout(LIMIT):
            await asyncio.wait([run, connected], return_when=asyncio.FIRST_COMPLETED)
            if run.done():
                run.result()
            yield run
            worker.drain()
            worker.drain()
            await run
    finally:
        for task in (run, connected):
            task.cancel()
        await asyncio.gather(run, connected, return_exceptions=True)


async def all_workers(server: Server) -> list[workers_pb2.Worker]:
    """The workers as the server sees them."""
    async with grpc.aio.insecure_channel(server.listen) as channel:
        method = channel.unary_unary(
            "/windlass.v1.Workers/ListWorkers",
            request_serializer=workers_pb2.ListWorkersRequest.SerializeToString,
            response_deserializer=workers_pb2.ListWorkersResponse.FromString,
        )
        answer = await method(workers_pb2.ListWorkersRequest(), timeout=LIMIT)
    return list(answer.workers)


async def seen_worker(server: Server, worker_id: str | None) -> workers_pb2.Worker:
    """One of them."""
    return next(worker for worker in await all_workers(server) if worker.worker_id == worker_id)


async def set_slots(server: Server, worker_id: str | None, slots: int) -> None:
    """What ``windlass workers set`` does."""
    async with grpc.aio.insecure_channel(server.listen) as channel:
        method = channel.unary_unary(
            "/windlass.v1.Workers/SetWorker",
            request_serializer=workers_pb2.SetWorkerRequest.SerializeToString,
            response_deserializer=workers_pb2.SetWorkerResponse.FromString,
        )
        request = workers_pb2.SetWorkerRequest(worker_id=worker_id or "", max_capacity=slots)
        await method(request, timeout=LIMIT)


async def soon(event: asyncio.Event) -> None:
    """Waits for something that must happen."""
    async with asyncio.timeout(LIMIT):
        await event.wait()


async def wait_all(client: Client, *task_ids: str) -> None:
    """Waits until tasks have ended."""
    for task_id in task_ids:
        await client.wait(task_id, timeout=LIMIT)
