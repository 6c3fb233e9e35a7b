"""Two servers on one store: a worker goes on at the other one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from running import name, running, soon
from servers import LIMIT, Process, Server

from windlass import Client, Context, NewTask, TaskState, Worker

pytestmark = pytest.mark.skipif(
    "WINDLASS_TEST_STORE" not in os.environ,
    reason="needs PostgreSQL; run it with: cargo nextest run -p e2e -E 'test(another_server)'",
)


def serve(folder: Path, listen: str = "127.0.0.1:0") -> Server:
    """A server on the store that this test was given."""
    store, schema = os.environ["WINDLASS_TEST_STORE"], os.environ["WINDLASS_TEST_SCHEMA"]
    return Server(folder, "--schema", schema, store=store, listen=listen)


def again(server: Server) -> Server:
    """One in the place of one that is gone."""
    return serve(server.folder, server.listen)


@pytest.fixture
def pair(tmp_path: Path, ended: Callable[[Process], None]) -> list[Server]:
    """Two servers."""
    servers = []
    for number in range(2):
        folder = tmp_path / f"server-{number}"
        folder.mkdir()
        servers.append(serve(folder))
        ended(servers[-1])
    return servers


async def test_a_worker_whose_server_is_killed_goes_on_at_the_other_one(pair: list[Server]) -> None:
    queue = name()
    first, second = pair
    worker = Worker([first.url, second.url], queues=[queue], slots=3, lease_ttl=30.0)
    started, go_on = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    @worker.handler("waits")
    async def waits(context: Context) -> None:
        runs.append(context.task_id)
        if len(runs) == 3:
            started.set()
        await go_on.wait()

    async with running(worker), Client(second.url) as client:
        # Enqueued at the one, pushed by the other.
        enqueued = await client.enqueue_batch([NewTask(kind="waits", queue=queue) for _ in range(9)])
        await soon(started)
        worker_id = worker.worker_id
        first.kill()
        while worker.stats.streams < 2:
            await asyncio.sleep(0.01)
        go_on.set()
        for task in enqueued:
            ended = await client.wait(task.task_id, timeout=LIMIT)
            assert (ended.state, ended.crashes, ended.worker_id) == (TaskState.DONE, 0, worker_id)
    assert sorted(runs) == sorted(task.task_id for task in enqueued), "each ran once"


async def test_the_lease_outlives_the_only_server(
    pair: list[Server], ended: Callable[[Process], None]
) -> None:
    queue = name()
    only, other = pair
    worker = Worker(only.url, queues=[queue], slots=4, lease_ttl=30.0)
    started, go_on = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    @worker.handler("waits")
    async def waits(context: Context) -> str:
        runs.append(context.task_id)
        if len(runs) == 4:
            started.set()
        await go_on.wait()
        return context.task_id

    async with running(worker), Client(other.url) as client:
        enqueued = await client.enqueue_batch([NewTask(kind="waits", queue=queue) for _ in range(8)])
        await soon(started)
        worker_id = worker.worker_id
        only.kill()
        # Four end while there is no server; their ends wait.
        go_on.set()
        while worker.stats.done < 4:
            await asyncio.sleep(0.01)
        ended(again(only))
        for task in enqueued:
            found = await client.wait(task.task_id, timeout=LIMIT)
            assert (found.state, found.output, found.crashes) == (TaskState.DONE, task.task_id, 0)
        assert worker.worker_id == worker_id
    assert sorted(runs) == sorted(task.task_id for task in enqueued), "each ran once"


async def test_a_server_that_stops_in_order_passes_its_worker_on(pair: list[Server]) -> None:
    queue = name()
    first, second = pair
    worker = Worker([first.url, second.url], queues=[queue], slots=2, lease_ttl=30.0)
    started, go_on = asyncio.Event(), asyncio.Event()

    @worker.handler("waits")
    async def waits(context: Context) -> None:
        started.set()
        await go_on.wait()

    async with running(worker), Client(second.url) as client:
        held = await client.enqueue("waits", queue=queue)
        await soon(started)
        first.signal(signal.SIGTERM)
        while worker.stats.streams < 2:
            await asyncio.sleep(0.01)
        # It serves there, while what it had from the other one still runs.
        go_on.set()
        later = await client.enqueue("waits", queue=queue)
        for task_id in (held.task_id, later.task_id):
            task = await client.wait(task_id, timeout=LIMIT)
            assert (task.state, len(task.attempts)) == (TaskState.DONE, 1)
        assert await asyncio.to_thread(first.wait) == 0


async def test_under_load_a_killed_server_costs_no_task_and_no_attempt(pair: list[Server]) -> None:
    queue = name()
    first, second = pair
    workers = [
        Worker([one.url, other.url], queues=[queue], slots=8, lease_ttl=30.0)
        for one, other in ((first, second), (second, first))
    ]
    runs: list[str] = []

    async def count(context: Context) -> None:
        runs.append(context.task_id)
        if len(runs) == 200:
            first.signal(signal.SIGKILL)
        await asyncio.sleep(0)

    for worker in workers:
        worker.handler("count")(count)
    async with Client(second.url) as client:
        enqueued = await client.enqueue_batch([NewTask(kind="count", queue=queue) for _ in range(1000)])
        async with running(workers[0]), running(workers[1]):
            for task in enqueued:
                ended = await client.wait(task.task_id, timeout=LIMIT)
                assert (ended.state, ended.crashes, ended.attempt) == (TaskState.DONE, 0, 1)
    # What the killed server had claimed and not yet sent was handed back and ran later; nothing ran twice.
    assert sorted(runs) == sorted(task.task_id for task in enqueued)
