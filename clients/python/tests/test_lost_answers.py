"""What a client does when the answer to a call is lost: again where that is harmless, and told where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

import windlass
import windlass.sync
from windlass.v1 import task_pb2, tasks_pb2

Enqueue = Callable[..., Awaitable[windlass.Enqueued]]


class Lossy:
    """A server that takes tasks, and loses its first answers."""

    def __init__(self, *losses: grpc.StatusCode) -> None:
        self.url = ""
        self.came: list[task_pb2.NewTask] = []
        self._losses = list(losses)

    async def enqueue(
        self, request: tasks_pb2.EnqueueRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> tasks_pb2.EnqueueResponse:
        """Takes a task."""
        self.came.append(request.task)
        if self._losses:
            await context.abort(self._losses.pop(0), "Socket closed")
        return tasks_pb2.EnqueueResponse(task_id="0AJ4CDZY00000", existing=len(self.came) > 1)


@asynccontextmanager
async def lossy(*losses: grpc.StatusCode) -> AsyncIterator[Lossy]:
    """Such a server on a free port."""
    served = Lossy(*losses)
    handler = grpc.unary_unary_rpc_method_handler(
        served.enqueue, tasks_pb2.EnqueueRequest.FromString, tasks_pb2.EnqueueResponse.SerializeToString
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("windlass.v1.Tasks", {"Enqueue": handler}),)
    )
    served.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield served
    finally:
        await server.stop(None)


async def _enqueue_async(*servers: str, **options: Any) -> windlass.Enqueued:
    async with windlass.Client(servers) as client:
        return await client.enqueue("k", **options)


async def _enqueue_blocking(*servers: str, **options: Any) -> windlass.Enqueued:
    def enqueue() -> windlass.Enqueued:
        with windlass.sync.Client(servers) as client:
            return client.enqueue("k", **options)

    return await asyncio.to_thread(enqueue)


@pytest.fixture(params=[_enqueue_async, _enqueue_blocking], ids=["asyncio", "blocking"])
def enqueue(request: pytest.FixtureRequest) -> Enqueue:
    way: Enqueue = request.param
    return way


LOSSES = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED]


@pytest.mark.parametrize("loss", LOSSES)
async def test_without_a_key_the_caller_is_told_and_nothing_is_sent_twice(
    enqueue: Enqueue, loss: grpc.StatusCode
) -> None:
    async with lossy(loss) as one, lossy() as other:
        with pytest.raises(windlass.UnknownOutcomeError):
            await enqueue(one.url, other.url)
        assert (len(one.came), len(other.came)) == (1, 0)


@pytest.mark.parametrize("loss", LOSSES)
async def test_with_a_key_the_same_task_is_sent_again_elsewhere(enqueue: Enqueue, loss: grpc.StatusCode) -> None:
    async with lossy(loss) as one, lossy() as other:
        enqueued = await enqueue(one.url, other.url, key="k-1")
        assert enqueued.task_id == "0AJ4CDZY00000"
        assert one.came == other.came


async def test_with_one_server_a_task_with_a_key_is_sent_to_it_again(enqueue: Enqueue) -> None:
    async with lossy(grpc.StatusCode.UNAVAILABLE) as only:
        assert (await enqueue(only.url, key="k-1")).existing
        assert len(only.came) == 2


async def test_what_never_left_is_sent_elsewhere_also_without_a_key(enqueue: Enqueue) -> None:
    async with lossy() as gone:
        pass
    async with lossy() as there:
        await enqueue(gone.url, there.url)
        assert len(there.came) == 1
