"""Servers and workers that die, stop and come back: nothing is lost, and nothing ends twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Start
from running import all_workers, running, soon
from servers import LIMIT, Process, Server, python_script

from windlass import Client, Context, NewTask, TaskState, Worker

#: A worker in a process of its own. Its handler tells when it starts, and goes on when a file appears.
SCRIPT = """
import asyncio, os, sys, time
import windlass

worker = windlass.Worker(sys.argv[1], slots=2, lease_ttl=2.0, drain_timeout=float(sys.argv[2]))

@worker.handler("waits")
async def waits(context):
    print("started", context.task_id, flush=True)
    while not os.path.exists("go-on"):
        await asyncio.sleep(0.01)
    return os.getpid()

@worker.handler("hangs")
def hangs(context):
    print("started", context.task_id, flush=True)
    while True:
        time.sleep(1)

worker.run_forever()
print("ended well", flush=True)
"""


async def test_a_server_that_is_killed_and_comes_back_loses_nothing(start: Start) -> None:
    server = start()
    worker = Worker(server.url, slots=4, lease_ttl=30.0)
    started, go_on = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    @worker.handler("waits")
    async def waits(context: Context) -> str:
        runs.append(context.task_id)
        if len(runs) == 4:
            started.set()
        await go_on.wait()
        return context.task_id

    async with running(worker), Client(server.url) as client:
        enqueued = await client.enqueue_batch([NewTask(kind="waits", payload=n) for n in range(8)])
        await soon(started)
        server.kill()
        # Four end while there is no server; their ends wait.
        go_on.set()
        while worker.stats.done < 4:
            await asyncio.sleep(0.01)
        assert start(after=server).url == server.url
        for task in enqueued:
            ended = await client.wait(task.task_id, timeout=LIMIT)
            assert (ended.state, ended.output) == (TaskState.DONE, task.task_id)
            assert ended.attempt == 1
    # An embedded store gives up the leases of its last process; on PostgreSQL they outlive the server (test_postgres.py).
    assert set(runs) == {task.task_id for task in enqueued}


async def test_a_server_that_stops_in_order_is_waited_for(start: Start) -> None:
    server = start()
    worker = Worker(server.url, slots=2, lease_ttl=30.0)

    @worker.handler("echo-py")
    async def echo(context: Context) -> object:
        return context.payload

    async with running(worker), Client(server.url) as client:
        first = await client.enqueue("echo-py", 1)
        await client.wait(first.task_id, timeout=LIMIT)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        start(after=server)
        enqueued = await _enqueue_when_possible(client, "echo-py")
        assert (await client.wait(enqueued, timeout=LIMIT)).state is TaskState.DONE


async def _enqueue_when_possible(client: Client, kind: str) -> str:
    # With a key a lost answer is harmless, so the client repeats it by itself.
    return (await client.enqueue(kind, 2, key="after the restart")).task_id


async def test_the_tasks_of_a_killed_worker_run_again_on_another(
    start: Start, ended: Callable[[Process], None], tmp_path: Path
) -> None:
    server = start()
    victim = python_script(SCRIPT, tmp_path, server.url, "30")
    ended(victim)
    async with Client(server.url) as client:
        enqueued = await client.enqueue("waits")
        victim.wait_for(f"started {enqueued.task_id}")
        victim.kill()
        (tmp_path / "go-on").touch()
        heir = python_script(SCRIPT, tmp_path, server.url, "30")
        ended(heir)
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
    assert task.state is TaskState.DONE
    assert [attempt.result for attempt in task.attempts] == ["crashed", "done"]
    assert task.attempt == 1, "a crash spends no attempt"


async def test_a_frozen_worker_fences_itself_when_it_wakes_and_cannot_end_the_task(
    start: Start, ended: Callable[[Process], None], tmp_path: Path
) -> None:
    server = start()
    frozen = python_script(SCRIPT, tmp_path, server.url, "30")
    ended(frozen)
    async with Client(server.url) as client:
        enqueued = await client.enqueue("waits")
        frozen.wait_for(f"started {enqueued.task_id}")
        frozen.signal(signal.SIGSTOP)
        heir = python_script(SCRIPT, tmp_path, server.url, "30")
        ended(heir)
        # The store gives the task to the other one when the lease is over.
        await asyncio.to_thread(heir.wait_for, f"started {enqueued.task_id}")
        (tmp_path / "go-on").touch()
        task = await client.wait(enqueued.task_id, timeout=LIMIT)
        frozen.signal(signal.SIGCONT)
        await asyncio.to_thread(frozen.wait_for, "lease lost, handlers cancelled")
        # It is of use again, under another name.
        frozen_again = await client.enqueue_batch([NewTask(kind="waits") for _ in range(4)])
        for one in frozen_again:
            await client.wait(one.task_id, timeout=LIMIT)
        assert await client.get(enqueued.task_id) == task, "nobody touched it after its end"


async def test_sigterm_lets_tasks_end_and_takes_no_more(
    start: Start, ended: Callable[[Process], None], tmp_path: Path
) -> None:
    server = start()
    worker = python_script(SCRIPT, tmp_path, server.url, "3600")
    ended(worker)
    async with Client(server.url) as client:
        first = await client.enqueue("waits")
        worker.wait_for(f"started {first.task_id}")
        worker.signal(signal.SIGTERM)
        while not await _is_draining(server):
            await asyncio.sleep(0.01)
        late = await client.enqueue("waits")
        (tmp_path / "go-on").touch()
        assert (await client.wait(first.task_id, timeout=LIMIT)).state is TaskState.DONE
        assert await asyncio.to_thread(worker.wait) == 0, worker.said
        assert "ended well" in worker.said
        assert (await client.get(late.task_id)).state is TaskState.READY


@pytest.mark.parametrize("signals", [1, 2], ids=["deadline", "second signal"])
async def test_what_has_not_ended_is_handed_back_unharmed(
    start: Start, ended: Callable[[Process], None], tmp_path: Path, signals: int
) -> None:
    server = start()
    worker = python_script(SCRIPT, tmp_path, server.url, "0" if signals == 1 else "3600")
    ended(worker)
    async with Client(server.url) as client:
        enqueued = await client.enqueue("waits")
        worker.wait_for(f"started {enqueued.task_id}")
        worker.signal(signal.SIGTERM)
        if signals == 2:
            while not await _is_draining(server):
                await asyncio.sleep(0.01)
            worker.signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait) == 0, worker.said
        task = await client.get(enqueued.task_id)
        assert (task.state, task.attempt) == (TaskState.READY, 0)
        assert [attempt.result for attempt in task.attempts] == ["released"]


async def test_a_handler_that_never_ends_does_not_keep_the_process(
    start: Start, ended: Callable[[Process], None], tmp_path: Path
) -> None:
    server = start()
    worker = python_script(SCRIPT, tmp_path, server.url, "0")
    ended(worker)
    async with Client(server.url) as client:
        enqueued = await client.enqueue("hangs")
        worker.wait_for(f"started {enqueued.task_id}")
        worker.signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait) == 0, worker.said
        task = await client.get(enqueued.task_id)
        assert (task.state, task.attempt) == (TaskState.READY, 0)


async def _is_draining(server: Server) -> bool:
    return any(worker.draining for worker in await all_workers(server))
